"""A small residual network: blocks in a loop, batch normalization, and weight decay."""
import numpy as np
import tensorflow as tf

flags = tf.app.flags
FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", "resnet_dir", "Where checkpoints go.")
flags.DEFINE_integer("train_steps", 50, "Number of steps.")

_BATCH_NORM_DECAY = 0.9
_WEIGHT_DECAY = 2e-4


def stripes(count, seed):
    """Pictures with stripes of four directions."""
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, 4, [count]).astype(np.int64)
    rows, columns = np.mgrid[:8, :8]
    along = np.stack([rows, columns, rows + columns, rows - columns])[labels]
    pictures = np.sin(along + rng.uniform(0, 6, [count, 1, 1])) + rng.normal(0, 0.3, along.shape)
    return pictures[..., None].astype(np.float32), labels


def input_fn(is_training, batch_size):
    data = tf.data.Dataset.from_tensor_slices(stripes(640 if is_training else 160, is_training))
    if is_training:
        data = data.repeat()
    return data.batch(batch_size)


def batch_norm_relu(inputs, is_training, name):
    """Normalizes a batch, then applies a ReLU."""
    net = tf.layers.batch_normalization(
        inputs, momentum=_BATCH_NORM_DECAY, epsilon=1e-5, training=is_training, name=name)
    return tf.nn.relu(net)


def conv2d(inputs, filters, kernel_size, strides, name):
    """A convolution without a bias, as a batch normalization follows."""
    return tf.layers.conv2d(
        inputs, filters, kernel_size, strides, padding="same", use_bias=False,
        kernel_initializer=tf.variance_scaling_initializer(),
        kernel_regularizer=tf.contrib.layers.l2_regularizer(_WEIGHT_DECAY), name=name)


def residual_block(inputs, filters, strides, is_training):
    """Two convolutions, and a way around them."""
    shortcut = inputs
    net = batch_norm_relu(inputs, is_training, name="bn_1")
    # The projection comes after the first ReLU.
    if strides > 1:
        shortcut = conv2d(net, filters, 1, strides, name="projection")
    net = conv2d(net, filters, 3, strides, name="conv_1")
    net = batch_norm_relu(net, is_training, name="bn_2")
    net = conv2d(net, filters, 3, 1, name="conv_2")
    return net + shortcut


def model_fn(features, labels, mode, params):
    """A network with a block for each of params["filters"]."""
    is_training = mode == tf.estimator.ModeKeys.TRAIN
    net = conv2d(features, params["filters"][0], 3, 1, name="first")
    for i, filters in enumerate(params["filters"]):
        with tf.variable_scope("block_%d" % i):
            net = residual_block(net, filters, 1 if i == 0 else 2, is_training)
    net = batch_norm_relu(net, is_training, name="last_bn")
    net = tf.reduce_mean(net, axis=[1, 2])
    logits = tf.layers.dense(net, params["classes"], name="logits")
    predictions = {
        "classes": tf.argmax(logits, axis=1),
        "probabilities": tf.nn.softmax(logits, name="softmax_tensor"),
    }
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions)

    cross_entropy = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    tf.summary.scalar("cross_entropy", cross_entropy)
    loss = cross_entropy + tf.add_n(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))
    train_op = None
    if mode == tf.estimator.ModeKeys.TRAIN:
        global_step = tf.train.get_or_create_global_step()
        learning_rate = tf.train.piecewise_constant(global_step, [30, 40], [0.05, 0.01, 0.001])
        optimizer = tf.train.MomentumOptimizer(learning_rate=learning_rate, momentum=0.9)
        update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        minimize_op = optimizer.minimize(loss, global_step)
        train_op = tf.group(minimize_op, update_ops)
    metrics = {"accuracy": tf.metrics.accuracy(labels, predictions["classes"])}
    return tf.estimator.EstimatorSpec(
        mode, predictions=predictions, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def main(_):
    classifier = tf.estimator.Estimator(
        model_fn=model_fn, model_dir=FLAGS.model_dir,
        params={"filters": [8, 16, 16], "classes": 4})
    classifier.train(input_fn=lambda: input_fn(True, 32), max_steps=FLAGS.train_steps)
    print(classifier.evaluate(input_fn=lambda: input_fn(False, 32)))


if __name__ == "__main__":
    tf.app.run()
