"""A TPUEstimator program of TF 1.x that trains on one device, or on the cores of a TPU.

    python ladder_on_cores.py --model_dir=DIR [--use_tpu=True] [--train_steps=50]

Prints one line of JSON: the evaluation and the first predictions. The losses are in its summaries.
"""

import json

import numpy as np
import tensorflow as tf

flags = tf.flags
FLAGS = flags.FLAGS
flags.DEFINE_string("model_dir", None, "Where the checkpoints go.")
flags.DEFINE_bool("use_tpu", False, "Whether there is a TPU.")
flags.DEFINE_integer("train_steps", 50, "Steps.")


def images_of(seed):
    random = np.random.RandomState(seed)
    labels = random.randint(0, 4, 128).astype(np.int32)
    images = random.randn(128, 8, 8, 1).astype(np.float32)
    for image, label in zip(images, labels):
        image[2 * label : 2 * label + 2] += 0.5
    return images, labels


def train_input_fn(params):
    data = tf.data.Dataset.from_tensor_slices(images_of(1)).repeat()
    return data.apply(tf.contrib.data.batch_and_drop_remainder(params["batch_size"]))


def eval_input_fn(params):
    data = tf.data.Dataset.from_tensor_slices(images_of(2))
    return data.apply(tf.contrib.data.batch_and_drop_remainder(params["batch_size"]))


def predict_input_fn(params):
    return tf.data.Dataset.from_tensor_slices(images_of(2)[0]).batch(params["batch_size"])


def metric_fn(labels, logits):
    return {"accuracy": tf.metrics.accuracy(labels, tf.argmax(logits, 1))}


def model_fn(features, labels, mode, params):
    def uniform(seed):
        return tf.random_uniform_initializer(-0.2, 0.2, seed=seed)

    training = mode == tf.estimator.ModeKeys.TRAIN
    net = tf.layers.conv2d(
        features,
        4,
        3,
        padding="same",
        activation=tf.nn.relu,
        name="conv",
        kernel_initializer=uniform(3),
    )
    net = tf.layers.batch_normalization(net, training=training, name="norm")
    net = tf.layers.flatten(net)
    logits = tf.layers.dense(net, 4, name="logits", kernel_initializer=uniform(4))
    if mode == tf.estimator.ModeKeys.PREDICT:
        predictions = {"probabilities": tf.nn.softmax(logits)}
        return tf.contrib.tpu.TPUEstimatorSpec(mode, predictions=predictions)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.contrib.tpu.TPUEstimatorSpec(
            mode, loss=loss, eval_metrics=(metric_fn, [labels, logits])
        )
    step = tf.train.get_or_create_global_step()
    rate = tf.train.exponential_decay(0.01, step, 20, 0.9)
    tf.summary.scalar("rate", rate)
    with tf.name_scope("watched"):
        tf.summary.scalar("largest", tf.reduce_max(tf.abs(logits)))
        tf.summary.histogram("logits", logits)
    # The optimizer, and its sum over the cores.
    optimizer = tf.train.AdamOptimizer(rate)
    if params["use_tpu"]:
        optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train_op = optimizer.minimize(loss, global_step=step)
    return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def main(_):
    config = tf.contrib.tpu.RunConfig(
        model_dir=FLAGS.model_dir,
        tf_random_seed=7,
        save_summary_steps=1,
        save_checkpoints_steps=25,
        keep_checkpoint_max=2,
        tpu_config=tf.contrib.tpu.TPUConfig(iterations_per_loop=1),
    )
    estimator = tf.contrib.tpu.TPUEstimator(
        model_fn,
        config=config,
        use_tpu=FLAGS.use_tpu,
        params={"use_tpu": FLAGS.use_tpu},
        train_batch_size=32,
        eval_batch_size=32,
        predict_batch_size=16,
    )
    estimator.train(train_input_fn, max_steps=FLAGS.train_steps)
    results = estimator.evaluate(eval_input_fn, steps=4)
    predicted = [found["probabilities"] for found in estimator.predict(predict_input_fn)]
    print(
        json.dumps(
            {
                "evaluation": {name: float(value) for name, value in results.items()},
                "predictions": np.stack(predicted).tolist(),
            }
        )
    )


if __name__ == "__main__":
    tf.app.run()
