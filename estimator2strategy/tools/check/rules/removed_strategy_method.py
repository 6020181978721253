"""Methods of strategies that are gone."""

import ast

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit, rule

_METHODS = {
    "experimental_run_v2": "run",
    "experimental_local_results_v2": "experimental_local_results",
    "experimental_make_numpy_dataset": "tf.data.Dataset.from_tensor_slices",
    "call_for_each_replica": "run",
}


@rule(
    "E2S508",
    "removed-strategy-method",
    Severity.ERROR,
    title="A method of a tf.distribute strategy that is gone",
    why="The method was experimental, and has another name in TensorFlow 2.16: AttributeError.",
    fix="See the message.",
    target="tf2",
    bad="""\
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
strategy.experimental_run_v2(lambda: None)
""",
    good="""\
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()
strategy.run(lambda: None)
""",
)
def find(source, context):
    for call in source.calls:
        function = call.node.func
        if call.last not in _METHODS or not isinstance(function, ast.Attribute):
            continue
        owner = ast.unparse(function.value).lower()
        if "strategy" in owner and "tf." not in owner and ".extended" not in owner:
            instead = _METHODS[call.last]
            yield Hit(call.node, f".{call.last}() is gone", fix=f"Use {instead}.")
