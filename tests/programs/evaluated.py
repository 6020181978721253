"""A small program that calls train_and_evaluate: linear regression, of an Estimator without TPUs.

python evaluated.py [--rate=0.5] [--exporter=LatestExporter]
"""

import sys

import numpy as np
import tensorflow.compat.v1 as tf

FLAGS = dict(flag.lstrip("-").partition("=")[::2] for flag in sys.argv[1:])
RATE = float(FLAGS.get("rate", 0.5))
EXPORTER = FLAGS.get("exporter", "FinalExporter")


def input_fn():
    x = np.linspace(-1, 1, 20).astype(np.float32).reshape(10, 2)
    data = tf.data.Dataset.from_tensor_slices(({"x": x}, x.sum(axis=1, keepdims=True)))
    return data.repeat(2).batch(4)


def model_fn(features, labels, mode):
    predictions = tf.layers.dense(features["x"], 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        outputs = {"serving_default": tf.estimator.export.PredictOutput(predictions)}
        return tf.estimator.EstimatorSpec(mode, predictions=predictions, export_outputs=outputs)
    loss = tf.losses.mean_squared_error(labels, predictions)
    optimizer = tf.train.GradientDescentOptimizer(RATE)
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    metrics = {"error": tf.metrics.mean_absolute_error(labels, predictions)}
    return tf.estimator.EstimatorSpec(mode, predictions, loss, train_op, metrics)


def receiver_fn():
    spec = {"x": tf.FixedLenFeature([2], tf.float32)}
    return tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)()


if __name__ == "__main__":
    estimator = tf.estimator.Estimator(model_fn)
    exporter = getattr(tf.estimator, EXPORTER)("last", receiver_fn)
    tf.estimator.train_and_evaluate(
        estimator,
        tf.estimator.TrainSpec(input_fn, max_steps=100),
        tf.estimator.EvalSpec(input_fn, steps=None, exporters=[exporter]),
    )
