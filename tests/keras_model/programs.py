"""Legacy programs that the tests of LegacyModel share."""

from __future__ import annotations

import functools

import numpy as np
import tensorflow as tf_2
from sklearn.datasets import load_digits

import estimator2strategy.tf1 as tf

BATCH = 64


@functools.cache
def digits() -> tuple[np.ndarray, np.ndarray]:
    """Images [1797, 64] in [0, 1], labels [1797]."""
    data = load_digits()
    return (data.data / 16).astype(np.float32), data.target.astype(np.int32)


def dataset(batch: int = BATCH, repeat: bool = True, take: int = 640) -> tf_2.data.Dataset:
    images, labels = digits()
    data = tf_2.data.Dataset.from_tensor_slices((images[:take], labels[:take]))
    return data.repeat().batch(batch, drop_remainder=True) if repeat else data.batch(batch)


def network(images, training):
    net = tf.layers.dense(images, 32, activation=tf.nn.relu, name="hidden")
    net = tf.layers.batch_normalization(net, training=training, name="bn")
    net = tf.layers.dropout(net, 0.2, training=training, seed=5)
    return tf.layers.dense(net, 10, name="logits")


def metrics_of(labels, logits):
    predicted = tf.argmax(logits, axis=1)
    precision = tf.metrics.precision(tf.equal(labels, 8), tf.equal(predicted, 8))
    recall = tf.metrics.recall(tf.equal(labels, 8), tf.equal(predicted, 8))
    return {
        "accuracy": tf.metrics.accuracy(labels, predicted),
        # Of two metrics: no Keras class stands for it.
        "f1": (
            2 * precision[0] * recall[0] / (precision[0] + recall[0] + 1e-7),
            tf.group(precision[1], recall[1]),
        ),
    }


def train_op_of(loss, optimizer):
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        return optimizer.minimize(loss, tf.train.get_global_step())


def model_fn(features, labels, mode, params):
    logits = network(features, mode == tf.estimator.ModeKeys.TRAIN)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(
            mode, predictions={"class": tf.argmax(logits, 1), "p": tf.nn.softmax(logits)}
        )
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    optimizer = tf.train.AdamOptimizer(params.get("learning_rate", 0.01))
    return tf.estimator.EstimatorSpec(
        mode,
        loss=loss,
        train_op=train_op_of(loss, optimizer) if mode == "train" else None,
        eval_metric_ops=metrics_of(labels, logits) if mode == "eval" else None,
    )


def tpu_model_fn(features, labels, mode, params):
    logits = network(features, mode == tf.estimator.ModeKeys.TRAIN)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    optimizer = tf.train.AdamOptimizer(0.01)
    if params["use_tpu"]:
        optimizer = tf.tpu.CrossShardOptimizer(optimizer)
    return tf.estimator.tpu.TPUEstimatorSpec(
        mode,
        loss=loss * params["batch_size"] / int(features.shape[0]),
        train_op=train_op_of(loss, optimizer) if mode == "train" else None,
        eval_metrics=(metrics_of, [labels, logits]),
    )
