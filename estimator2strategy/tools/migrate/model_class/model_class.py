"""The text of the `keras.Model`, and of its optimizer, that take the place of a model_fn."""

import ast
import re

from estimator2strategy.tools.check.comments import comments
from estimator2strategy.tools.migrate.model_class import keras_ops, loss_slice, names, values
from estimator2strategy.tools.migrate.model_class.layer_calls import Layers
from estimator2strategy.tools.migrate.model_class.model_fn_parts import (
    SPEC,
    names_in,
    reads_of,
    writes_of,
)
from estimator2strategy.tools.migrate.model_class.rewriting import Rewriter, StaysError, arguments
from estimator2strategy.tools.migrate.model_class.wrapping import joined, wrapped

_SUMMED = '''class Summed{0}(keras.optimizers.{0}):
    """Sums the gradients of an id that stands twice in a batch."""

    def apply(self, grads, trainable_variables=None):
        # A sum is dense.
        grads = [None if grad is None else keras.ops.add(grad, 0.0) for grad in grads]
        super().apply(grads, trainable_variables)
'''


# tf.summary writes in TensorFlow's graphs alone.
_SUMMARIES = 'if training and keras.backend.backend() == "tensorflow":'


class ModelClass:
    """Writes a model.

    Args:
        module, function, parts: The model_fn, and its parts.
        name: The name of the class.
        limit: The longest line.
    """

    def __init__(self, module, function, parts, name, limit):
        self.module, self.function, self.parts = module, function, parts
        self.name, self.limit = name, limit
        self.takes = {argument.arg for argument in function.args.args}
        self.layers = Layers(module, parts.scopes)
        self._forward_names = set().union(*map(writes_of, parts.forward), set())
        self._variables = {}  # name -> attribute of a weight
        self._metrics = {}  # name -> attribute
        self._called = Rewriter(
            module,
            (
                self._flag,
                values.no_mode,
                self._kept,
                *values.VALUES,
                self.layers.rule,
                keras_ops.rule,
            ),
        )
        self._summed = None
        self._keeps_params = False

    def text(self):
        """The class, the optimizer, and what they need above them."""
        forward = self._forward()
        loss, metrics = self._loss(), self._metric_updates()
        optimizer = self._optimizer()
        written = "\n".join((*forward, *loss, *metrics, *optimizer))
        forward[-1:-1] = self._comments_left(written)
        made = []
        for name, text in self.layers.made.items():
            made += [self.layers.notes[name]] if name in self.layers.notes else []
            made.append(f"self.{name} = {text}")
        made += self._metric_makers
        made += ['self.mean_loss = keras.metrics.Mean(name="mean_loss")']
        params = "params" in self.takes
        if self._keeps_params:
            made.insert(0, "self.params = params")
        made[:0] = self._constants_of(made)
        lines = [
            f"class {self.name}(keras.Model):",
            f"    {self._docstring()}",
            "",
            f"    def __init__(self{', params' if params else ''}):",
            *self._block(["super().__init__()", *made]),
            "",
            "    def call(self, features, training=False):",
            *self._block(forward),
            "",
            "    def compute_loss(self, x, y, y_pred, sample_weight=None, training=True):",
            *self._block(loss),
            "",
            "    def compute_metrics(self, x, y, y_pred, sample_weight=None):",
            *self._block(metrics),
        ]
        above = _SUMMED.format(self._summed) + "\n\n" if self._summed else ""
        return above + "\n".join(lines) + "\n\n\n" + "\n".join(optimizer) + "\n"

    def _docstring(self):
        written = ast.get_docstring(self.function)
        if not written:
            return f'"""The model of `{self.function.name}`."""'
        return f'"""{written.splitlines()[0]}"""'

    def _block(self, lines, indent="        "):
        """Lines of code, within the limit."""
        found = []
        for line in lines:
            extra = line[: len(line) - len(line.lstrip())]
            found += wrapped(line.lstrip(), self.limit, indent + extra) if line else [""]
        return found

    # Statements.

    def _written(self, statement, rewriter):
        """The lines of a statement: the comments that it has, then its code on one line."""
        comments, code = self._comments(statement), rewriter.text(statement)
        if "#" in code:
            code = "\n".join(line.partition("  #")[0] for line in code.splitlines())
        if not isinstance(statement, (ast.Assign, ast.AugAssign, ast.Expr, ast.AnnAssign)):
            return [*comments, *self._compound(statement, code)]
        return [*comments, joined(code)]

    def _compound(self, statement, code):
        """A loop or a branch, with the indentation that it has in the model."""
        first, *lines = code.splitlines()
        less = statement.col_offset
        return [first, *(line[less:] if line[:less].isspace() else line for line in lines)]

    def _comments(self, statement):
        """The comments above a statement and in it."""
        lines, number = self.module.lines, statement.lineno - 1
        first = number
        while lines[first - 1].lstrip().startswith("#") and "TODO(e2s)" not in lines[first - 1]:
            first -= 1
        above = [line.strip() for line in lines[first:number]]
        if not isinstance(statement, (ast.For, ast.If, ast.While)):
            for line in lines[number : statement.end_lineno]:
                code, mark, comment = line.partition("  # ")
                if mark and code.strip():
                    above.append(f"# {comment.strip()}")
        return above

    def _comments_left(self, written):
        """The comments of the function that stand at no statement of the model."""
        first, last = self.function.body[0].lineno, self.function.end_lineno
        found = []
        for number in sorted(comments(self.module.text)):
            _, _, comment = self.module.lines[number - 1].rpartition("# ")
            text = f"# {comment.strip()}"
            is_mark = "TODO(e2s)" in self.module.lines[number - 1]
            if first - 1 <= number <= last and not is_mark and text not in written:
                found.append(text)
        return found

    def _flag(self, node, rewriter):
        """`training` for a name or a test that says that the model trains."""
        if isinstance(node, ast.Name) and node.id in self.parts.flags:
            node = self.parts.flags[node.id]
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq):
            known = {rewriter.name(n) for n in (node.left, *node.comparators)}
            if any(names.MODES.get(name) == "train" for name in known):
                return "training"
        return None

    def _kept(self, node, rewriter):
        """`self.table` for a variable of the model_fn, and `self.params`."""
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            if node.id == "params":
                self._keeps_params = True
                return "self.params"
            attribute = self._variables.get(node.id)
            return f"self.{attribute}" if attribute else None
        return None

    # The parts of the class.

    def _forward(self):
        lines, guarded = [], False
        self._constants = self._find_constants()
        read = set().union(*(reads_of(s) - self._of_layers(s) for s in self.parts.forward))
        for statement in self.parts.forward:
            is_constant = statement in self._constants and not writes_of(statement) & read
            if is_constant or self._is_variable(statement):
                continue
            written = self._written(statement, self._called)
            if self.parts.modes[statement] == {"train"} and "infer" in self.parts.specs:
                lines += [] if guarded else ["if training:"]
                lines += [f"    {line}" for line in written]
                guarded = True
            else:
                guarded = False
                lines += written
        lines.append(f"return {self._outputs()}")
        return lines

    def _constants_of(self, made):
        """The statements that make what the layers are made of: regularizers, say."""
        read = set().union(*map(names_in, made), set())
        kept = []
        for statement in reversed(self._constants):
            if writes_of(statement) & read:
                read |= reads_of(statement)
                kept.insert(0, statement)
        making = Rewriter(self.module, values.VALUES)
        return [line for statement in kept for line in self._written(statement, making)]

    def _of_layers(self, statement):
        """The names that a statement reads as arguments of layers alone."""
        inside = set()
        for node in ast.walk(statement):
            name = self._called.called(node) or ""
            if name.startswith("tf.layers.") and not name[10:11].isupper():
                arguments_of = [*node.args[1:], *(k.value for k in node.keywords)]
            elif name.startswith(("tf.keras.layers.", "tf.layers.", "tf.get_variable")):
                arguments_of = [*node.args, *(k.value for k in node.keywords)]
            else:
                continue
            inside |= {n for one in arguments_of for n in ast.walk(one) if isinstance(n, ast.Name)}
        all_reads = [n for n in ast.walk(statement) if isinstance(n, ast.Name)]
        outside = {n.id for n in all_reads if n not in inside}
        return {n.id for n in inside} - outside

    def _find_constants(self):
        """Splits off the statements that depend on no tensor."""
        tensors, found = {"features"}, []
        for statement in self.parts.forward:
            calls = [self._called.called(n) or "" for n in ast.walk(statement)]
            makes = any(n.startswith(("tf.layers.", "tf.keras.layers.")) for n in calls)
            makes |= "tf.get_variable" in calls
            is_plain = isinstance(statement, ast.Assign) and not makes
            if is_plain and not reads_of(statement) & tensors:
                found.append(statement)
            else:
                tensors |= writes_of(statement)
        return found

    def _is_variable(self, statement):
        call = getattr(statement, "value", None)
        if not isinstance(statement, ast.Assign) or self._called.called(call) != "tf.get_variable":
            return False
        name = getattr(statement.targets[0], "id", None)
        reads = [
            node
            for node, scope in self.module.source.chains
            if isinstance(node, ast.Name) and node.id == name and scope.function is self.function
        ]
        name, attribute = self.layers.variable(statement, self._called, reads)
        if not self.layers.is_table(name):
            self._variables[name] = attribute
        return True

    def _outputs(self):
        """What `call` returns: the predictions, and what the loss and the metrics read besides."""
        spec = self.parts.specs.get("infer") or self.parts.specs.get("eval")
        given = arguments(spec, SPEC) if spec else {}
        predictions = given.get("predictions")
        self._found = {}  # name -> how it is read of y_pred
        dictionary = self._dictionary(predictions)
        if isinstance(predictions, ast.Name):
            self._found[predictions.id] = "y_pred"
        if dictionary is not None:
            for key, value in zip(dictionary.keys, dictionary.values, strict=True):
                if isinstance(value, ast.Name) and isinstance(key, ast.Constant):
                    self._found.setdefault(value.id, f"y_pred[{self.module.written(key)}]")
        needed = set().union(
            *map(reads_of, (*self.parts.loss, *self.parts.metrics, *self.parts.summaries)), set()
        )
        for of_mode in self.parts.specs.values():
            needed |= reads_of(arguments(of_mode, SPEC).get("loss", ast.Pass()))
        more = [name for name in sorted(self._forward_names & needed) if name not in self._found]
        more = [name for name in more if name not in self._variables]
        if predictions is None and len(more) == 1:
            self._found[more[0]] = "y_pred"
            return more[0]
        text = "" if predictions is None else joined(self._called.text(predictions))
        if not more:
            return text
        self._found |= {name: f'y_pred["{name}"]' for name in more}
        items = ", ".join(f'"{name}": {name}' for name in more)
        if predictions is None:
            return f"{{{items}}}"
        if dictionary is None and not isinstance(predictions, ast.Name):
            raise StaysError(predictions, "give the predictions a name, or write them as a dict")
        if dictionary is None:  # a tensor
            name = predictions.id
            self._found[name] = f'y_pred["{name}"]'
            return f'{{"{name}": {name}, {items}}}'
        if isinstance(predictions, ast.Dict):
            return f"{{{text[1:-1].strip().rstrip(',')}, {items}}}"
        return f"{{**{text}, {items}}}"

    def _dictionary(self, predictions):
        """The dict display that the predictions are, or are assigned."""
        if isinstance(predictions, ast.Name):
            for statement in self.parts.forward:
                if isinstance(statement, ast.Assign) and predictions.id in writes_of(statement):
                    return statement.value if isinstance(statement.value, ast.Dict) else None
        return predictions if isinstance(predictions, ast.Dict) else None

    def _prelude(self, lines, also=()):
        """The assignments by which statements read what Keras hands to a method."""
        read = set().union(*(names_in(line) for line in lines), also)
        pairs = [("features", "x"), ("labels", "y"), *sorted(self._found.items())]
        wanted = [(name, source) for name, source in pairs if name in read and name != source]
        if not wanted:
            return []
        left, right = zip(*wanted, strict=True)
        if len(wanted) <= 3:
            return [f"{', '.join(left)} = {', '.join(right)}"]
        return [f"{name} = {source}" for name, source in wanted]

    def _loss(self):
        spec = self.parts.specs.get("train") or self.parts.specs.get("eval")
        value = spec and arguments(spec, SPEC).get("loss")
        if value is None:
            raise StaysError(self.function, "it has no loss")
        losses = _Losses(self)
        needed = reads_of(value).union(*map(reads_of, self.parts.summaries))
        kept = loss_slice.of(self.parts.loss, needed, losses.kind)
        lines = [line for s in kept for line in losses.written(s)]
        returned = losses.rewriter.text(value)
        summaries = [line for s in self.parts.summaries for line in self._summary(s)]
        if summaries:
            lines += [_SUMMARIES, *(f"    {line}" for line in summaries)]
        if not returned.isidentifier():
            lines.append(f"loss = {returned}")
            returned = "loss"
        lines += [
            "# A short last batch counts as a whole one, as in an Estimator.",
            f"self.mean_loss.update_state({returned})",
            f"return {returned}",
        ]
        return [*self._prelude(lines), *lines]

    def _summary(self, statement):
        rates = set().union(*map(writes_of, self.parts.optimizer), set())

        def rate(node, rewriter):
            is_rate = isinstance(node, ast.Name) and node.id in rates
            return "self.optimizer.learning_rate" if is_rate else None

        return self._written(statement, Rewriter(self.module, (rate, *self._called.rules)))

    def _metric_updates(self):
        makers, updates, results = [], [], {}
        for statement in self.parts.metrics:
            call = getattr(statement, "value", None)
            name = self._called.called(call) or ""
            if name.startswith("tf.metrics."):
                raise StaysError(statement, f"write {name} as a Keras metric first (stage 3)")
            if isinstance(statement, ast.Assign) and name.startswith("tf.keras.metrics."):
                target = statement.targets[0].id
                self._metrics[target] = target
                text = re.sub(r"name='(\w+)'", r'name="\1"', joined(self._called.text(call)))
                makers.append(f"self.{target} = {text}")
            elif isinstance(statement, ast.Assign) and isinstance(call, ast.Dict):
                results |= self._entries(call)
            elif isinstance(statement, ast.Assign) and isinstance(
                statement.targets[0], ast.Subscript
            ):
                results |= self._entry(statement.targets[0].slice, call)
            elif isinstance(statement, ast.Expr):
                updates += self._written(
                    statement, Rewriter(self.module, (self._metric, *self._called.rules))
                )
            else:
                raise StaysError(statement, "make the metrics in statements of their own")
        spec = self.parts.specs.get("eval")
        given = arguments(spec, SPEC) if spec else {}
        if isinstance(given.get("eval_metric_ops"), ast.Dict):
            results |= self._entries(given["eval_metric_ops"])
        self._metric_makers = makers
        needed = set().union(*(names_in(line) for line in updates), set())
        between = self._slice(needed)
        updates = [*between, *updates]
        pairs = ['"loss": self.mean_loss.result()']
        pairs += [f"{key}: {value}" for key, value in results.items()]
        returned = f"return {{{', '.join(pairs)}}}"
        return [*self._prelude(updates), *updates, returned]

    def _slice(self, needed):
        """The statements of the loss that metrics need."""
        kept = []
        for statement in reversed(self.parts.loss):
            if writes_of(statement) & needed:
                needed |= reads_of(statement)
                kept.insert(0, statement)
        losses = _Losses(self)
        return [line for statement in kept for line in losses.written(statement)]

    def _metric(self, node, rewriter):
        is_metric = isinstance(node, ast.Name) and node.id in self._metrics
        return f"self.{self._metrics[node.id]}" if is_metric else None

    def _entries(self, node):
        found = {}
        for key, value in zip(node.keys, node.values, strict=True):
            found |= self._entry(key, value)
        return found

    def _entry(self, key, value):
        if not isinstance(value, ast.Name) or value.id not in self._metrics:
            raise StaysError(value, "write this as a Keras metric first (stage 3)")
        return {self.module.written(key): f"self.{self._metrics[value.id]}.result()"}

    # The optimizer.

    def _optimizer(self):
        rewriter = Rewriter(self.module, (values.schedule, self._optimizer_class, *values.VALUES))
        lines, steps, returned = [], set(), None
        for statement in self.parts.optimizer:
            call = getattr(statement, "value", None)
            name = rewriter.called(call) or ""
            text = self.module.written(statement)
            if name in names.STEPS:
                steps |= writes_of(statement)
            elif name.startswith("tf.keras.optimizers.") and "schedules" not in name:
                lines += self._comments(statement)
                returned = joined(rewriter.text(call))
            elif ".iterations = " in text or ".apply_gradients(" in text:
                if "zip(tf.gradients(" not in text and ".iterations" not in text:
                    raise StaysError(statement, "write what is done to gradients in train_step")
            elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                lines += self._written(statement, rewriter)
            else:
                raise StaysError(statement, "write this beside fit: it is no part of an optimizer")
        if returned is None:
            raise StaysError(self.function, "its optimizer is none of Keras (stage 5)")
        for line in (*lines, returned):
            if names_in(line) & steps:
                message = "write the learning rate as a keras.optimizers.schedules schedule"
                raise StaysError(self.function, message)
        params = "params" if "params" in self.takes else ""
        head = [f"def make_optimizer({params}):", '    """The optimizer, and its learning rate."""']
        return [*head, *self._block([*lines, f"return {returned}"], "    ")]

    def _optimizer_class(self, node, rewriter):
        name = rewriter.name(node) if isinstance(node, ast.Attribute) else None
        kind = (name or "").rpartition(".")[2]
        is_optimizer = name and name.startswith("tf.keras.optimizers.") and "sched" not in name
        if is_optimizer and self.layers.looks_up and kind in names.SUMMED:
            self._summed = kind
            return f"Summed{kind}"
        return None


class _Losses:
    """Statements of the loss, with losses of Keras for those of tf.losses."""

    def __init__(self, model):
        self._model, self._added = model, []
        self.rewriter = Rewriter(
            model.module, (self._total, self._of_tf_losses, *model._called.rules)
        )

    def written(self, statement):
        model = self._model
        if isinstance(statement, ast.Expr) and self.kind(statement.value):
            name = self.kind(statement.value).removeprefix("sparse_")
            self._added.append(name)
            comments = model._comments(statement)
            return [*comments, f"{name} = {joined(self.rewriter.text(statement.value))}"]
        lines = model._written(statement, self.rewriter)
        if isinstance(statement, ast.Assign) and self.kind(statement.value):
            self._added.append(statement.targets[0].id)
        return lines

    def kind(self, node):
        name = self.rewriter.called(node) or ""
        kind = name.removeprefix("tf.losses.")
        return kind if name.startswith("tf.losses.") and kind in names.LOSSES else None

    def _of_tf_losses(self, node, rewriter):
        name = rewriter.called(node) or ""
        if not name.startswith("tf.losses."):
            return None
        kind = self.kind(node)
        if kind is None:
            raise StaysError(node, f"Keras has nothing for {name}: write out what it computes")
        keras, known = names.LOSSES[kind]
        given = arguments(node, known)
        if set(given) - set(known):
            raise StaysError(node, "a weighted loss has another divisor in Keras: write it out")
        inside = ", ".join(rewriter.text(given[argument]) for argument in known)
        return f"keras.losses.{keras}({inside})"

    def _total(self, node, rewriter):
        name = rewriter.called(node)
        regularization = "sum(self.losses)"
        if name in names.REGULARIZATION:
            return regularization
        if name == names.TOTAL:
            parts = [*self._added, *[regularization] * self._model.layers.is_regularized]
            return " + ".join(parts) or "0.0"
        if name in ("tf.add_n", "tf.math.add_n") and "REGULARIZATION_LOSSES" in ast.unparse(node):
            return regularization
        return None
