"""A model_fn becomes a `keras.Model`, and its KerasLoop `compile`, `fit` and an export."""

import ast
import re
from pathlib import Path

from estimator2strategy.tools.migrate.codemod import SafetyTier, Todo, codemod
from estimator2strategy.tools.migrate.model_class import line_limit, loop_calls, serving, values
from estimator2strategy.tools.migrate.model_class.helper_functions import Helpers
from estimator2strategy.tools.migrate.model_class.model_class import ModelClass
from estimator2strategy.tools.migrate.model_class.model_fn_parts import read
from estimator2strategy.tools.migrate.model_class.rewriting import Rewriter, StaysError

_HOOKS = ("tf.train.SessionRunHook", "tf.estimator.SessionRunHook")
# For strategies by stage 4, for the cores of a TPU by stage 5.
ADDED = ("dataset_fn_of", "mean_over_cores")
_GLOBAL_STEP = "self.model.global_step"
# Names of files that say nothing about a model.
_PLAIN = {"model", "train", "trainer", "main", "task", "program", "estimator", "run"}


@codemod(
    "model-fn-to-keras",
    stage=8,
    tier=SafetyTier.REVIEW,
    settles=("estimator-to-fit",),
    title="A model_fn becomes a `keras.Model`, and its loop `compile` and `fit`",
    why="The layers, tables and metrics that model_fn makes, the model makes in `__init__`; the "
    "statements that do not read labels are its `call`, those that do are `compute_loss`, and the "
    "metrics are counted in `compute_metrics`. Names and comments stay. Regularizers add to "
    "`losses`, batch norm updates itself. Functions that make layers become `keras.layers.Layer`, "
    "layers in a loop a list; several optimizers become a `train_step`. The loop becomes `compile` "
    "and `fit` in a function `train`, which goes on from the weights in model_dir; serving "
    "functions return the signature of an export. Where something has no place in a model, nothing "
    "changes, and a mark at the line says why.",
    proof="tests/ladder: programs that go from TensorFlow 1.15 to this stage, with equal losses. "
    "First weights are drawn by Keras: hand the old ones on (checkpoints.md). The moving variance "
    "of batch norm on images lacks the factor n / (n - 1) ([table](#batch-normalization)). `call` "
    "also returns what the loss reads. TensorBoard's summaries need the package tensorboard.",
)
def find(module):
    if module.tf is None:
        return
    for call in module.source.calls:
        if module.source.name(call.node.func, call.scope) in loop_calls.LOOP:
            try:
                yield from _changes(module, call)
            except StaysError as stays:
                yield Todo(stays.node, stays.message)


def _changes(module, made):
    function = _model_fn(module, made)
    name = _class_name(module, function)
    limit = line_limit.of(module.source.path)
    helpers = Helpers(module, function, limit)
    parts = read(module, function, helpers)
    model = ModelClass(
        module, function, parts, name, limit, helpers, is_on_cores=loop_calls.uses_tpu(made)
    )
    helpers.learn(model)
    text = model.text()
    calls = loop_calls.LoopCalls(
        module, made, name, model.takes, limit, several_optimizers=model.several is not None
    )
    found = list(calls.changes())
    for receiver in dict.fromkeys(calls.receivers):
        found += serving.changes(module, receiver)
    functions = "".join(f"\n\n{function}" for function in calls.helpers)
    needed = tuple((one, None, None) for one in dict.fromkeys(["keras", *calls.imports]))
    gone = [*_hooks(module), *_functions(module, model)]
    yield module.replace_statement(function, f"{text.rstrip()}{functions.rstrip()}\n", needed)
    yield from helpers.changes()
    yield from found
    for one in gone:
        yield module.replace_statement(one, "")
    yield from _others(module, [function, *helpers.functions(), *gone])


def _hooks(module):
    """The hooks that have a callback beside them, and that nothing makes any more."""
    for node, _ in module.source.classes:
        bases = {module.name(base, module.source.scope) for base in node.bases}
        if bases & set(_HOOKS) and f"{node.name}Callback" in module.source.scope.bindings:
            uses = (n for n, _ in module.source.chains if isinstance(n, ast.Name))
            if not any(n.id == node.name for n in uses):
                yield node


def _functions(module, model):
    """The functions that earlier stages added, and metric_fn, if nothing else calls them."""
    of_model = {*ast.walk(model.function)}
    for node, _ in module.source.functions:
        uses = (n for n, _ in module.source.chains if isinstance(n, ast.Name) and n.id == node.name)
        is_known = node.name in ADDED or node is model.eval_metrics.function
        is_read = any(n not in of_model for n in uses)
        if is_known and isinstance(node.parent, ast.Module) and not is_read:
            yield node


def _others(module, gone):
    """Names of tf-keras and of a LegacyModel, in what stays of the file."""
    inside = {inner for statement in gone for inner in ast.walk(statement)}
    for node, name in module.uses("tf.keras"):
        if node not in inside:
            yield module.replace(node, name.removeprefix("tf."))
    making = Rewriter(module, (values.initializer, values.regularizer))
    for call in module.source.calls:
        if call.node not in inside and any(rule(call.node, making) for rule in making.rules):
            yield module.replace(call.node, making.text(call.node))
    for node, _ in module.source.chains:
        written = node not in inside and module.written(node)
        if written == _GLOBAL_STEP:
            yield module.replace(node, "int(self.model.optimizer.iterations)")


def _model_fn(module, made):
    node = made.argument("model_fn", 0)
    values = module.source.scope.bindings.get(getattr(node, "id", None), ())
    if len(values) != 1 or not isinstance(values[0], ast.FunctionDef):
        raise StaysError(made.node, "its model_fn is no function of this file: bring it here first")
    return values[0]


def _class_name(module, function):
    """The name of the model: that of its function, or of the file."""
    base = re.sub(r"_?model_?fn_?", "_", function.name).strip("_")
    if not base:
        stem = Path(module.source.path).stem
        base = "" if stem in _PLAIN or not stem.isidentifier() else stem
    words = [word for word in base.split("_") if word]
    name = "".join(word.capitalize() for word in words) + "Model" if words else "KerasModel"
    return module.free(name, f"{name}OfKeras")
