"""Ops in branches of `tf.cond`, which were in the graph around them in TF 1."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import estimator2strategy.tf1 as tf1
from estimator2strategy.engine import worlds


def model_fn(features, labels, mode, params):
    training = tf.constant(mode == "train")
    net = tf1.layers.dense(features, 3, kernel_initializer=tf1.ones_initializer())

    def normalized(**kwargs):
        return tf1.contrib.layers.batch_norm(net, decay=0.9, scope="bn", **kwargs)

    net = tf1.cond(
        training,
        lambda: normalized(is_training=True),
        lambda: normalized(is_training=False, reuse=True),
    )
    logits = tf1.layers.dense(net, 1, kernel_initializer=tf1.ones_initializer())
    loss = tf1.losses.mean_squared_error(labels, logits)
    optimizer = tf1.train.GradientDescentOptimizer(0.01)
    step = tf1.train.get_global_step()
    gradients = optimizer.compute_gradients(loss)
    with tf1.control_dependencies(tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)):
        if params["gradients_first"]:
            train_op = optimizer.apply_gradients(gradients, step)
        else:
            train_op = optimizer.minimize(loss, step)
    return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    features = tf.constant([[1.0, 2.0], [3.0, 5.0], [0.0, 1.0]])
    return tf.data.Dataset.from_tensors((features, [[1.0], [2.0], [3.0]])).repeat()


@pytest.mark.parametrize("gradients_first", [True, False])
def test_a_batch_norm_in_a_branch_updates_its_averages(model_dir, gradients_first):
    params = {"gradients_first": gradients_first}
    estimator = tf1.estimator.Estimator(model_fn, model_dir, params=params)
    estimator.train(input_fn, steps=5)
    # By TensorFlow 1.15.
    np.testing.assert_allclose(estimator.get_variable_value("bn/moving_mean"), [1.63842] * 3, 1e-5)
    variance = estimator.get_variable_value("bn/moving_variance")
    np.testing.assert_allclose(variance, [5.91522] * 3, 1e-5)
    assert estimator.evaluate(input_fn, steps=1)["loss"] == pytest.approx(9.176167, 1e-5)


def test_an_op_in_a_branch_of_a_branch_can_be_awaited():
    with worlds.recording(None) as graph:
        variable = tf1.get_variable("seen", [], initializer=tf1.zeros_initializer())
        inner = []

        def deep():
            inner.append(variable.assign_add(1.0))
            return tf.constant(1.0)

        yes = tf1.placeholder_with_default(True, [])
        tf1.cond(yes, lambda: tf1.cond(yes, deep, lambda: 0.0), lambda: 0.0)
        with tf1.control_dependencies(inner):
            after = tf.no_op()
        assert [op.type for op in after.control_inputs] == ["If"]
        with tf1.Session(graph=graph) as session:
            session.run(tf1.global_variables_initializer())
            session.run([after])
            assert session.run(variable) == 1.0
