"""The way to less memory that the advice about tf.contrib.graph_editor names."""

from __future__ import annotations

import numpy as np

import estimator2strategy.tf1 as tf


def test_a_layer_with_its_own_variables_trains_in_a_session():
    were_on = tf.resource_variables_enabled()
    tf.enable_resource_variables()
    try:
        with tf.Graph().as_default(), tf.Session() as session:
            layer = tf.contrib.layers.recompute_grad(
                lambda x: tf.layers.dense(
                    x, 2, kernel_initializer=tf.ones_initializer(), name="dense"
                )
            )
            loss = tf.reduce_sum(layer(tf.constant([[1.0, 2.0]])))
            train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
            session.run(tf.global_variables_initializer())
            session.run(train)
            kernel, bias = session.run(tf.trainable_variables())
    finally:
        if not were_on:
            tf.disable_resource_variables()
    np.testing.assert_allclose(kernel, [[0.5, 0.5], [0.0, 0.0]])
    np.testing.assert_allclose(bias, [-0.5, -0.5])
