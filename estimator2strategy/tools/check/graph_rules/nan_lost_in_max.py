"""Checks for NaN of a value that no longer has it."""

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.graph_samples import HOST_INPUT
from estimator2strategy.tools.check.rule import Hit, rule

_CHECKS = frozenset({"CheckNumerics", "CheckNumericsV2", "IsFinite", "IsNan"})
# A NaN that one of these is given comes out again.
_PASS_ON = frozenset(
    {"Abs", "Cast", "ExpandDims", "Identity", "Neg", "Reshape", "Sqrt", "Square", "Squeeze"}
)

_MODEL = (
    HOST_INPUT
    + """\
def model_fn(features, labels, mode):
    error = tf.square(labels - tf.layers.dense(features["x"], 1))
    bad = BAD
    loss = tf.where(bad, 0.0, tf.reduce_mean(error))
    step = tf.train.get_global_step()
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
"""
)


@rule(
    "E2S614",
    "nan-lost-in-max",
    Severity.INFO,
    title="A check for NaN of a maximum or minimum, which may have lost it",
    why="XLA's programs for a CPU (jit_compile=True) take the larger number: reduce_max([nan, 1]) "
    "is 1 there and maximum(1, nan) is 1, so that the check finds nothing. TensorFlow's kernels "
    "give NaN.",
    fix="Check the tensor itself: tf.reduce_any(tf.is_nan(x)), or tf.check_numerics(x). Or set "
    "XLA_FLAGS=--xla_cpu_enable_fast_min_max=false, which keeps NaN.",
    bad=_MODEL.replace("BAD", "tf.is_nan(tf.reduce_max(error))"),
    good=_MODEL.replace("BAD", "tf.reduce_any(tf.is_nan(error))"),
    level=Evidence.RECORDED,
    guide="compiled.md",
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
