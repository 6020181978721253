"""Python functions in a graph get what they got of TF 1.15 for lists of a `float_list`."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import estimator2strategy.tf1 as tf1

FLOATS = tf.train.FloatList(value=[1.0, 2.0]).value


@pytest.mark.parametrize("name", ["py_func", "numpy_function"])
@pytest.mark.parametrize(
    ("result", "types"),
    [
        ((FLOATS, [FLOATS, FLOATS]), [tf.float64, tf.float64]),
        ([[list(FLOATS)]], [tf.float64]),
        ((FLOATS, [3]), [tf.float64, tf.int64]),
        (FLOATS, tf.float64),
    ],
)
def test_lists_of_floats_are_doubles(name, result, types):
    with tf.Graph().as_default(), tf1.Session() as session:
        got = session.run(getattr(tf1, name)(lambda x: result, [tf1.constant(1)], types))
    if not isinstance(types, list):
        got, result = [got], [result]
    for array, value in zip(got, result, strict=True):
        np.testing.assert_array_equal(array, np.array(value))


@pytest.mark.parametrize("result", [np.zeros(2, np.float32), (np.zeros(2), np.zeros(2))])
def test_what_tf_115_refused_is_refused(result):
    with tf.Graph().as_default(), tf1.Session() as session:
        made = tf1.py_func(lambda: result, [], [tf.float64])
        with pytest.raises(tf.errors.InvalidArgumentError, match="return"):
            session.run(made)
