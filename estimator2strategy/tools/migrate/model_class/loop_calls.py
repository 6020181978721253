"""The calls of a KerasLoop as those of a `keras.Model`: `compile`, `fit`, `evaluate`, an export."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from textwrap import indent
from typing import Any

from estimator2strategy.tools.migrate.model_class import optimizer_code, wrapping
from estimator2strategy.tools.migrate.model_class.rewriting import Rewriter, StaysError, arguments
from estimator2strategy.tools.migrate.model_class.wrapping import joined, wrapped
from estimator2strategy.tools.migrate.module import Module, parent_of

_RECEIVERS = ("ServingInputReceiver", "TensorServingInputReceiver")


def receiver_changes(program: Any, named: Any) -> Iterator[Any]:
    """Yields the changes of a receiver function: placeholders become specs, the receiver a dict.

    Args:
        program: The files.
        named: The node that names the function.

    Raises:
        StaysError: It computes something, which an export of Keras would leave out.
    """
    function = program.defined(named)
    module = isinstance(function, ast.FunctionDef) and program.module_of(function)
    if not module or not program.may_change(module):
        what = ast.unparse(named)
        raise StaysError(named, f"{what} is no function of the files that are migrated")
    rewriter = Rewriter(module, ())
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        called = rewriter.called(node) or ""
        if called == "tf.placeholder":
            yield module.replace(node, _spec(module, node))
        elif called.endswith(_RECEIVERS):
            given = arguments(node, ("features", "receivers"))
            features, receivers = given["features"], given.get("receivers")
            if receivers is None or ast.dump(features) != ast.dump(receivers):
                raise StaysError(node, "the model is not given what clients send: write an export")
            yield module.replace(node, module.written(features))
        else:
            raise StaysError(node, "compute this in the model: an export of Keras is that alone")


def _spec(module: Module, node: Any) -> str:
    given = arguments(node, ("dtype", "shape", "name"))
    shape = module.written(given["shape"]) if "shape" in given else "None"
    more = f", name={module.written(given['name'])}" if "name" in given else ""
    return f"{module.tf}.TensorSpec({shape}, {module.written(given['dtype'])}{more})"


_TRAIN = ("input_fn", "max_steps", "callbacks")
_EVAL = ("input_fn", "steps", "name", "callbacks", "exporters", "start_delay_secs", "throttle_secs")
_EXPORTERS = {
    "LatestExporter": ("name", "receiver", "assets_extra", "as_text", "exports_to_keep"),
    "FinalExporter": ("name", "receiver", "assets_extra", "as_text"),
    "BestExporter": ("name", "receiver", "event_file_pattern", "compare_fn", "assets_extra"),
}
_OF_EXPORTERS = {"name", "receiver", "exports_to_keep", "event_file_pattern"}
_STEPS = ast.Constant(100)  # of an EvalSpec that says none


class Specs:
    """The specs of a call of `train_and_evaluate`.

    Args:
        module: The file.
        call: The call.

    Attributes:
        train, evaluation: The arguments of the specs, by name.
        exporters: (kind, node of the name or None, node that names the serving function) of each.
        statements: The statements that make the specs and exporters.
    """

    def __init__(self, module: Module, call: Any):
        self._module, self._call = module, call
        given = arguments(call.node, ("train_spec", "eval_spec"))
        self.statements: list[Any] = []
        self.train = self._spec(given["train_spec"], _TRAIN)
        self.evaluation = self._spec(given["eval_spec"], _EVAL)
        self.evaluation.setdefault("steps", _STEPS)
        self.exporters = [self._exporter(one) for one in self._listed()]

    def _spec(self, node: Any, names: Any) -> Any:
        if isinstance(node, ast.Name):
            values = self._call.scope.bindings.get(node.id, ())
            value = values[0] if len(values) == 1 else None
            if not isinstance(value, ast.Call):
                raise StaysError(self._call.node, f"make {node.id} in one statement here")
            self.statements.append(parent_of(value))
            node = value
        if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith("Spec"):
            raise StaysError(self._call.node, "make its specs in statements here")
        return arguments(node, names)

    def _listed(self) -> Any:
        """The nodes of the exporters."""
        node = self._value(self.evaluation.get("exporters"))
        if node is None or getattr(node, "value", self) is None:
            return []
        return node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]

    def _value(self, node: Any) -> Any:
        """The value that a name is assigned, whose statement goes; another node as it is."""
        values = self._call.scope.bindings.get(getattr(node, "id", None), ())
        if len(values) != 1 or not isinstance(values[0], ast.expr):
            return node
        if parent_of(values[0]) not in self.statements:
            self.statements.append(parent_of(values[0]))
        return values[0]

    def _exporter(self, node: Any) -> Any:
        call = self._value(node)
        kind = ast.unparse(call.func).rpartition(".")[2] if isinstance(call, ast.Call) else ""
        if kind not in _EXPORTERS:
            raise StaysError(self._call.node, "make its exporters in statements here")
        given = arguments(call, _EXPORTERS[kind])
        if "serving_input_receiver_fn" in given:
            given["receiver"] = given.pop("serving_input_receiver_fn")
        odd = set(given) - _OF_EXPORTERS
        if odd:
            raise StaysError(call, f"an export of Keras has nothing for {min(odd)}")
        if "receiver" not in given:
            raise StaysError(call, "give this exporter a serving_input_receiver_fn")
        return kind, given.get("name"), given["receiver"]

    def is_endless(self) -> bool:
        """True if the evaluation ends with its data."""
        steps = self.evaluation["steps"]
        return isinstance(steps, ast.Constant) and steps.value is None


LOOP = ("estimator2strategy.KerasLoop",)
_LOOP_ARGUMENTS = (
    *("model_fn", "model_dir", "config", "params", "use_tpu"),
    *("train_batch_size", "eval_batch_size", "predict_batch_size"),
)
_UNKNOWN_CONFIG = "its config is made in a way that is not understood"
_ODD_CONFIG = "make its config by one call of RunConfig, with arguments by name"
_OPTIONS = {
    "model_dir", "tf_random_seed", "save_summary_steps", "save_checkpoints_steps", "tpu_config",
    "keep_checkpoint_max", "log_step_count_steps", "save_checkpoints_secs", "session_config",
    "cluster", "master",
}  # fmt: skip
_EXPORTS = ("export_saved_model", "export_savedmodel")
_CHECKPOINT = "keras.callbacks.ModelCheckpoint(path, save_weights_only=True, save_freq={every})"
TRAIN = '''
def train(model, data, max_steps, folder, callbacks=()):
    """Trains up to `max_steps`, from the folder's weights if any."""
    path = os.path.join(folder, "model.weights.h5")
    features, _ = next(iter(data))
{build}
    if os.path.exists(path):
        model.load_weights(path)
    steps = max_steps - int({iterations})
    if steps <= 0:
        return
    os.makedirs(folder, exist_ok=True)
    callbacks = [
{checkpoint}
        keras.callbacks.TensorBoard(folder, update_freq={summaries}),
        *callbacks,
    ]
    model.fit(data, steps_per_epoch=steps, callbacks=callbacks, verbose=2)
    model.save_weights(path)
'''
_BUILD = """\
    model(features)  # makes the variables
    model.optimizer.build(model.trainable_variables)"""
_BUILD_IN_SCOPE = "    with model.distribute_strategy.scope():\n" + indent(_BUILD, "    ")
PREDICT = '''
def predict(model, data):
    """Yields the predictions of each example."""
    for batch in data:
        features = batch[0] if isinstance(batch, tuple) else batch
        features = keras.tree.map_structure(keras.ops.convert_to_tensor, features)
        found = model.predict_on_batch(features)
        if isinstance(found, dict):
            yield from (dict(zip(found, row)) for row in zip(*found.values()))
        else:
            yield from found
'''
EXPORT = '''
def export(model, folder, inputs):
    """Writes a SavedModel into a new folder, and returns its path."""
    path = os.path.join(folder, str(int(time.time())))
    model.export(path, input_signature=[inputs], verbose=False)
    return path
'''
EXPORT_OF_SOME = '''
def export(model, folder, inputs):
    """Writes the predictions as a SavedModel, and returns its path."""
    path = os.path.join(folder, str(int(time.time())))

    def serve(features):
        outputs = model(features)
        return {served}

    archive = keras.export.ExportArchive()
    archive.track(model)
    archive.add_endpoint("serve", serve, input_signature=[inputs])
    archive.write_out(path, verbose=False)
    return path
'''
EXPORT_IF_BEST = '''
def export_if_best(model, folder, inputs, loss):
    """Exports a model whose loss is below that of all that were exported before."""
    path = os.path.join(folder, "best_loss.txt")
    if os.path.exists(path):
        with open(path) as best:
            if loss >= float(best.read()):
                return
    export(model, folder, inputs)
    with open(path, "w") as best:
        best.write(str(loss))
'''


def uses_tpu(made: Any) -> bool:
    """True for the call of a loop that may train on a TPU."""
    use_tpu = made.argument("use_tpu", _LOOP_ARGUMENTS.index("use_tpu"))
    return use_tpu is not None and bool(getattr(use_tpu, "value", True))


class LoopCalls:
    """The changes of a file that makes a KerasLoop of a model_fn.

    Args:
        module: The file.
        made: The call that makes the loop.
        model_class: The `ModelClass`.
        new_names: Spells the names of the model and of its optimizer, a `NewNames`.

    Attributes:
        helpers: The functions that the calls need, as texts.
        imports: The modules that these need.
        gone: Names of functions and classes that nothing reads any more.
    """

    def __init__(self, module: Module, made: Any, model_class: Any, new_names: Any):
        self.module, self.made, self._class = module, made, model_class
        self.limit = wrapping.line_limit_of(module.source.path)
        self._new_names = new_names
        self.helpers: list[Any] = []
        self.imports: list[Any] = []
        self.receivers: list[Any] = []
        self._gone: list[Any] = []
        self._rewriter = Rewriter(module, ())
        parent = made.node.parent
        if not isinstance(parent, ast.Assign) or not isinstance(parent.targets[0], ast.Name):
            raise StaysError(made.node, "give the loop a name, in a statement of its own")
        self._bound = parent.targets[0].id
        self._given = arguments(made.node, _LOOP_ARGUMENTS)
        self._use_tpu = self._given.get("use_tpu") if uses_tpu(made) else None
        self._config, self._config_statement = self._options()
        self.model = module.free("model", "keras_model") if made.scope.find("model") else "model"

    def _options(self) -> Any:
        """The options of the RunConfig, and the statement that makes it."""
        node, statement = self._given.get("config"), None
        if isinstance(node, ast.Name):
            scope = self.made.scope.find(node.id)
            values: Any = scope.bindings.get(node.id, ()) if scope else ()
            if len(values) != 1 or not isinstance(values[0], ast.Call):
                raise StaysError(self.made.node, _UNKNOWN_CONFIG)
            statement, node = parent_of(values[0]), values[0]
        if node is None or (isinstance(node, ast.Constant) and node.value is None):
            return {}, None
        if not isinstance(node, ast.Call) or not ast.unparse(node.func).endswith("RunConfig"):
            raise StaysError(node, _ODD_CONFIG)
        options = arguments(node, ("model_dir",))
        if unknown := set(options) - _OPTIONS:
            raise StaysError(node, f"fit has nothing for {', '.join(sorted(unknown))}")
        return options, statement

    def changes(self) -> Iterator[Any]:
        """Yields the changes of the statements around the loop."""
        if self._config_statement is not None:
            yield self.module.replace_statement(self._config_statement, "")
        yield self._made()
        for call in self.module.source.calls:
            function: Any = call.node.func
            is_method = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
            if is_method and function.value.id == self._bound:
                yield self._replaced(call)
        for statement in self._gone:
            yield self.module.replace_statement(statement, "")
        self._check_uses()

    def _check_uses(self) -> None:
        for node, scope in self.module.source.chains:
            root = node
            while isinstance(root, ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name) and root.id == self._bound:
                is_call = isinstance(parent_of(node), ast.Call) and parent_of(node).func is node
                if not is_call and scope is self.made.scope:
                    raise StaysError(node, "this reads the loop in a way that a model has not")

    def _text(self, node: Any) -> Any:
        return joined(self.module.written(node))

    def _made(self) -> Any:
        statement = self.made.node.parent
        params = self._text(self._given["params"]) if "params" in self._given else "None"
        lines = []
        if not params.isidentifier() and self.made.scope.find("params") is None:
            lines.append(f"params = {params}")
            params = "params"
        self._params = params
        given = params if "params" in self._class.takes else ""
        if "tf_random_seed" in self._config:
            seed = self._text(self._config["tf_random_seed"])
            lines.append(f"keras.utils.set_random_seed({seed})")
            self.imports.append("keras")
        named = self._given["model_fn"]
        model = self._new_names.spelled(named, self._class.name)
        optimizer = self._new_names.spelled(named, "make_optimizer")
        making = [
            f"{self.model} = {model}({given})",
            f"{self.model}.compile({optimizer}({given}))",
        ]
        lines += making if self._use_tpu is None else self._in_scope(making)
        return self.module.replace_statement(
            statement, self._wrapped(lines, statement), is_dedented=True
        )

    def _in_scope(self, lines: Any) -> Any:
        """The lines in the scope of a TPU's strategy."""
        self.helpers.append(optimizer_code.STRATEGY)
        cluster = f", {self._text(self._config['cluster'])}" if "cluster" in self._config else ""
        use_tpu = self._text(self._use_tpu)
        head = f"with make_strategy({use_tpu}{cluster}).scope():"
        return [head, *(f"    {line}" for line in lines)]

    def _wrapped(self, lines: Any, statement: Any) -> str:
        """Lines for the place of a statement."""
        indent = " " * statement.col_offset
        broken = (one for line in lines for one in wrapped(line, self.limit, indent))
        return "\n".join(line.removeprefix(indent) for line in broken)

    def _replaced(self, call: Any) -> Any:
        """The change for a method of the loop."""
        kinds = {"train": self._train, "evaluate": self._evaluate, "predict": self._predict}
        kinds |= dict.fromkeys(_EXPORTS, self._export)
        if call.last == "train_and_evaluate":
            return self._train_and_evaluate(call)
        if call.last not in kinds:
            raise StaysError(call.node, f"a Keras model has no {call.last}")
        node, text = kinds[call.last](call.node)
        statement = self.module.statement(node)
        if isinstance(statement, (ast.Expr, ast.Assign)) and self.module.is_alone(statement):
            whole = joined(self.module.written_with(statement, {node: text}))
            text = self._wrapped([whole], statement)
            return self.module.replace_statement(statement, text, is_dedented=True)
        return self.module.replace(node, text)

    def _data(self, node: Any, mode: Any) -> Any:
        """The call of an input_fn."""
        if isinstance(node, ast.Lambda) and not node.args.args:
            return self._text(node.body)
        if not isinstance(node, (ast.Name, ast.Attribute)):
            raise StaysError(node, "name the input_fn, or write it as a lambda")
        function = self.module.program.defined(node)
        if not isinstance(function, ast.FunctionDef):
            raise StaysError(node, "its input_fn is made in a way that is not understood")
        required = function.args.args[: len(function.args.args) - len(function.args.defaults)]
        size = self._given.get(f"{mode}_batch_size")
        given = []
        for argument in required:
            if argument.arg != "params":
                raise StaysError(node, f"its input_fn takes {argument.arg}, which a model has not")
            params = self._params
            if size is not None:
                params = f'{{**{params}, "batch_size": {self._text(size)}}}'
            given.append(params)
        return f"{self._text(node)}({', '.join(given)})"

    def _train_and_evaluate(self, call: Any) -> Any:
        """Training, and then an evaluation."""
        specs = Specs(self.module, call)
        statement = self.module.statement(call.node)
        if not isinstance(statement, ast.Expr):
            raise StaysError(call.node, "take its results from an evaluation behind it")
        self._gone += specs.statements
        train = self._training(call.node, specs.train)
        given = dict(specs.evaluation)
        data = self._data(given["input_fn"], "eval")
        steps = "" if specs.is_endless() else f", steps={self._text(given['steps'])}"
        evaluate = f"{self.model}.evaluate({data}{steps}, verbose=2, return_dict=True)"
        if any(kind == "BestExporter" for kind, *_ in specs.exporters):
            evaluate = f"results = {evaluate}"
        note = "# An Estimator also evaluates at its checkpoints: validation_data of fit does."
        exports = [self._exporter(*exporter) for exporter in specs.exporters]
        text = self._wrapped([train, note, evaluate, *exports], statement)
        return self.module.replace_statement(statement, text, is_dedented=True)

    def _exporter(self, kind: Any, name: Any, receiver: Any) -> Any:
        """The export in the place of an exporter, behind the evaluation."""
        name = '"best_exporter"' if name is None else self._text(name)
        folder = f'os.path.join({self._text(self._folder())}, "export", {name})'
        called = self._export_of(receiver, folder)
        if kind != "BestExporter":
            return called
        export, _, given = called.partition("(")
        best = self._helper(EXPORT_IF_BEST.replace("    export(", f"    {export}("), "os")
        return f'{best}({given.removesuffix(")")}, results["loss"])'

    def _train(self, node: Any) -> Any:
        given = arguments(node, ("input_fn", "callbacks", "steps", "max_steps"))
        return node, self._training(node, given)

    def _training(self, node: Any, given: Any) -> str:
        """The call of `train`."""
        data = self._data(given["input_fn"], "train")
        steps = given.get("max_steps") or given.get("steps")
        if steps is None:
            raise StaysError(node, "say max_steps: fit has to know when to stop")
        every = self._option("save_checkpoints_steps", "1000")
        summaries = self._option("save_summary_steps", "100")
        for option in (every, summaries):
            if not option.replace("_", "").isdigit():
                raise StaysError(node, "write the number of steps between checkpoints as a number")
        checkpoint = _CHECKPOINT.format(every=every)
        wrapped_checkpoint = "\n".join(wrapped(checkpoint, self.limit - 1, " " * 8)) + ","
        build, iterations = _BUILD, "model.optimizer.iterations"
        if self._use_tpu is not None:
            build, iterations = _BUILD_IN_SCOPE, f"{iterations}.numpy()"
        if self._class.several is not None:
            one = "model.optimizer.build(model.trainable_variables)"
            build = build.replace(one, "model.build_optimizers()")
        text = TRAIN.format(
            checkpoint=wrapped_checkpoint, summaries=summaries, build=build, iterations=iterations
        )
        train = self._helper(text, "keras", "os")
        more = f", {self._text(given['callbacks'])}" if "callbacks" in given else ""
        folder, steps = self._text(self._folder()), self._text(steps)
        return f"{train}({self.model}, {data}, {steps}, {folder}{more})"

    def _helper(self, text: Any, *imports: Any) -> Any:
        """The name of a function that the calls need; the file gets its text, and these imports."""
        name = text.partition("def ")[2].partition("(")[0]
        free = self.module.free(name, f"{name}_model")
        text = text.replace(f"def {name}(", f"def {free}(")
        if text not in self.helpers:
            self.helpers.append(text)
            self.imports += imports
        return free

    def _folder(self) -> Any:
        folder = self._given.get("model_dir") or self._config.get("model_dir")
        if folder is None:
            raise StaysError(self.made.node, "give it a model_dir")
        return folder

    def _option(self, name: Any, default: Any) -> Any:
        return self._text(self._config[name]) if name in self._config else default

    def _evaluate(self, node: Any) -> Any:
        given = arguments(node, ("input_fn", "steps", "callbacks", "checkpoint_path", "name"))
        if "checkpoint_path" in given:
            raise StaysError(node, "load the weights of the checkpoint before evaluate")
        data = self._data(given["input_fn"], "eval")
        steps = f", steps={self._text(given['steps'])}" if "steps" in given else ""
        return node, f"{self.model}.evaluate({data}{steps}, verbose=0, return_dict=True)"

    def _predict(self, node: Any) -> Any:
        given = arguments(node, ("input_fn", "predict_keys", "callbacks", "checkpoint_path"))
        if set(given) - {"input_fn"}:
            raise StaysError(node, "take the predictions of all keys, with the weights as they are")
        data = self._data(given["input_fn"], "predict")
        predict = self._helper(PREDICT, "keras")
        return node, f"{predict}({self.model}, {data})"

    def _export(self, node: Any) -> Any:
        given = arguments(node, ("folder", "receiver"))
        receiver = given.get("receiver") or given.get("serving_input_receiver_fn")
        if set(given) - {"folder", "receiver", "serving_input_receiver_fn", "export_dir_base"}:
            raise StaysError(node, "an export of Keras writes the model alone")
        folder = self._text(given.get("folder") or given["export_dir_base"])
        outer = node.parent
        if isinstance(outer, ast.Attribute) and outer.attr == "decode":
            node = parent_of(outer)  # the path is a string already
        return node, self._export_of(receiver, folder)

    def _export_of(self, receiver: Any, folder: Any) -> str:
        """The call of `export`."""
        if not isinstance(receiver, (ast.Name, ast.Attribute)):
            raise StaysError(receiver or self.made.node, "name the serving_input_receiver_fn")
        self.receivers.append(receiver)
        served = self._class.served
        text = EXPORT_OF_SOME.replace("{served}", served) if served else EXPORT
        export = self._helper(text, "keras", "os", "time")
        return f"{export}({self.model}, {folder}, {self._text(receiver)}())"
