"""Keras 2 layers have what those of TF 1.15 had."""

import numpy as np
import pytest

import estimator2strategy.tf1 as tf


class Doubled(tf.keras.layers.Layer):
    def call(self, inputs, times=2.0):
        return times * inputs


@pytest.mark.parametrize(("arguments", "result"), [((), 6.0), ((5.0,), 15.0)])
def test_a_layer_is_applied_by_name(arguments, result):
    with tf.Graph().as_default(), tf.Session() as session:
        outputs = Doubled().apply(tf.constant([3.0]), *arguments)
        np.testing.assert_allclose(session.run(outputs), [result])


def test_a_layer_that_is_applied_makes_its_variables():
    with tf.Graph().as_default():
        tf.keras.layers.Conv2D(2, 3, name="c").apply(tf.ones([2, 8, 8, 3]))
        assert [v.name for v in tf.trainable_variables()] == ["c/kernel:0", "c/bias:0"]
