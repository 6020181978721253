"""Switches of the whole process in a file that has moved."""

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader import symbol_uses

_SWITCHES = {
    "tf.disable_v2_behavior",
    "tf.disable_eager_execution",
    "tf.disable_resource_variables",
    "tf.disable_control_flow_v2",
    "tf.disable_v2_tensorshape",
    "tf.disable_tensor_equality",
}


def find(source, context):
    if "estimator2strategy" not in source.modules:
        return
    for call in source.calls:
        if call.name in _SWITCHES:
            raw = source.resolve(call.node.func, call.scope)
            if symbol_uses.flavour(raw) is not symbol_uses.Flavour.FACADE:
                yield Hit(call.node, f"{call.last} changes the whole process")
