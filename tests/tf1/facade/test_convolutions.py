"""Transposed convolutions have the static shapes that programs of TF 1.15 go on with."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import estimator2strategy.tf1 as tf1


@pytest.mark.parametrize("name", ["conv2d_transpose", "conv2d_backprop_input", "conv_transpose"])
def test_a_transposed_convolution_has_the_shape_that_was_asked_for(name):
    def transposed(images, filters, shape):
        if name == "conv2d_backprop_input":
            return tf1.nn.conv2d_backprop_input(shape, filters, images, [1, 2, 2, 1], "SAME")
        return getattr(tf1.nn, name)(images, filters, shape, [1, 2, 2, 1])

    with tf.Graph().as_default():
        images = tf1.placeholder(tf.float32, [None, 2, 2, 8])
        filters = tf1.placeholder(tf.float32, [5, 5, 4, 8])
        batch = tf.shape(images)[0]
        assert transposed(images, filters, [3, 4, 4, 4]).shape == [3, 4, 4, 4]
        some = transposed(images, filters, tf.stack([batch, 4, 4, 4]))
        assert some.shape.as_list() == [None, 4, 4, 4]


@pytest.mark.parametrize("home", [tf1.nn, tf1.contrib.nn])
@pytest.mark.parametrize("shape", [[3, 4, 4], [np.int64(3), 4, 4]])
def test_a_transposed_convolution_of_one_dimension_has_the_shape_that_was_asked_for(home, shape):
    with tf.Graph().as_default():
        rows = tf1.placeholder(tf.float32, [None, 2, 8])
        filters = tf1.placeholder(tf.float32, [5, 4, 8])
        assert home.conv1d_transpose(rows, filters, shape, 2).shape == [3, 4, 4]
        some = home.conv1d_transpose(rows, filters, [tf.shape(rows)[0], 4, 4], 2)
        assert some.shape.as_list() == [None, 4, 4]


def test_a_transposed_convolution_with_holes_has_the_shape_that_was_asked_for():
    with tf.Graph().as_default():
        images = tf1.placeholder(tf.float32, [None, 4, 4, 8])
        filters = tf1.placeholder(tf.float32, [3, 3, 5, 8])
        asked = [3, 4, 4, 5]
        assert tf1.nn.atrous_conv2d_transpose(images, filters, asked, 2, "SAME").shape == asked


def test_a_transposed_convolution_works_eagerly():
    ones = tf.ones([1, 1, 1, 1])
    doubled = tf1.nn.conv2d_transpose(ones, 2 * ones, [1, 1, 1, 1], [1, 1, 1, 1])
    assert doubled.numpy().tolist() == [[[[2.0]]]]
