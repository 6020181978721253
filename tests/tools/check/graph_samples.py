"""Parts of programs for a TPUEstimator."""

TPU_INPUT = """\
import tensorflow as tf

def input_fn(params):
    data = {"x": tf.ones([64, 4])}, tf.ones([64, 1])
    dataset = tf.data.Dataset.from_tensor_slices(data).repeat()
    return dataset.batch(params["batch_size"], drop_remainder=True)

"""

TPU_TRAIN_OP = """\
    optimizer = tf.tpu.CrossShardOptimizer(tf.train.AdamOptimizer(0.1))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)
"""

_TPU_MODEL = """\
def model_fn(features, labels, mode, params):
    hidden = tf.layers.dense(features["x"], 4)
{after_hidden}    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(hidden, 1))
{train_op}"""


def tpu_model(after_hidden: str = "", train_op: str = TPU_TRAIN_OP) -> str:
    """A program for a TPUEstimator, with a line after its first layer, or another end."""
    after_hidden = f"    {after_hidden}\n" if after_hidden else ""
    return TPU_INPUT + _TPU_MODEL.format(after_hidden=after_hidden, train_op=train_op)


# One where each core has other examples than the next.
VARIED_INPUT = """\
import tensorflow as tf

def input_fn(params):
    x = tf.reshape(tf.linspace(-3.0, 5.0, 256), [64, 4])
    data = {"x": x}, tf.reduce_sum(x * x, axis=1, keepdims=True)
    dataset = tf.data.Dataset.from_tensor_slices(data).repeat()
    return dataset.batch(params["batch_size"], drop_remainder=True)

"""
