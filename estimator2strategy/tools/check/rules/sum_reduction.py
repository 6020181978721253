"""CrossShardOptimizer with a sum for a mean."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S205",
    "summed-gradients",
    Severity.INFO,
    title="CrossShardOptimizer with reduction=SUM",
    why="The gradients of the cores are added, not averaged: the step grows with the number of "
    "cores. That is right only for a loss that was divided by the global batch size.",
    fix="Make sure that the loss is a sum over examples divided by the global batch size.",
    bad="""\
import tensorflow as tf

optimizer = tf.tpu.CrossShardOptimizer(
    tf.train.AdamOptimizer(0.1), reduction=tf.losses.Reduction.SUM)
""",
    good="""\
import tensorflow as tf

optimizer = tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(0.1))
""",
)
def find(source, context):
    for call in source.calls:
        reduction = (
            call.argument("reduction", 1) if is_tf(call.name, "CrossShardOptimizer") else None
        )
        if reduction is not None and is_tf(source.name(reduction, call.scope), "SUM"):
            yield Hit(call.node, "the gradients of the cores are added, not averaged")
