"""Transposed convolutions whose static shape is all of `output_shape`, as in TF 1.15.

TF 2 takes the number of examples from the input, which may be unknown where `output_shape` has it.
Programs go on with `output.get_shape()`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import tensorflow as tf

nn = tf.compat.v1.nn


def _with_output_shape(
    convolution: Callable[..., tf.Tensor], argument: str = "output_shape"
) -> Callable[..., tf.Tensor]:
    signature = inspect.signature(convolution)

    @functools.wraps(convolution)
    def call(*args: Any, **kwargs: Any) -> Any:
        output = convolution(*args, **kwargs)
        shape = _known(signature.bind(*args, **kwargs).arguments[argument])
        if not tf.executing_eagerly() and output.shape.is_compatible_with(shape):
            output.set_shape(shape)
        return output

    call.__signature__ = signature  # type: ignore[attr-defined]  # for getfullargspec
    return call


def _known(shape: Any) -> Any:
    """The shape that a tensor, or a list of integers and tensors, is known to hold; None if not."""
    if tf.is_tensor(shape):
        return tf.get_static_value(shape)
    sizes = [tf.get_static_value(size) if tf.is_tensor(size) else size for size in shape]
    return None if None in sizes else sizes


atrous_conv2d_transpose = _with_output_shape(nn.atrous_conv2d_transpose)
conv1d_transpose = _with_output_shape(nn.conv1d_transpose)
conv2d_backprop_input = _with_output_shape(nn.conv2d_backprop_input, "input_sizes")
conv2d_transpose = _with_output_shape(nn.conv2d_transpose)
conv_transpose = _with_output_shape(nn.conv_transpose)
