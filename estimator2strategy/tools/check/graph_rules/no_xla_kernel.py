"""Ops that no TPU compiler knows."""

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.graph_samples import tpu_model
from estimator2strategy.tools.check.host_op_table import HOST_OPS
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S602",
    "no-xla-kernel",
    Severity.ERROR,
    title="An op in what a core executes that XLA has no kernel for",
    why="A TPU executes what XLA can compile. TensorFlow's own registry of XLA kernels (for CPUs, "
    "which is the one that comes with it) has none for this op, or none for this type. TensorFlow "
    "would name the first such op only; these are all. A TPU may have a kernel that a CPU has not: "
    "--levels tpu-compiled asks the TPU compiler.",
    fix="Write it with other ops (a segment_sum as unsorted_segment_sum, a determinant by lu), or "
    "move it to input_fn, or to a host_call.",
    bad=tpu_model("hidden *= tf.linalg.det(tf.matmul(hidden, hidden, transpose_a=True))"),
    good=tpu_model("hidden *= tf.trace(tf.matmul(hidden, hidden, transpose_a=True))"),
    level=Evidence.RECORDED,
)
def find(recorded, subject):
    if not recorded.on_cores or recorded.recording is None:
        return
    # Not at the top: rules are read without TensorFlow.
    from estimator2strategy.engine.xla.core_program import core_program
    from estimator2strategy.engine.xla.kernels import described, unsupported

    for found in unsupported(core_program(recorded.recording)):
        if found.op not in HOST_OPS:  # E2S606
            message, fix = described(found)
            op = recorded.graph.get_operation_by_name(found.node)
            yield Hit(op, message, fix=fix)
