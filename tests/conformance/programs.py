"""Legacy programs for TPUEstimator, a row each; every module beside this asks all one thing.

A row is source, as a user would have it. It has `input_fn(params)`, whose batches are the same ones
each time, and `model_fn(features, labels, mode, params)`; its loss is the mean over the batch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from estimator2strategy import estimator
from tests.tools.check.subjects import module

tpu = estimator.tpu

_HEAD = """\
import numpy as np
import tensorflow as tf


def input_fn(params):
    rng = np.random.RandomState(0)
    data = dataset(rng)
    return data.repeat().batch(params["batch_size"], drop_remainder=True)


def spec(mode, predictions, loss_of, optimizer):
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions=predictions)
    loss = loss_of()
    train_op = None
    if mode == tf.estimator.ModeKeys.TRAIN:
        optimizer = tf.tpu.CrossShardOptimizer(optimizer)
        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


"""

# Name -> the source that makes it differ from the others.
ROWS = {
    "regression with Adam": """\
def dataset(rng):
    x = rng.normal(size=[64, 3]).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, x.sum(1, keepdims=True)))


def model_fn(features, labels, mode, params):
    y = tf.layers.dense(features["x"], 1)
    loss = lambda: tf.losses.mean_squared_error(labels, y)
    return spec(mode, {"y": y}, loss, tf.train.AdamOptimizer(0.1))
""",
    "classifier of an embedding, with a decaying rate": """\
def dataset(rng):
    words = rng.randint(0, 7, [64, 4]).astype(np.int32)
    return tf.data.Dataset.from_tensor_slices(({"words": words}, words[:, 0] % 3))


def model_fn(features, labels, mode, params):
    table = tf.get_variable("table", [7, 5])
    mean = tf.reduce_mean(tf.nn.embedding_lookup(table, features["words"]), 1)
    logits = tf.layers.dense(mean, 3)
    loss = lambda: tf.losses.sparse_softmax_cross_entropy(labels, logits)
    rate = tf.train.exponential_decay(0.5, tf.train.get_or_create_global_step(), 2, 0.5)
    return spec(mode, {"logits": logits}, loss, tf.train.MomentumOptimizer(rate, 0.9))
""",
    "recurrent network, with a branch": """\
def dataset(rng):
    x = rng.normal(size=[64, 5, 2]).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, x[:, :, 0].sum(1, keepdims=True)))


def model_fn(features, labels, mode, params):
    cell = tf.nn.rnn_cell.GRUCell(4)
    _, state = tf.nn.dynamic_rnn(cell, features["x"], dtype=tf.float32)
    scale = tf.get_variable("scale", [], initializer=tf.ones_initializer())
    state = tf.cond(scale > 0, lambda: state * scale, lambda: -state)
    y = tf.layers.dense(state, 1)
    loss = lambda: tf.losses.mean_squared_error(labels, y)
    return spec(mode, {"y": y}, loss, tf.train.GradientDescentOptimizer(0.1))
""",
    "convolutions, with accumulated averages": """\
def dataset(rng):
    images = rng.normal(size=[64, 6, 6, 1]).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices(({"x": images}, (images.mean((1, 2, 3)) > 0) * 1))


def model_fn(features, labels, mode, params):
    hidden = tf.layers.conv2d(features["x"], 3, 3, activation=tf.nn.relu)
    logits = tf.layers.dense(tf.layers.flatten(hidden), 2)
    loss = lambda: tf.losses.sparse_softmax_cross_entropy(labels, logits)
    return spec(mode, {"logits": logits}, loss, tf.train.AdagradOptimizer(0.1))
""",
}

every_program = pytest.mark.parametrize("name", ROWS)


def source(name: str) -> str:
    """The source of a row, as a module."""
    return _HEAD + ROWS[name]


def program(name: str, folder: Path) -> Any:
    """The module of a row: it has input_fn and model_fn."""
    return module(source(name), folder / "program.py")


def estimator_of(program: Any, model_dir: Path, *, use_tpu: bool = False) -> tpu.TPUEstimator:
    """A TPUEstimator of a row, with global batches of 16."""
    config = tpu.RunConfig(
        model_dir=str(model_dir), tf_random_seed=1, tpu_config=tpu.TPUConfig(iterations_per_loop=2)
    )
    return tpu.TPUEstimator(
        program.model_fn,
        config=config,
        use_tpu=use_tpu,
        train_batch_size=16,
        eval_batch_size=16,
        predict_batch_size=16,
        export_to_tpu=False,
    )


def variables(model: Any) -> dict[str, Any]:
    """Name -> value of all variables in the latest checkpoint."""
    return {name: model.get_variable_value(name) for name in model.get_variable_names()}
