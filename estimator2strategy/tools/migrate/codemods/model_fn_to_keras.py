"""A model_fn becomes a `keras.Model`, and its KerasLoop `compile`, `fit` and an export."""

import ast
import re
from pathlib import Path

from estimator2strategy.tools.migrate.codemod import SafetyTier, Sample, Todo, codemod
from estimator2strategy.tools.migrate.model_class import line_limit, loop_calls, serving
from estimator2strategy.tools.migrate.model_class.model_class import ModelClass
from estimator2strategy.tools.migrate.model_class.model_fn_parts import read
from estimator2strategy.tools.migrate.model_class.rewriting import StaysError

_HOOKS = ("tf.train.SessionRunHook", "tf.estimator.SessionRunHook")
_GLOBAL_STEP = "self.model.global_step"
# Names of files that say nothing about a model.
_PLAIN = {"model", "train", "trainer", "main", "task", "program", "estimator", "run"}


@codemod(
    "model-fn-to-keras",
    stage=8,
    tier=SafetyTier.REVIEW,
    title="A model_fn becomes a `keras.Model`, and its loop `compile` and `fit`",
    why="The layers, tables and metrics that model_fn makes, the model makes in `__init__`; the "
    "statements that do not read labels are its `call`, those that do are `compute_loss`, and the "
    "metrics are counted in `compute_metrics`. Names and comments stay. Regularizers add to "
    "`losses`, batch norm updates itself. The loop becomes `compile` and `fit` in a function "
    "`train`, which goes on from the weights in model_dir; serving functions return the signature "
    "of an export. Where something has no place in a model, nothing changes, and a mark at the "
    "line says why.",
    proof="tests/ladder: programs that go from TensorFlow 1.15 to this stage, with equal losses. "
    "First weights are drawn by Keras: hand the old ones on (checkpoints.md). The moving variance "
    "of batch norm on images lacks the factor n / (n - 1) ([table](#batch-normalization)). `call` "
    "also returns what the loss reads. TensorBoard's summaries need the package tensorboard.",
    samples=[
        Sample(
            "from estimator2strategy import KerasLoop\n"
            "import estimator2strategy.tf1 as tf\n\n\n"
            "def model_fn(features, labels, mode):\n"
            "    y = tf.layers.dense(features, 1, name='y')\n"
            "    loss = tf.losses.mean_squared_error(labels, y)\n"
            "    optimizer = tf.keras.optimizers.SGD(learning_rate=0.1)\n"
            "    optimizer.iterations = tf.train.get_or_create_global_step()\n"
            "    train_op = optimizer.apply_gradients(zip("
            "tf.gradients(loss, tf.trainable_variables()), tf.trainable_variables()))\n"
            "    return tf.estimator.EstimatorSpec(mode, y, loss, train_op)\n\n\n"
            "def evaluate(input_fn):\n"
            "    loop = KerasLoop(model_fn, 'model')\n"
            "    print(loop.evaluate(lambda: input_fn(False)))\n",
            "import keras\n"
            "from estimator2strategy import KerasLoop\n"
            "import estimator2strategy.tf1 as tf\n\n\n"
            "class KerasModel(keras.Model):\n"
            '    """The model of `model_fn`."""\n\n'
            "    def __init__(self):\n"
            "        super().__init__()\n"
            '        self.y = keras.layers.Dense(1, name="y")\n'
            '        self.mean_loss = keras.metrics.Mean(name="mean_loss")\n\n'
            "    def call(self, features, training=False):\n"
            "        y = self.y(features)\n"
            "        return y\n\n"
            "    def compute_loss(self, x, y, y_pred, sample_weight=None, training=True):\n"
            "        labels, y = y, y_pred\n"
            "        loss = keras.losses.MeanSquaredError()(labels, y)\n"
            "        # A short last batch counts as a whole one, as in an Estimator.\n"
            "        self.mean_loss.update_state(loss)\n"
            "        return loss\n\n"
            "    def compute_metrics(self, x, y, y_pred, sample_weight=None):\n"
            '        return {"loss": self.mean_loss.result()}\n\n\n'
            "def make_optimizer():\n"
            '    """The optimizer, and its learning rate."""\n'
            "    return keras.optimizers.SGD(learning_rate=0.1)\n\n\n"
            "def evaluate(input_fn):\n"
            "    model = KerasModel()\n"
            "    model.compile(make_optimizer())\n"
            "    print(model.evaluate(input_fn(False), verbose=0, return_dict=True))\n",
        ),
    ],
    unchanged=["import tensorflow as tf\n\nloop = KerasLoop(model_fn)\n"],
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
    parts = read(module, function)
    model = ModelClass(module, function, parts, name, limit)
    text = model.text()
    calls = loop_calls.LoopCalls(module, made, name, model.takes, limit)
    found = list(calls.changes())
    for receiver in dict.fromkeys(calls.receivers):
        found += serving.changes(module, receiver)
    helpers = "".join(f"\n\n{helper}" for helper in calls.helpers)
    needed = tuple((one, None, None) for one in dict.fromkeys(["keras", *calls.imports]))
    hooks = [*_hooks(module), *_dataset_functions(module)]
    yield module.replace_statement(function, f"{text.rstrip()}{helpers.rstrip()}\n", needed)
    yield from found
    for hook in hooks:
        yield module.replace_statement(hook, "")
    yield from _others(module, [function, *hooks])


def _hooks(module):
    """The hooks that have a callback beside them, and that nothing makes any more."""
    for node, _ in module.source.classes:
        bases = {module.name(base, module.source.scope) for base in node.bases}
        if bases & set(_HOOKS) and f"{node.name}Callback" in module.source.scope.bindings:
            uses = (n for n, _ in module.source.chains if isinstance(n, ast.Name))
            if not any(n.id == node.name for n in uses):
                yield node


def _dataset_functions(module):
    """The function that stage 4 added for strategies, if nothing calls it."""
    for node, _ in module.source.functions:
        uses = (n for n, _ in module.source.chains if isinstance(n, ast.Name) and n.id == node.name)
        if node.name == "dataset_fn_of" and isinstance(node.parent, ast.Module) and not any(uses):
            yield node


def _others(module, gone):
    """Names of tf-keras and of a LegacyModel, in what stays of the file."""
    inside = {inner for statement in gone for inner in ast.walk(statement)}
    for node, name in module.uses("tf.keras"):
        if node not in inside:
            yield module.replace(node, name.removeprefix("tf."))
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
