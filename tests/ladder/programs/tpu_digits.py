"""Digits on a TPU, or on this machine: a TPUEstimator with a host_call and metrics for the host."""
import numpy as np
import tensorflow as tf

flags = tf.app.flags
FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", "tpu_digits_dir", "Where checkpoints go.")
flags.DEFINE_integer("train_steps", 50, "Number of steps.")
flags.DEFINE_integer("batch_size", 32, "Examples in a batch, of all cores.")
flags.DEFINE_float("learning_rate", 0.1, "First learning rate.")
flags.DEFINE_bool("use_tpu", False, "True for a TPU, False for this machine.")
flags.DEFINE_string("tpu", None, "Name or address of the TPU.")


def make_digits(count, seed):
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, 5, [count]).astype(np.int32)
    images = rng.uniform(0, 0.6, [count, 10, 10]).astype(np.float32)
    for image, label in zip(images, labels):
        image[2 * label : 2 * label + 2] += 0.4
    return images, labels


def train_input_fn(params):
    """Batches of params["batch_size"], which TPUEstimator sets."""
    data = tf.data.Dataset.from_tensor_slices(make_digits(600, 1))
    return data.repeat().batch(params["batch_size"], drop_remainder=True)


def eval_input_fn(params):
    data = tf.data.Dataset.from_tensor_slices(make_digits(160, 2))
    return data.batch(params["batch_size"], drop_remainder=True)


def metric_fn(labels, logits):
    """The metrics, computed on the host."""
    predicted = tf.argmax(logits, axis=1)
    return {
        "accuracy": tf.metrics.accuracy(labels=labels, predictions=predicted),
        "mean_class": tf.metrics.mean(predicted),
    }


def model_fn(features, labels, mode, params):
    """A convolution and two dense layers."""
    net = tf.expand_dims(features, 3)
    net = tf.layers.conv2d(net, params["filters"], 3, activation=tf.nn.relu, name="conv")
    net = tf.layers.flatten(net)
    net = tf.layers.dense(
        net, 16, activation=tf.nn.relu, name="hidden",
        kernel_regularizer=tf.contrib.layers.l2_regularizer(1e-3))
    logits = tf.layers.dense(net, 5, name="logits")
    if mode == tf.estimator.ModeKeys.PREDICT:
        predictions = {"class": tf.argmax(logits, axis=1), "probabilities": tf.nn.softmax(logits)}
        return tf.contrib.tpu.TPUEstimatorSpec(mode, predictions=predictions)

    cross_entropy = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    loss = cross_entropy + tf.losses.get_regularization_loss()
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.contrib.tpu.TPUEstimatorSpec(
            mode=mode, loss=loss, eval_metrics=(metric_fn, [labels, logits]))

    global_step = tf.train.get_global_step()
    learning_rate = tf.train.exponential_decay(FLAGS.learning_rate, global_step, 20, 0.8)
    optimizer = tf.train.GradientDescentOptimizer(learning_rate=learning_rate)
    if FLAGS.use_tpu:
        optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)
    train_op = optimizer.minimize(loss, global_step=global_step)

    def host_call_fn(gs, ce, lr):
        """Writes summaries; a core of a TPU cannot."""
        step = gs[0]
        with tf.contrib.summary.create_file_writer(FLAGS.model_dir).as_default():
            with tf.contrib.summary.always_record_summaries():
                tf.contrib.summary.scalar("cross_entropy", tf.reduce_mean(ce), step=step)
                tf.contrib.summary.scalar("learning_rate", lr[0], step=step)
                return tf.contrib.summary.all_summary_ops()

    # For TensorBoard.
    gs_t = tf.reshape(global_step, [1])
    ce_t = tf.reshape(cross_entropy, [1])
    lr_t = tf.reshape(learning_rate, [1])
    host_call = (host_call_fn, [gs_t, ce_t, lr_t])
    return tf.contrib.tpu.TPUEstimatorSpec(
        mode=mode, loss=loss, train_op=train_op, host_call=host_call)


def main(_):
    resolver = None
    if FLAGS.use_tpu:
        resolver = tf.contrib.cluster_resolver.TPUClusterResolver(FLAGS.tpu)
    run_config = tf.contrib.tpu.RunConfig(
        cluster=resolver,
        model_dir=FLAGS.model_dir,
        save_checkpoints_steps=25,
        tpu_config=tf.contrib.tpu.TPUConfig(iterations_per_loop=25))
    estimator = tf.contrib.tpu.TPUEstimator(
        model_fn=model_fn,
        config=run_config,
        params={"filters": 4},
        use_tpu=FLAGS.use_tpu,
        train_batch_size=FLAGS.batch_size,
        eval_batch_size=FLAGS.batch_size)
    estimator.train(input_fn=train_input_fn, max_steps=FLAGS.train_steps)
    print(estimator.evaluate(input_fn=eval_input_fn, steps=5))


if __name__ == "__main__":
    tf.app.run()
