"""Sums where one device has a mean."""

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.graph_samples import VARIED_INPUT
from estimator2strategy.tools.check.rule import rule

_MODEL = """\
def model_fn(features, labels, mode, params):
    error = tf.square(labels - tf.layers.dense(features["x"], 1))
    loss = tf.reduce_{reduction}(error)
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(1e-4))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)
"""


@rule(
    "E2S621",
    "sum-for-mean",
    Severity.WARNING,
    title="A loss or gradients that are so many times another as there are cores",
    why="CrossShardOptimizer takes the mean over the cores of what each core makes of its part of "
    "the batch. A loss that is a sum over its examples, or reduction=SUM, then gives gradients "
    "that depend on the number of cores: the learning rate means something else on each.",
    fix="Take the mean over the examples (tf.reduce_mean, Reduction.SUM_OVER_BATCH_SIZE) and leave "
    "CrossShardOptimizer its mean; or scale the learning rate by the number of cores, and know it.",
    bad=VARIED_INPUT + _MODEL.format(reduction="sum"),
    good=VARIED_INPUT + _MODEL.format(reduction="mean"),
    level=Evidence.REPLICATED,
)
def find(recorded, subject):
    return ()  # found by levels/causes.py
