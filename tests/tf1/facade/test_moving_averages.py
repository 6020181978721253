"""`tf.keras.backend.moving_average_update` has TF 1.15's numbers and variables."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

import estimator2strategy.tf1 as tf1


def test_an_average_has_no_bias_and_the_variables_of_tf_1():
    with tf1.Graph().as_default(), tf1.Session() as session:
        average = tf1.get_variable("average", initializer=tf.zeros([]), trainable=False)
        value = tf1.placeholder(tf.float32, [])
        update = tf1.keras.backend.moving_average_update(average, value, 0.9)
        assert sorted(v.op.name for v in tf1.global_variables()) == [
            "average",
            "average/biased",
            "average/local_step",
        ]
        session.run(tf1.global_variables_initializer())
        averages = []
        for given in (3.0, 1.0, 2.0):
            session.run(update, {value: given})
            averages.append(session.run(average))
    # The weights of the values so far add up to one.
    expected = [np.average(values, weights=0.9 ** np.arange(len(values))) for values in _LATEST]
    np.testing.assert_allclose(averages, expected, rtol=1e-5)


_LATEST = ([3.0], [1.0, 3.0], [2.0, 1.0, 3.0])


def test_private_and_public_names_are_one_function():
    public = tf1.keras.backend.moving_average_update
    assert tf1.python.keras.backend.moving_average_update is public
