"""Gradient clipping before the sum over the cores."""

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.project import is_tf
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S207",
    "clipped-per-core",
    Severity.INFO,
    title="Gradients clipped on each core, before they are summed over the cores",
    why="CrossShardOptimizer sums in apply_gradients. What is clipped before is each core's own "
    "gradient, whose norm is larger than the mean's: not what one device with the whole batch "
    "does, and it changes with the number of cores. TPUEstimator programs did this too, so "
    "results are equal.",
    fix="Nothing, to keep the numbers. For clipping after the sum: all_reduce first, then clip.",
    bad="""\
import tensorflow as tf

def model_fn(features, labels, mode, params):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features, 1))
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(0.1))
    variables = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 1.0)
    train_op = optimizer.apply_gradients(
        zip(gradients, variables), global_step=tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)
""",
    good="""\
import tensorflow as tf

def model_fn(features, labels, mode, params):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features, 1))
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(0.1))
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)
""",
)
def find(source, context):
    if "CrossShardOptimizer" not in source.text:
        return  # what sums there may sum before it is clipped, as Horovod does
    for call in context.project.tpu_code.get(source, ()):
        if is_tf(call.name, "clip_by_global_norm"):
            yield Hit(call.node, "clips each core's own gradients")
