"""A program of TensorFlow 2.15: the `tf` of TF2, with tf.estimator and Keras 2."""

import json

import tensorflow as tf
import tensorflow.compat.v1 as tf1
from tensorflow.keras import layers


def model_fn(features, labels, mode):
    predicted = layers.Dense(1)(features)
    loss = tf.reduce_mean(tf.square(predicted - labels))
    train_op = tf1.train.AdamOptimizer(0.1).minimize(loss, tf1.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    data = tf.data.Dataset.from_tensor_slices(([[1.0, 2.0]] * 8, [[3.0]] * 8))
    return data.repeat().batch(4)


if __name__ == "__main__":
    mean = tf.keras.metrics.Mean()
    mean.update_state([1.0, 3.0])
    estimator = tf.estimator.Estimator(model_fn)
    train, evaluate = tf.estimator.TrainSpec(input_fn, 4), tf.estimator.EvalSpec(input_fn, 1)
    metrics, _ = tf.estimator.train_and_evaluate(estimator, train, evaluate)
    observed = {
        "eager": tf.executing_eagerly(),
        "dimension": type(tf.constant([1]).shape[0]).__name__,
        "keras": layers.Dense.__module__.partition(".")[0],
        "mean": float(mean.result()),
        "step": int(metrics["global_step"]),
    }
    print(json.dumps(observed))
