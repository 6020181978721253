"""Parts of a batch that do not weigh the same."""

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.graph_samples import VARIED_INPUT
from estimator2strategy.tools.check.rule import rule

_MODEL = """\
def model_fn(features, labels, mode, params):
    error = tf.square(labels - tf.layers.dense(features["x"], 1))
    real = tf.cast(labels > {least}, tf.float32)
    loss = tf.reduce_sum(error * real) / (tf.reduce_sum(real) + 1e-5)
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(1e-4))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)
"""


@rule(
    "E2S623",
    "uneven-parts",
    Severity.WARNING,
    title="A batch whose parts on the cores do not weigh the same",
    why="Each core takes a mean over what counts in its part (examples that are no padding, "
    "tokens, weights), and the cores' means are averaged as if each had as many. On one device "
    "each example counts alike. A batch that the cores cannot share evenly is refused.",
    fix="Divide by a number that is the same on every core (the batch size), or sum numerator and "
    "denominator over the cores with tf.tpu.cross_replica_sum; make batches that the number of "
    "cores divides.",
    bad=VARIED_INPUT + _MODEL.format(least="10.0"),
    good=VARIED_INPUT + _MODEL.format(least="-1.0"),
    level=Evidence.REPLICATED,
)
def find(recorded, subject):
    return ()  # found by levels/causes.py
