"""Checks for NaN of a value that no longer has it."""

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.tools.check.rule import Hit

_CHECKS = frozenset({"CheckNumerics", "CheckNumericsV2", "IsFinite", "IsNan"})
# A NaN that one of these is given comes out again.
_PASS_ON = frozenset(
    {"Abs", "Cast", "ExpandDims", "Identity", "Neg", "Reshape", "Sqrt", "Square", "Squeeze"}
)


def find(recorded, subject):
    nodes = recorded.nodes
    for op in recorded.operations:
        if op.type not in _CHECKS or not recorded.in_model(op):
            continue
        checked = input_node(op.inputs[0].name)
        while nodes[checked].op in _PASS_ON:
            checked = input_node(nodes[checked].input[0])
        if _loses_nan(nodes, nodes[checked]):
            kind = nodes[checked].op
            yield Hit(op, f"{recorded.mode}: {op.type} of a {kind}, which loses NaN when compiled")


def _loses_nan(nodes, node):
    """True if XLA's program may take a number where `node` is given a NaN."""
    if node.op in {"Maximum", "Minimum"}:
        # The first argument's NaN stays, so max(x, 0) keeps it.
        return nodes[input_node(node.input[1])].op != "Const"
    return node.op in {"Max", "Min"}
