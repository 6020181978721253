"""Optimizers of `tf.train` take what they took in TF 1.15."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import estimator2strategy.tf1 as tf1


@pytest.mark.parametrize("rate", [2, np.int64(2), 2.0])
def test_the_learning_rate_of_ftrl_may_be_a_whole_number(rate):
    with tf.Graph().as_default(), tf1.Session() as session:
        weight = tf1.get_variable("weight", initializer=1.0)
        step = tf1.train.FtrlOptimizer(rate).minimize(weight * 3.0)
        session.run(tf1.global_variables_initializer())
        session.run(step)
        # By TensorFlow 1.15.
        assert session.run(weight) == pytest.approx(-1.0938091, 1e-5)
