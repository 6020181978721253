"""Gradients that are clipped too early."""

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.graph_samples import VARIED_INPUT
from estimator2strategy.tools.check.rule import rule

_MODEL = """\
def model_fn(features, labels, mode, params):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features["x"], 1))
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.01))
    pairs = optimizer.compute_gradients(loss)
    gradients, _ = tf.clip_by_global_norm([g for g, _ in pairs], {norm})
    pairs = zip(gradients, [v for _, v in pairs])
    train_op = optimizer.apply_gradients(pairs, tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)
"""


@rule(
    "E2S622",
    "clipped-before-sum",
    Severity.WARNING,
    title="Gradients that each core clips before they are summed over the cores",
    why="The norm of a core's own gradient is larger than that of the mean, so more is clipped "
    "than on one device, and each core's gradient gets another weight. It is what the program did "
    "on a TPU, too; the step is another one for each number of cores.",
    fix="To clip what is applied, sum first: wrap the clipping optimizer, or clip inside of the "
    "optimizer that CrossShardOptimizer wraps (its apply_gradients gets the sums).",
    bad=VARIED_INPUT + _MODEL.format(norm="1.0"),
    good=VARIED_INPUT + _MODEL.format(norm="1e9"),
    level=Evidence.REPLICATED,
)
def find(recorded, subject):
    return ()  # found by levels/causes.py
