"""Cores that train each for itself."""

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.graph_samples import tpu_model
from estimator2strategy.tools.check.levels.request import Mode
from estimator2strategy.tools.check.rule import Hit, rule

_ALONE = """\
    optimizer = tf.train.AdamOptimizer(0.1)
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)
"""
_SUM = "CrossReplicaSum"


@rule(
    "E2S611",
    "no-sum-over-cores",
    Severity.ERROR,
    title="A trainable variable that each core changes by its own gradient alone",
    why="Without a sum over the cores they drift apart, and each keeps what it saw of the data. "
    "TPUEstimator refuses a train_op without any; where one optimizer of two is wrapped, or some "
    "gradients are applied by hand, nobody complains.",
    fix="Wrap each optimizer: tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(...)).",
    bad=tpu_model(train_op=_ALONE),
    good=tpu_model(),
    level=Evidence.RECORDED,
)
def find(recorded, subject):
    if not (recorded.on_cores and recorded.mode == Mode.TRAIN):
        return
    nodes = recorded.nodes
    trainable = {v.op.name: v.op for v in recorded.graph.get_collection("trainable_variables")}
    fed = {tensor.op.name for tensor in recorded.fed}
    for op in recorded.core_ops:
        for name in recorded.writes(op) & set(trainable):
            # A value that a core computes from its batch, and that no sum has made common.
            if fed & recorded.behind([op.name], stop_at={_SUM}, only_data=True) or (
                recorded.refused and not any(n.op == _SUM for n in nodes.nodes)
            ):
                yield Hit(
                    op, f"each core changes {name!r} by what it makes of its own part of the batch"
                )
