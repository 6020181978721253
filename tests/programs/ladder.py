"""A TPUEstimator program of TF 1.x that has something to do for every codemod.

    python ladder.py --model_dir=DIR [--steps=8]

Prints one line of JSON: the loss of each step, the metrics, the predictions. Every random op has a
seed of its own, so that the numbers do not depend on how many ops there are.
"""

import json
import os

import numpy as np
import tensorflow as tf
from tensorflow.contrib import layers as contrib_layers

flags = tf.app.flags
flags.DEFINE_string("model_dir", None, "Where the checkpoints go.")
flags.DEFINE_integer(flag_name="steps", default_value=8, docstring="Training steps.")
flags.DEFINE_bool("use_tpu", False, "Whether there is a TPU.")
FLAGS = flags.FLAGS

RANDOM = np.random.RandomState(5)
FEATURES = RANDOM.rand(60, 8).astype("float32")
LABELS = (FEATURES[:, 0] > FEATURES[:, 1]).astype(np.int)


def scaled(x):
    return x / (tf.reduce_sum(x, axis=1, keep_dims=True) + 1e-3)


def train_input_fn(params):
    dataset = tf.data.Dataset.from_tensor_slices((FEATURES, LABELS)).repeat()
    mapped = tf.contrib.data.map_and_batch(
        lambda x, y: (x * 2.0 - 1.0, y), params["batch_size"], drop_remainder=True
    )
    return dataset.apply(mapped).prefetch(1)


def eval_input_fn(params):
    dataset = tf.data.Dataset.from_tensor_slices((FEATURES, LABELS))
    dataset = dataset.map(lambda x, y: (x * 2.0 - 1.0, y))
    dataset = dataset.apply(tf.contrib.data.batch_and_drop_remainder(params["batch_size"]))
    iterator = dataset.make_one_shot_iterator()
    features, labels = iterator.get_next()
    return features, labels


def initializer(seed):
    return tf.contrib.layers.xavier_initializer(seed=seed)


def metric_fn(labels, logits):
    predicted = tf.argmax(logits, dimension=1)
    return {
        "accuracy": tf.metrics.accuracy(labels, predicted),
        "confidence": tf.metrics.mean(tf.reduce_max(tf.nn.softmax(logits, dim=-1), axis=1)),
        "error": tf.metrics.mean_squared_error(
            labels=tf.to_float(labels), predictions=tf.nn.softmax(logits)[:, 1]
        ),
    }


def model_fn(features, labels, mode, params):
    width = features.shape[1].value
    net = tf.reshape(tf.to_float(features), [-1, width])
    net = tf.layers.dense(
        net, 6, activation=tf.nn.relu, kernel_initializer=initializer(1), name="hidden"
    )
    net = contrib_layers.fully_connected(
        net, 5, weights_initializer=initializer(2), scope="contrib"
    )
    logits = tf.layers.dense(
        tf.log(1.0 + scaled(net)), 2, None, True, initializer(3), name="logits"
    )
    if mode == tf.estimator.ModeKeys.PREDICT:
        predictions = {"probabilities": tf.nn.softmax(logits)}
        return tf.contrib.tpu.TPUEstimatorSpec(mode, predictions=predictions)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.contrib.tpu.TPUEstimatorSpec(
            mode, loss=loss, eval_metrics=(metric_fn, [labels, logits])
        )
    rate = tf.train.exponential_decay(0.05, tf.train.get_global_step(), 3, 0.5, staircase=True)
    optimizer = tf.train.AdamOptimizer(rate)
    if FLAGS.use_tpu:
        optimizer = tf.contrib.tpu.CrossShardOptimizer(optimizer)
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


class LossRecorder(tf.train.SessionRunHook):
    def __init__(self):
        self.losses = []

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(tf.losses.get_losses()[0])

    def after_run(self, run_context, run_values):
        self.losses.append(float(run_values.results))


class StepCounter(tf.train.SessionRunHook):
    steps = 0

    def after_run(self, run_context, run_values):
        self.steps += 1
        if self.steps == 1000:
            run_context.request_stop()


def main(_):
    tf.gfile.MakeDirs(FLAGS.model_dir)
    config = tf.contrib.tpu.RunConfig(
        model_dir=FLAGS.model_dir,
        tf_random_seed=1,
        tpu_config=tf.contrib.tpu.TPUConfig(iterations_per_loop=4),
    )
    estimator = tf.contrib.tpu.TPUEstimator(
        model_fn,
        config=config,
        use_tpu=FLAGS.use_tpu,
        train_batch_size=16,
        eval_batch_size=16,
        predict_batch_size=16,
    )
    recorder, counter = LossRecorder(), StepCounter()
    estimator.train(train_input_fn, max_steps=FLAGS.steps, hooks=[recorder, counter])
    assert counter.steps == len(recorder.losses)
    metrics = estimator.evaluate(eval_input_fn, steps=3)
    predictions = estimator.predict(eval_input_fn)
    result = {
        "losses": recorder.losses,
        "metrics": {name: float(value) for name, value in metrics.items()},
        "probabilities": [next(predictions)["probabilities"].tolist() for _ in range(5)],
        "variables": sorted(estimator.get_variable_names()),
    }
    with tf.gfile.Open(os.path.join(FLAGS.model_dir, "result.json"), "w") as f:
        f.write(json.dumps(result))
    tf.logging.info("Done: %s", metrics)
    print(json.dumps(result))


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.app.run()
