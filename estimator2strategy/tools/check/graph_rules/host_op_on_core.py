"""Python, files, prints and queues in the part of a model that a TPU executes."""

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.graph_samples import tpu_model
from estimator2strategy.tools.check.host_op_table import HOST_OPS
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S606",
    "host-op-on-core",
    Severity.ERROR,
    title="An op that only a host can execute, in what a core executes",
    why="A core has no Python, no files, no console and no queues. TensorFlow's compiler refuses "
    "the whole step for one such op, and names the first it meets.",
    fix="In input_fn, metric_fn and host_call such ops are fine: move it there, or leave it out.",
    bad=tpu_model(
        "hidden = tf.py_func(lambda h: h, [hidden], tf.float32); hidden.set_shape([None, 4])"
    ),
    good=tpu_model(),
    level=Evidence.RECORDED,
)
def find(recorded, subject):
    if not recorded.on_cores:
        return
    for op in recorded.core_ops:
        for inner in (op.type, *recorded.called_by(op)):
            if inner in HOST_OPS:
                where = "" if inner == op.type else f", in a function that {op.type} calls"
                yield Hit(op, f"{recorded.mode}: {inner} ({HOST_OPS[inner]}){where}")
