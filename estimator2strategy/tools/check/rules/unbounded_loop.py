"""while_loop without a bound."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S405",
    "unbounded-loop",
    Severity.INFO,
    title="tf.while_loop without maximum_iterations, in the part of model_fn that the TPU executes",
    why="To go back through the loop, the gradient needs room for every iteration; XLA must know "
    "how many there can be: 'requires maximum_iterations'. Without a gradient there is no "
    "such need.",
    fix="Give maximum_iterations, if the loss depends on the loop.",
    bad="""\
import tensorflow as tf

def model_fn(features, labels, mode, params):
    total = tf.while_loop(lambda x: tf.reduce_sum(x) < 9.0, lambda x: x * 2.0, [features])
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=tf.reduce_mean(total))
""",
    good="""\
import tensorflow as tf

def model_fn(features, labels, mode, params):
    total = tf.while_loop(
        lambda x: tf.reduce_sum(x) < 9.0, lambda x: x * 2.0, [features], maximum_iterations=10)
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=tf.reduce_mean(total))
""",
)
def find(source, context):
    for call in context.project.tpu_code.get(source, ()):
        if call.name != "tf.while_loop" or call.is_open:
            continue
        if call.argument("maximum_iterations", 8) is None:
            yield Hit(call.node, "a loop without maximum_iterations has no gradient on a TPU")
