"""A 2018-style TPUEstimator program."""

import numpy as np
import tensorflow as tf

flags = tf.flags
FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "Where to.")
flags.DEFINE_bool("use_tpu", False, "TPU?")
flags.DEFINE_integer("train_steps", 100, "Steps.")
flags.DEFINE_integer("batch_size", 32, "Batch.")


def digits(n, seed):
    rng = np.random.RandomState(seed)
    labels = rng.randint(0, 4, n).astype(np.int32)
    images = rng.randn(n, 8, 8, 1).astype(np.float32) * 0.5
    for i, label in enumerate(labels):
        images[i, 2 * label : 2 * label + 2, :, 0] += 1.0
    return images, labels


def input_fn(mode):
    def fn(params):
        images, labels = digits(512, 1 if mode == "train" else 2)
        ds = tf.data.Dataset.from_tensor_slices((images, labels))
        if mode == "train":
            ds = ds.repeat()
        return ds.apply(tf.contrib.data.batch_and_drop_remainder(params["batch_size"]))

    return fn


def model_fn(features, labels, mode, params):
    net = tf.layers.conv2d(
        features,
        8,
        3,
        padding="same",
        activation=tf.nn.relu,
        name="conv1",
        kernel_initializer=tf.random_uniform_initializer(-0.2, 0.2, seed=3),
    )
    net = tf.layers.batch_normalization(
        net, training=mode == tf.estimator.ModeKeys.TRAIN, name="bn"
    )
    net = tf.layers.flatten(net)
    logits = tf.layers.dense(
        net, 4, name="logits", kernel_initializer=tf.random_uniform_initializer(-0.1, 0.1, seed=4)
    )
    predictions = {"class": tf.argmax(logits, axis=1), "probabilities": tf.nn.softmax(logits)}
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.contrib.tpu.TPUEstimatorSpec(mode, predictions=predictions)
    loss = tf.losses.sparse_softmax_cross_entropy(labels=labels, logits=logits)
    if mode == tf.estimator.ModeKeys.EVAL:

        def metric_fn(labels, logits):
            return {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}

        return tf.contrib.tpu.TPUEstimatorSpec(
            mode, loss=loss, eval_metrics=(metric_fn, [labels, logits])
        )
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.01, step, 50, 0.9)
    tf.summary.scalar("rate", rate)
    optimizer = tf.train.AdamOptimizer(rate)
    if params["use_tpu"]:
        optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, global_step=step)
    return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def main(_):
    tf.logging.set_verbosity(tf.logging.INFO)
    config = tf.contrib.tpu.RunConfig(
        model_dir=FLAGS.model_dir,
        tf_random_seed=7,
        log_step_count_steps=50,
        tpu_config=tf.contrib.tpu.TPUConfig(iterations_per_loop=10, num_shards=8),
    )
    estimator = tf.contrib.tpu.TPUEstimator(
        model_fn,
        config=config,
        use_tpu=FLAGS.use_tpu,
        params={"use_tpu": FLAGS.use_tpu},
        train_batch_size=FLAGS.batch_size,
        eval_batch_size=32,
        predict_batch_size=32,
    )
    estimator.train(input_fn("train"), max_steps=FLAGS.train_steps)
    print("RESULT", estimator.evaluate(input_fn("eval"), steps=8))
    for i, p in zip(range(3), estimator.predict(input_fn("eval"))):
        print("PREDICT", i, p["class"], np.round(p["probabilities"], 4))


if __name__ == "__main__":
    tf.app.run()
