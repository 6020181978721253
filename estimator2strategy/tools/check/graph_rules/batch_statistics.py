"""Batch norm on cores."""

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.graph_samples import VARIED_INPUT
from estimator2strategy.tools.check.rule import rule

_MODEL = """\
def model_fn(features, labels, mode, params):
    hidden = tf.layers.dense(features["x"], 4)
    hidden = tf.layers.batch_normalization(hidden, training={training})
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(hidden, 1))
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)
"""


@rule(
    "E2S620",
    "batch-statistics",
    Severity.WARNING,
    title="Batch norm, or another mean over the batch, that each core takes over its own part",
    why="Each core normalises with the mean and variance of its part of the batch; one device, "
    "with use_tpu=False, with those of the whole. That is how TPUs always trained: accuracy may "
    "depend on the batch size per core, and a run on one device is no reference for one on a TPU.",
    fix="To compare runs, use as many cores as before. If it is to be the same on any number, "
    "average the moments over the cores with tf.tpu.cross_replica_sum.",
    bad=VARIED_INPUT + _MODEL.format(training='mode == "train"'),
    good=VARIED_INPUT + _MODEL.format(training="False"),
    level=Evidence.REPLICATED,
)
def find(recorded, subject):
    return ()  # found by levels/causes.py
