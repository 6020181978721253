"""`train(input_fn())`."""

import ast

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.estimator_programs import given_input, returned, runs
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S307",
    "input-made-outside",
    Severity.ERROR,
    title="train, evaluate or predict given a dataset made outside of input_fn",
    why="Estimator calls input_fn inside of a graph of its own. A Dataset or a tensor that was "
    "made before belongs to another graph: ValueError '... is not from the same graph'. A "
    "call in place of the function is refused as well.",
    fix="Give the function itself, and make the dataset in it.",
    guide="inputs.md",
    bad="""\
import tensorflow as tf

def main():
    estimator = tf.estimator.Estimator(model_fn=None)
    data = tf.data.TFRecordDataset("train.tfrecord")
    estimator.train(lambda: data, steps=10)
""",
    good="""\
import tensorflow as tf

def main():
    estimator = tf.estimator.Estimator(model_fn=None)
    estimator.train(lambda: tf.data.TFRecordDataset("train.tfrecord"), steps=10)
""",
)
def find(source, context):
    for call, _ in runs(source):
        given = given_input(call)
        if isinstance(given, ast.Lambda) and isinstance(given.body, ast.Name):
            if _is_dataset(source.call(given.body, call.scope)):
                yield Hit(given, f"{given.body.id} is made outside of the function that returns it")
        elif isinstance(given, ast.Call):
            called = context.project.definition(source.resolve(given.func, call.scope))
            is_function = called is not None and not isinstance(called.node, ast.ClassDef)
            if is_function and _returns_dataset(called):
                yield Hit(given, f"{called.node.name} is called here, and returns a dataset")


def _is_dataset(call):
    """True if a chain of calls starts in tf.data: `tf.data.TFRecordDataset(f).map(g).batch(8)`."""
    seen = set()
    while call is not None and call.node not in seen:
        seen.add(call.node)
        if (call.name or "").startswith("tf.data."):
            return True
        function = call.node.func
        inner = function.value if isinstance(function, ast.Attribute) else None
        call = call.source.call(inner, call.scope)
    return False


def _returns_dataset(definition):
    values = returned(definition.node)
    return any(_is_dataset(definition.source.call(v, definition.scope)) for v in values)
