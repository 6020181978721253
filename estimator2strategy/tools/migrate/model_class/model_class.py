"""The text of the `keras.Model`, and of its optimizer, that take the place of a model_fn."""

from __future__ import annotations

import ast
import re
from typing import Any

from estimator2strategy.tools.migrate.model_class import model_fn_parts, optimizer_code, values
from estimator2strategy.tools.migrate.model_class.body import Body
from estimator2strategy.tools.migrate.model_class.model_fn_parts import (
    SPEC,
    EvalMetrics,
    names_in,
    reads_of,
    writes_of,
)
from estimator2strategy.tools.migrate.model_class.optimizer_code import OptimizerCode
from estimator2strategy.tools.migrate.model_class.rewriting import Rewriter, StaysError, arguments
from estimator2strategy.tools.migrate.model_class.wrapping import joined
from estimator2strategy.tools.migrate.module import Module

# tf.summary writes in TensorFlow's graphs alone.
_SUMMARIES = 'if training and keras.backend.backend() == "tensorflow":'
_COUNTED = "# A short last batch counts as a whole one, as in an Estimator."


class ModelClass(Body):
    """Writes a model.

    Args:
        module, function, parts: The model_fn, and its parts.
        name: The name of the class.
        limit: The longest line.
    """

    def __init__(
        self,
        module: Module,
        function: Any,
        parts: Any,
        name: Any,
        limit: Any,
        helpers: Any,
        *,
        is_on_cores: Any = False,
    ):
        self.name, self._is_on_cores = name, is_on_cores
        self.takes = {argument.arg for argument in function.args.args}
        super().__init__(
            module, function, parts, limit, helpers,
            tensors={"features", "labels"}, constants=self.takes & {"params"},
        )  # fmt: skip
        self._forward_names = set().union(*map(writes_of, self.parts.forward), set())
        self._metrics: dict[Any, Any] = {}
        spec = self.parts.specs.get("eval")
        given = arguments(spec, SPEC) if spec else {}
        self.eval_metrics = EvalMetrics(module, function, given.get("eval_metrics"))
        self.several = None  # optimizers
        self.served = ""  # what an export takes of the outputs; all of them
        self.functions: dict[Any, Any] = {}

    def text(self) -> Any:
        """The class, the optimizer, and what they need above them."""
        forward = self._forward()
        code = OptimizerCode(self)
        optimizer = code.text()
        self.several = code.several
        loss, metrics = self._loss(), self._metric_updates()
        of_several = self.several.text() if self.several else ()
        written = "\n".join((*forward, *of_several, *loss, *metrics, *code.above, *optimizer))
        forward[-1:-1] = self._comments_left(written)
        made = [*self._made(), *code.made, *self._metric_makers]
        made += ['self.mean_loss = keras.metrics.Mean(name="mean_loss")']
        params = "params" in self.takes
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
            *self._loss_methods(loss),
            "",
            "    def compute_metrics(self, x, y, y_pred, sample_weight=None):",
            *self._block(metrics),
            *of_several,
        ]
        above = "".join(f"{one}\n\n" for one in dict.fromkeys([*self.functions, *code.above]))
        return above + "\n".join(lines) + "\n\n\n" + "\n".join(optimizer) + "\n"

    def _loss_methods(self, lines: Any) -> Any:
        head = "    def compute_loss(self, x, y, y_pred, sample_weight=None, training=True):"
        if not self.several:
            return [head, *self._block(lines)]
        of_all = "    def compute_losses(self, x, y, y_pred, training=True):"
        total = "return self.compute_losses(x, y, y_pred, training)[0]"
        return [of_all, *self._block(lines), "", head, *self._block([total])]

    def _docstring(self) -> str:
        written = ast.get_docstring(self.function)
        if not written:
            return f'"""The model of `{self.function.name}`."""'
        return f'"""{written.splitlines()[0]}"""'

    # The parts of the class.

    def _forward(self) -> Any:
        lines, guarded = [], False
        for statement, written in self._statements():
            if self.parts.modes[statement] == {"train"} and "infer" in self.parts.specs:
                lines += [] if guarded else ["if training:"]
                lines += [f"    {line}" for line in written]
                guarded = True
            else:
                guarded = False
                lines += written
        lines.append(f"return {self._outputs()}")
        return lines

    def _outputs(self) -> Any:
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
        needed |= set().union(*map(reads_of, self.eval_metrics.given), set())
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
        self.served = self._served(predictions, dictionary)
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

    def _served(self, predictions: Any, dictionary: Any) -> Any:
        """The text of the predictions, in `outputs` that have more."""
        if dictionary is None:
            return f'outputs["{predictions.id}"]' if isinstance(predictions, ast.Name) else ""
        keys = ", ".join(self.module.written(key) for key in dictionary.keys)
        comma = "," if len(dictionary.keys) == 1 else ""
        return f"{{name: outputs[name] for name in ({keys}{comma})}}"

    def _dictionary(self, predictions: Any) -> Any:
        """The dict display that the predictions are, or are assigned."""
        if isinstance(predictions, ast.Name):
            for statement in self.parts.forward:
                if isinstance(statement, ast.Assign) and predictions.id in writes_of(statement):
                    return statement.value if isinstance(statement.value, ast.Dict) else None
        return predictions if isinstance(predictions, ast.Dict) else None

    def _prelude(self, lines: Any, also: Any = ()) -> Any:
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

    def _loss(self) -> Any:
        spec = self.parts.specs.get("train") or self.parts.specs.get("eval")
        value = spec and arguments(spec, SPEC).get("loss")
        if value is None:
            raise StaysError(self.function, "it has no loss")
        losses = _Losses(self)
        read = reads_of(value).union(*map(reads_of, self.parts.summaries))
        read |= set(self.several.losses) if self.several else set()
        kept = model_fn_parts.slice_of(self.parts.loss, read, self._adds_loss)
        lines = [line for s in kept for line in losses.written(s)]
        loss = joined(losses.rewriter.text(value))
        summaries = [line for s in self.parts.summaries for line in self._summary(s)]
        if summaries:
            lines += [_SUMMARIES, *(f"    {line}" for line in summaries)]
        if not loss.isidentifier():
            if self.several and "loss" in self.several.losses:
                message = 'give the loss of each optimizer another name than "loss"'
                raise StaysError(value, message)
            lines.append(f"loss = {loss}")
            loss = "loss"
        counted = f"{loss} * cores" if self._is_on_cores else loss
        returned = self.several.returned(loss) if self.several else loss
        lines += [_COUNTED, f"self.mean_loss.update_state({counted})", f"return {returned}"]
        if self._is_on_cores:
            optimizer_code.check_loss(value, lines)
            lines = optimizer_code.divided(lines)
        return [*self._prelude(lines), *lines]

    def _adds_loss(self, node: Any) -> Any:
        """True for a call that adds to the total loss."""
        return (self._called.called(node) or "").startswith("tf.losses.")

    def _summary(self, statement: Any) -> Any:
        rates = set().union(*map(writes_of, self.parts.optimizer), set())

        def rate(node: Any, rewriter: Any) -> Any:
            is_rate = isinstance(node, ast.Name) and node.id in rates
            return "self.optimizer.learning_rate" if is_rate else None

        return self._written(statement, Rewriter(self.module, (rate, *self._called.rules)))

    def _metric_updates(self) -> Any:
        makers: list[Any] = []
        updates: list[Any] = []
        results: dict[Any, Any] = {}
        rules = (self.eval_metrics.rule, self._metric, *self._called.rules)
        rewriter = Rewriter(self.module, rules)
        for statement in (*self.parts.metrics, *self.eval_metrics.statements):
            call = getattr(statement, "value", None)
            name = self._called.called(call) or ""
            if name.startswith("tf.metrics."):
                raise StaysError(statement, f"write {name} as a Keras metric first (stage 3)")
            if isinstance(statement, ast.Assign) and name.startswith("tf.keras.metrics."):
                assigned: Any = statement.targets[0]
                target = assigned.id
                self._metrics[target] = target
                text = re.sub(r"name='(\w+)'", r'name="\1"', joined(self._called.text(call)))
                makers.append(f"self.{target} = {text}")
            elif isinstance(statement, ast.Assign) and isinstance(call, ast.Dict):
                results |= self._entries(call)
            elif isinstance(statement, ast.Assign) and isinstance(
                statement.targets[0], ast.Subscript
            ):
                results |= self._entry(statement.targets[0].slice, call)
            elif isinstance(statement, ast.Expr) or statement in self.eval_metrics.statements:
                updates += self._written(statement, rewriter)
            else:
                raise StaysError(statement, "make the metrics in statements of their own")
        if self.eval_metrics.returned is not None:
            results |= self._entries(self.eval_metrics.returned)
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

    def _slice(self, needed: Any) -> Any:
        """The statements of the loss that metrics need."""
        kept: list[Any] = []
        for statement in reversed(self.parts.loss):
            if writes_of(statement) & needed:
                needed |= reads_of(statement)
                kept.insert(0, statement)
        losses = _Losses(self)
        return [line for statement in kept for line in losses.written(statement)]

    def _metric(self, node: Any, rewriter: Any) -> Any:
        is_metric = isinstance(node, ast.Name) and node.id in self._metrics
        return f"self.{self._metrics[node.id]}" if is_metric else None

    def _entries(self, node: Any) -> Any:
        entries: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            entries |= self._entry(key, value)
        return entries

    def _entry(self, key: Any, value: Any) -> Any:
        if not isinstance(value, ast.Name) or value.id not in self._metrics:
            raise StaysError(value, "write this as a Keras metric first (stage 3)")
        return {self.module.written(key): f"self.{self._metrics[value.id]}.result()"}

    def is_regularized(self) -> Any:
        """True if a layer adds losses."""
        return self.layers.is_regularized or self.helpers.is_regularized()

    def is_looking_up(self) -> Any:
        """True if a layer looks up rows of a table."""
        return self.layers.looks_up or self.helpers.looks_up()


class _Losses:
    """Statements of the loss, with losses of Keras for those of tf.losses."""

    def __init__(self, model: Any):
        self._model = model
        self._added: list[Any] = []
        self.rewriter = Rewriter(
            model.module, (self._total, self._of_tf_losses, *model._called.rules)
        )

    def written(self, statement: Any) -> Any:
        model = self._model
        if isinstance(statement, ast.Expr) and self._kind(statement.value):
            name = self._kind(statement.value).removeprefix("sparse_")
            self._added.append(name)
            comments = model._comments(statement)
            return [*comments, f"{name} = {joined(self.rewriter.text(statement.value))}"]
        lines = model._written(statement, self.rewriter)
        if isinstance(statement, ast.Assign) and self._kind(statement.value):
            target: Any = statement.targets[0]
            self._added.append(target.id)
        return lines

    def _kind(self, node: Any) -> Any:
        name = self.rewriter.called(node) or ""
        kind = name.removeprefix("tf.losses.")
        return kind if name.startswith("tf.losses.") and kind in values.LOSSES else None

    def _of_tf_losses(self, node: Any, rewriter: Any) -> Any:
        name = rewriter.called(node) or ""
        if not name.startswith("tf.losses."):
            return None
        kind = self._kind(node)
        if kind is None:
            raise StaysError(node, f"Keras has nothing for {name}: write out what it computes")
        keras, known = values.LOSSES[kind]
        given = arguments(node, (*known, "weights"))
        weights = given.pop("weights", None)
        if set(given) - set(known):
            odd = min(set(given) - set(known))
            raise StaysError(node, f"write out what {odd} does in {name}")
        texts = [rewriter.text(given[argument]) for argument in known]
        if weights is not None and not model_fn_parts.is_one(weights):
            self._model.functions[model_fn_parts.WEIGHTED_MEAN] = None
            return model_fn_parts.weighted_loss(node, kind, texts, rewriter.text(weights))
        return f"keras.losses.{keras}({', '.join(texts)})"

    def _total(self, node: Any, rewriter: Any) -> Any:
        name = rewriter.called(node)
        regularization = "sum(self.losses)"
        if name in values.REGULARIZATION:
            return regularization
        if name == values.TOTAL:
            parts = [*self._added, *[regularization] * self._model.is_regularized()]
            return " + ".join(parts) or "0.0"
        if name in ("tf.add_n", "tf.math.add_n") and "REGULARIZATION_LOSSES" in ast.unparse(node):
            return regularization
        return None
