"""Logarithm, sine and cosine of float32 that are the same on each device: of sums and products.

XLA's own differ by device, and are as exact as float32. These compute in float64, and are rounded:
of a million results none was another than the exact one's, rounded. They are polynomials, so XLA
makes vector code of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

# The bits of the square root of 1/2, as a float32.
_ROOT_OF_HALF = 0x3F3504F3
_MANTISSA = 23
# As many terms of each series as float64 needs.
_LOG_TERMS = [1 / (2 * k + 1) for k in range(11)]
_SINE_TERMS = [(-1) ** k / math.factorial(2 * k + 1) for k in range(8)]
_COSINE_TERMS = [(-1) ** k / math.factorial(2 * k) for k in range(9)]
# A quarter of a turn in two parts: a small number times the first is exact.
_QUARTER = float(np.float32(math.pi / 2))
_QUARTER_REST = (math.pi / 2 - _QUARTER) + 6.123233995736766e-17  # what math.pi / 2 lacks


def log(x: tf.Tensor) -> tf.Tensor:
    """The logarithm of positive, normal float32 numbers."""
    bits = tf.bitcast(x, tf.int32)
    exponent = tf.bitwise.right_shift(bits - _ROOT_OF_HALF, _MANTISSA)
    # Between the square roots of 1/2 and of 2.
    mantissa = tf.bitcast(bits - exponent * 2**_MANTISSA, tf.float32)
    mantissa = tf.cast(mantissa, tf.float64)
    ratio = (mantissa - 1) / (mantissa + 1)
    series = 2 * ratio * _polynomial(ratio * ratio, _LOG_TERMS)
    exact = series + tf.cast(exponent, tf.float64) * tf.constant(math.log(2), tf.float64)
    return tf.cast(exact, tf.float32)


def sine_or_cosine(angle: tf.Tensor, is_cosine: tf.Tensor) -> tf.Tensor:
    """The sine, or the cosine, of float32 angles between 0 and a full turn.

    Args:
        is_cosine: int32 of the shape of `angle`: 1 for the cosine, 0 for the sine.
    """
    exact = tf.cast(angle, tf.float64)
    quarters = tf.cast(exact * tf.constant(2 / math.pi, tf.float64) + 0.5, tf.int32)
    turned = tf.cast(quarters, tf.float64)
    rest = (exact - turned * tf.constant(_QUARTER, tf.float64)) - turned * tf.constant(
        _QUARTER_REST, tf.float64
    )
    square = rest * rest
    sine, cosine = rest * _polynomial(square, _SINE_TERMS), _polynomial(square, _COSINE_TERMS)
    quarters += is_cosine
    result = tf.where(tf.equal(quarters & 1, 0), sine, cosine)
    return tf.cast(tf.where(tf.equal(quarters & 2, 0), result, -result), tf.float32)


def _polynomial(x: tf.Tensor, terms: Sequence[float]) -> tf.Tensor:
    """Computes `terms[0] + terms[1] * x + ...` in float64."""
    result = tf.constant(terms[-1], tf.float64)
    for term in terms[-2::-1]:
        result = result * x + tf.constant(term, tf.float64)
    return result
