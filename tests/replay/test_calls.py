"""Functions of `Defun`, which nodes of TF 1 call by their names."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import function

from estimator2strategy import estimator

tf1 = tf.compat.v1


@function.Defun(tf.float32, shape_func=lambda op: [op.inputs[0].shape])
def plus_one(x):
    return x + 1.0


def model_fn(features, labels, mode):
    weight = tf1.get_variable("weight", [], initializer=tf1.ones_initializer())
    outputs = plus_one(features * weight)
    loss = tf.reduce_sum(outputs)
    step = tf1.train.get_global_step()
    train_op = tf1.train.GradientDescentOptimizer(0.5).minimize(loss, step)
    return estimator.EstimatorSpec(mode, {"outputs": outputs}, loss, train_op)


@pytest.mark.oldest
def test_functions_called_by_name_train_and_predict(model_dir):
    model = estimator.Estimator(model_fn, model_dir)

    def batch():
        return tf1.data.Dataset.from_tensors(tf.constant([1.0, 3.0]))

    model.train(batch)
    assert model.get_variable_value("weight") == -1.0  # 1 - 0.5 * (1 + 3)
    found = [row["outputs"] for row in model.predict(batch)]
    np.testing.assert_allclose(found, [0.0, -2.0])


@function.Defun(tf.float32, shape_func=lambda op: [op.inputs[0].shape])
def plus_three(x):
    return plus_one(plus_one(x)) + 1.0


@pytest.mark.oldest
def test_functions_called_by_functions_are_those_that_are_replayed(model_dir):
    def calling(features, labels, mode):
        weight = tf1.get_variable("weight", [], initializer=tf1.ones_initializer())
        outputs = plus_three(features * weight)
        with tf.control_dependencies([weight.assign_add(tf.reduce_sum(outputs))]):
            train_op = tf1.train.get_global_step().assign_add(1)
        return estimator.EstimatorSpec(mode, {}, tf.reduce_sum(outputs), train_op)

    model = estimator.Estimator(calling, model_dir)
    model.train(lambda: tf1.data.Dataset.from_tensors(tf.constant([1.0, 3.0])).repeat(2))
    assert model.get_variable_value("weight") == 61.0  # 1 + (4 + 6) = 11; 11 + (14 + 36) = 61
