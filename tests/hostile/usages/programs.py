"""The right parts of the programs in the tables."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy import emulate_tpu, estimator

tf1 = tf.compat.v1
ModeKeys = estimator.ModeKeys
TRAIN, EVAL, PREDICT = ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT

ROWS = np.ones([8, 2], "float32")
LABELS = ROWS[:, :1]


def dataset(size: int = 4) -> Any:
    rows = tf.data.Dataset.from_tensor_slices((ROWS, LABELS))
    return rows.repeat().batch(size, drop_remainder=True)


def input_fn() -> Any:
    return dataset()


def finite() -> Any:
    return tf.data.Dataset.from_tensor_slices((ROWS, LABELS)).batch(4)


def tpu_input_fn(params: Any) -> Any:
    return dataset(params["batch_size"])


def model_fn(features, labels, mode):
    weight = tf1.get_variable("weight", [2, 1], initializer=tf1.ones_initializer())
    predictions = {"y": tf.matmul(features, weight)}
    if mode == PREDICT:
        return estimator.EstimatorSpec(mode, predictions=predictions)
    loss = tf.reduce_mean(tf.square(predictions["y"] - labels))
    train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(loss, tf1.train.get_global_step())
    return estimator.EstimatorSpec(mode, predictions=predictions, loss=loss, train_op=train_op)


def model_fn_of_params(features, labels, mode, params):
    del params
    return model_fn(features, labels, mode)


def tpu_model_fn(features, labels, mode, params):
    del params
    weight = tf1.get_variable("weight", [2, 1], initializer=tf1.ones_initializer())
    predictions = {"y": tf.matmul(features, weight)}
    if mode == PREDICT:
        return estimator.tpu.TPUEstimatorSpec(mode, predictions=predictions)
    loss = tf.reduce_mean(tf.square(predictions["y"] - labels))
    optimizer = tf1.tpu.CrossShardOptimizer(tf1.train.GradientDescentOptimizer(0.1))
    train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    return estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def model(folder: str, **arguments: Any) -> Any:
    return estimator.Estimator(**{"model_fn": model_fn, "model_dir": folder, **arguments})


def tpu_model(folder: str, **arguments: Any) -> Any:
    """A TPUEstimator on two emulated cores."""
    emulate_tpu(2)
    config = arguments.pop("config", None) or estimator.tpu.RunConfig(model_dir=folder)
    sizes = {"train_batch_size": 8, "eval_batch_size": 8, "predict_batch_size": 8}
    return estimator.tpu.TPUEstimator(
        **{"model_fn": tpu_model_fn, "config": config, **sizes, **arguments}
    )


@functools.cache
def trained_folder() -> str:
    folder = os.path.join(tempfile.mkdtemp(), "trained")
    model(folder).train(input_fn, steps=1)
    return folder


def trained(**arguments: Any) -> Any:
    """An Estimator with a checkpoint; the rows that use it do not train it on."""
    return model(trained_folder(), **arguments)


def serving() -> Any:
    given = tf1.placeholder(tf.float32, [None, 2])
    return estimator.export.TensorServingInputReceiver(given, given)


def in_graph(build: Callable[[], Any]) -> Any:
    with tf.Graph().as_default():
        return build()


def scalar() -> Any:
    return tf.constant(1.0)


def columns() -> list[Any]:
    return [tf.feature_column.numeric_column("x", shape=(2,))]
