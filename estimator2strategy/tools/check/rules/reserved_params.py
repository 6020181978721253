"""params keys that TPUEstimator sets itself."""

import ast

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S202",
    "reserved-params",
    Severity.ERROR,
    title="params of a TPUEstimator with a key that it sets itself",
    why="TPUEstimator puts 'batch_size' and 'context' into params, and refuses a program that "
    "does: ValueError '... are reserved keys'.",
    fix="Give the size as train_batch_size, and so on; use another key for one of your own.",
    bad="""\
import tensorflow as tf

estimator = tf.estimator.tpu.TPUEstimator(
    model_fn=None, config=None, train_batch_size=64, params={"batch_size": 64})
""",
    good="""\
import tensorflow as tf

estimator = tf.estimator.tpu.TPUEstimator(
    model_fn=None, config=None, train_batch_size=64, params={"hidden_size": 64})
""",
)
def find(source, context):
    for call in source.calls:
        if not is_tf(call.name, "TPUEstimator"):
            continue
        params = call.argument("params", 3)
        if params is None:
            continue
        found = source.assigned(params, call.scope)
        value, _scope = found or (params, call.scope)
        for key, node in _items(value):
            if key in ("batch_size", "context"):
                yield Hit(node, f"{key!r} is a reserved key of a TPUEstimator's params")


def _items(value):
    if isinstance(value, ast.Dict):
        for key in value.keys:
            if isinstance(key, ast.Constant):
                yield key.value, key
    elif (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "dict"
    ):
        for keyword in value.keywords:
            yield keyword.arg, keyword.value
