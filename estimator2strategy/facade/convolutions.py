"""Transposed convolutions whose static shape is all of `output_shape`, as in TF 1.15.

TF 2 takes the number of examples from the input, which may be unknown where `output_shape` has it.
Programs go on with `output.get_shape()`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import tensorflow as tf

nn = tf.compat.v1.nn


def _with_output_shape(convolution: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    @functools.wraps(convolution)
    def call(*args, **kwargs):
        output = convolution(*args, **kwargs)
        if not tf.executing_eagerly() and output.op.type == "Conv2DBackpropInput":
            shape = tf.get_static_value(output.op.inputs[0])
            if shape is not None and output.shape.is_compatible_with(shape):
                output.set_shape(shape)
        return output

    return call


conv2d_backprop_input = _with_output_shape(nn.conv2d_backprop_input)
conv2d_transpose = _with_output_shape(nn.conv2d_transpose)
conv_transpose = _with_output_shape(nn.conv_transpose)
