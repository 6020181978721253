"""Switches of the whole process in a file that has moved."""

from estimator2strategy.tools.check import symbol_uses
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit, rule

_SWITCHES = {
    "tf.disable_v2_behavior",
    "tf.disable_eager_execution",
    "tf.disable_resource_variables",
    "tf.disable_control_flow_v2",
    "tf.disable_v2_tensorshape",
    "tf.disable_tensor_equality",
}


@rule(
    "E2S506",
    "behaviour-switch",
    Severity.WARNING,
    title="TensorFlow's behaviour of 1.x switched on for the process that uses this package",
    why="This package gives legacy code the world of TF1 where it needs it, and leaves the "
    "process as it is. With v2 behaviour off, tf.function, Keras 3 and its own replay run in "
    "graph mode, and fail.",
    fix="Remove the line.",
    bad="""\
import tensorflow as tf
from estimator2strategy import estimator

tf.compat.v1.disable_v2_behavior()
run_config = estimator.RunConfig()
""",
    good="""\
import tensorflow as tf
from estimator2strategy import estimator

run_config = estimator.RunConfig()
""",
)
def find(source, context):
    if "estimator2strategy" not in source.modules:
        return
    for call in source.calls:
        if call.name in _SWITCHES:
            raw = source.resolve(call.node.func, call.scope)
            if symbol_uses.flavour(raw) is not symbol_uses.Flavour.FACADE:
                yield Hit(call.node, f"{call.last} changes the whole process")
