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


def trained(of_function, folder):
    """The weight 0.5 after a step of `mean(of_function(weight * ones))` and a rate of 0.1."""

    def model_fn(features, labels, mode):
        weight = tf1.get_variable("weight", [], initializer=tf1.constant_initializer(0.5))
        loss = tf.reduce_mean(of_function(features * weight))
        step = tf1.train.get_global_step()
        train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        return estimator.EstimatorSpec(mode, {}, loss, train_op)

    model = estimator.Estimator(model_fn, folder)
    model.train(lambda: tf1.data.Dataset.from_tensors(tf.ones([3])))
    return model.get_variable_value("weight")


@function.Defun(tf.float32)
def square(x):
    return x * x


@function.Defun(tf.float32)
def fourth_power(x):
    with tf.control_dependencies([square(x)]):
        return square(square(x)) + 0.0 * x


@function.Defun(tf.float32, tf.float32)
def ten_times(x, dy):
    return dy * square(x) * 40.0


@function.Defun(tf.float32, grad_func=ten_times)
def with_its_own_gradient(x):
    return square(x)


@function.Defun(tf.float32)
def that_plus_one(x):
    return with_its_own_gradient(x) + 1.0


@function.Defun(tf.float32, tf.float32)
def that_of_two(x, y):
    return with_its_own_gradient(x) * y, with_its_own_gradient(y)


def both_of_two(x):
    product, square_of_twice = that_of_two(x, 2.0 * x)
    return product + square_of_twice


@function.Defun(tf.float32)
def that_twice(x):
    return with_its_own_gradient(with_its_own_gradient(x))


def that_in_a_branch(x):
    return tf1.cond(tf.reduce_sum(x) > 0, lambda: with_its_own_gradient(x), lambda: x)


def plus_one_in_a_branch(x):
    return tf1.cond(tf.reduce_sum(x) > 0, lambda: that_plus_one(x), lambda: x)


@pytest.mark.oldest
@pytest.mark.parametrize(
    ("of_function", "weight"),
    [
        (fourth_power, 0.5 - 0.1 * 4 * 0.5**3),
        (with_its_own_gradient, 0.5 - 0.1 * 40 * 0.5**2),
        # The gradient of its own counts inside of others too, as in TF 1.15.
        (that_plus_one, 0.5 - 0.1 * 40 * 0.5**2),
        (both_of_two, 0.5 - 0.1 * (40 * 0.5**2 + 2 * (0.5**2 + 40))),
        (that_in_a_branch, 0.5 - 0.1 * 40 * 0.5**2),
        (plus_one_in_a_branch, 0.5 - 0.1 * 40 * 0.5**2),
        (that_twice, 0.5 - 0.1 * (40 * 0.5**2) * (40 * 0.5**4)),
    ],
    ids=["fourth_power", "own_gradient", "plus_one", "of_two", "branch", "in_branch", "twice"],
)
def test_functions_that_call_functions_are_differentiated(of_function, weight, model_dir):
    assert trained(of_function, model_dir) == pytest.approx(weight)
