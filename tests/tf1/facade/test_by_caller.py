"""Sizes and datasets of TF 1.15's code, which this file is; and of TF 2's, in the same process."""

from __future__ import annotations

import types

import numpy as np
import pytest

import estimator2strategy.tf1 as tf


@pytest.mark.parametrize("size", [3.0, np.float32(3), "3", b"3"])
def test_a_size_may_be_what_int_takes(size):
    assert tf.TensorShape([size, 2]).as_list() == [3, 2]
    assert tf.Dimension(size).value == 3
    with tf.Graph().as_default():
        assert tf.get_variable("weights", [size, 2]).shape == (3, 2)
        assert tf.placeholder(tf.float32, [None, size]).shape[1] == 3


def test_cells_have_half_the_units_of_an_even_number():
    with tf.Graph().as_default():
        cell = tf.nn.rnn_cell.BasicLSTMCell(6 / 2)
        (output,), _ = tf.nn.static_rnn(cell, [tf.zeros([2, 2])], dtype=tf.float32)
        assert output.shape == (2, 3)


def test_estimators_take_such_sizes_through_their_decorated_functions(tmp_path):
    crossed = tf.feature_column.crossed_column(["x", "y"], 100 / 2)
    estimator = tf.estimator.LinearClassifier([crossed], str(tmp_path))
    words = {"x": [["a"], ["b"]], "y": [["c"], ["d"]]}
    estimator.train(lambda: ({k: tf.constant(v) for k, v in words.items()}, [[0], [1]]), steps=1)
    assert estimator.get_variable_value("linear/linear_model/x_X_y/weights").shape == (50, 1)


def test_half_a_size_is_refused_as_in_tf_1_15():
    with pytest.raises(ValueError, match=r"Ambiguous dimension: 3\.5"):
        tf.TensorShape([3.5])


def test_what_is_no_number_is_refused():
    with pytest.raises(TypeError):
        tf.TensorShape([object()])


def test_code_of_tf_2_is_refused_as_ever():
    tf.Dimension(3.0)
    modern = types.ModuleType("of_today")
    exec("import tensorflow as tf\ndef shape(size): return tf.TensorShape([size])", vars(modern))
    with pytest.raises(TypeError, match="must be integer"):
        modern.shape(3.0)


def test_datasets_take_an_int32_tensor_for_the_number_of_parallel_calls():
    with tf.Graph().as_default(), tf.Session() as session:
        calls = tf.constant(2, tf.int32)
        dataset = tf.data.Dataset.range(3).map(lambda number: number + 1, num_parallel_calls=calls)
        assert session.run(dataset.batch(3).make_one_shot_iterator().get_next()).tolist() == [
            1,
            2,
            3,
        ]
