"""Draws random numbers under XLA, the very ones that TensorFlow's kernels for CPUs draw.

    key, counter = tf.constant([seed], tf.uint64), tf.constant([place, seed2], tf.uint64)
    uniform([32, 10], key, counter, tf.float32)

XLA has kernels for random ops, but they make other numbers of the same bits, or of other bits. This
module does what the kernels for CPUs do (tsl/lib/random/random_distributions.h; random_op_cpu.h,
random_shuffle_op.cc and multinomial_op.cc in tensorflow/core/kernels). Sizes must be constants, as
XLA wants them.

Integers, uniform numbers and shuffles are equal to the last bit. One normal number in 70 differs,
by at most 2.5e-7 of itself: the kernels call `logf` and `sincosf` of the C library, which do not
round correctly, nor alike in each version of it. XLA's own logarithm, sine and cosine differ by
device, and are as exact as float32. Those of this module are polynomials in float64, of which XLA
makes vector code, and are rounded: of a million results none was another than the exact one's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from estimator2strategy.engine.plan.random_ops import STRIDE

# The Box-Muller transform of the kernels takes no logarithm of less.
_LEAST = 1e-7
# The key under which GenerateKey (tensorflow/core/kernels/stateless_random_ops.cc) scrambles seeds.
_KEY_OF_SEEDS = 0x02461E29 << 32 | 0x3EC8F720
# From here on, a truncated normal is drawn again.
_TRUNCATED_AT = 2.0
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


class _Layout(NamedTuple):
    """The bits of a floating point number."""

    bits: tf.DType
    mantissa: int  # the number of its bits
    one: int  # the exponent of 1.0, as it is stored


_LAYOUTS = {
    tf.float16: _Layout(tf.uint16, 10, 15),
    tf.bfloat16: _Layout(tf.uint16, 7, 127),
    tf.float32: _Layout(tf.uint32, 23, 127),
    tf.float64: _Layout(tf.uint64, 52, 1023),
}


def scrambled(seed: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The key and the counter that `StatelessRandomGetKeyCounter` makes of a seed.

    XLA's kernel takes 32 bits of each half of the seed.
    """
    low, high = tf.unstack(tf.bitcast(tf.cast(seed, tf.int64), tf.uint64))
    words = _philox(low, high, tf.constant(_KEY_OF_SEEDS, tf.uint64))
    key, of_counter = _joined(words)
    return key[None], tf.stack([tf.zeros_like(of_counter), of_counter])


def uniform(shape: Any, key: tf.Tensor, counter: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Draws as `RandomUniform` does: floats of [0, 1)."""
    bits = tf.uint64 if dtype == tf.float64 else tf.uint32
    return _unit(_integers(shape, key, counter, bits), dtype)


def uniform_int(
    shape: Any, low: tf.Tensor, high: tf.Tensor, key: tf.Tensor, counter: tf.Tensor
) -> tf.Tensor:
    """Draws as `RandomUniformInt` does: integers of [low, high)."""
    unsigned = {tf.int32: tf.uint32, tf.int64: tf.uint64}[low.dtype]
    span = tf.bitcast(high, unsigned) - tf.bitcast(low, unsigned)
    offset = tf.math.floormod(_integers(shape, key, counter, unsigned), span)
    return low + tf.bitcast(offset, low.dtype)


def normal(shape: Any, key: tf.Tensor, counter: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Draws as `RandomStandardNormal` does."""
    within, index = _within(dtype), tf.range(_size(shape))
    block, place = _split(index, _in_block(within))
    drawn = _normals(counter[0] + block, place, counter[1], key[0], within)
    return tf.reshape(tf.cast(drawn, dtype), shape)


def truncated_normal(shape: Any, key: tf.Tensor, counter: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Draws as `TruncatedNormal` does: a number that is too far from 0 is drawn again.

    The kernel draws for a group of numbers at once, and leaves STRIDE numbers of the stream for
    each number, so that no group depends on how often another drew again.
    """
    within, size = _within(dtype), _size(shape)
    in_group = _in_block(within)
    groups = (size + in_group - 1) // in_group
    group, place = _split(tf.range(groups * in_group), in_group)
    first = counter[0] + group * tf.constant(in_group * STRIDE // 4, tf.uint64)

    def draw(tries: tf.Tensor) -> tf.Tensor:
        drawn = _normals(first + tries, place, counter[1], key[0], within)
        return tf.reshape(drawn, [groups, in_group])

    def unfilled(tries: tf.Tensor, drawn: tf.Tensor, count: tf.Tensor, _: tf.Tensor) -> tf.Tensor:
        del tries, drawn
        return tf.reduce_any(count < in_group)

    def fill(
        tries: tf.Tensor, drawn: tf.Tensor, count: tf.Tensor, found: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        good = tf.abs(drawn) < _TRUNCATED_AT
        fills = count[:, None] + tf.cumsum(tf.cast(good, tf.int32), axis=1, exclusive=True)
        # [group, drawn, filled]: at most one number for each place of a group.
        put = good[:, :, None] & tf.equal(fills[:, :, None], tf.range(in_group))
        found += tf.reduce_sum(tf.where(put, drawn[:, :, None], tf.zeros([], within)), axis=1)
        count += tf.reduce_sum(tf.cast(good, tf.int32), axis=1)
        # Those of the next iteration: XLA would draw what one uses itself once for each use.
        return tries + 1, draw(tries + 1), count, found

    none = tf.constant(0, tf.uint64)
    count, found = tf.zeros([groups], tf.int32), tf.zeros([groups, in_group], within)
    *_, found = tf.while_loop(unfilled, fill, (none, draw(none), count, found))
    return tf.reshape(tf.cast(tf.reshape(found, [-1])[:size], dtype), shape)


def shuffle(value: tf.Tensor, key: tf.Tensor, counter: tf.Tensor) -> tf.Tensor:
    """Shuffles as `RandomShuffle` does: each row but the last is swapped with one from there on."""
    if value.shape[0] is not None and value.shape[0] <= 1:
        return tf.identity(value)
    rows = tf.shape(value)[0]
    swaps = tf.maximum(rows - 1, 0)
    left = tf.cast(rows - tf.range(swaps), tf.uint32)
    ahead = tf.math.floormod(_integers([swaps], key, counter, tf.uint32), left)
    partners = tf.range(swaps) + tf.bitcast(ahead, tf.int32)

    def swap(i: tf.Tensor, order: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        pair = tf.stack([i, partners[i]])
        return i + 1, tf.tensor_scatter_nd_update(
            order, pair[:, None], tf.gather(order, pair[::-1])
        )

    _, order = tf.while_loop(lambda i, order: i < swaps, swap, (tf.constant(0), tf.range(rows)))
    return tf.gather(value, order)


def multinomial(
    logits: tf.Tensor, samples: Any, key: tf.Tensor, counter: tf.Tensor, dtype: tf.DType
) -> tf.Tensor:
    """Draws as `Multinomial` does on one thread: `samples` classes for each row of `logits`.

    With several threads the kernel begins the rows of each one at another place of the stream, so
    what it draws for a large batch depends on the machine.
    """
    finite = tf.math.is_finite(logits)
    most = tf.reduce_max(tf.where(finite, logits, logits.dtype.min), axis=1, keepdims=True)
    above = tf.cast(logits, tf.float64) - tf.cast(most, tf.float64)
    reached = tf.cumsum(tf.where(finite, tf.exp(above), tf.zeros([], tf.float64)), axis=1)
    drawn = uniform([tf.shape(logits)[0], samples], key, counter, tf.float64)
    wanted = drawn * reached[:, -1:]
    passed = reached[:, None, :] <= wanted[:, :, None]
    return tf.reduce_sum(tf.cast(passed, dtype), axis=2)


def _within(dtype: tf.DType) -> tf.DType:
    """The type in which the kernels compute normal numbers."""
    return tf.float64 if dtype == tf.float64 else tf.float32


def _in_block(dtype: tf.DType) -> int:
    """The numbers that are made of one call of the generator."""
    return 2 if dtype.size == 8 else 4


def _size(shape: Any) -> Any:
    return math.prod(shape) if isinstance(shape, tuple) else tf.reduce_prod(shape)


def _split(index: tf.Tensor, in_block: int) -> tuple[tf.Tensor, tf.Tensor]:
    """(the call of the generator that a number is of, as uint64; its place in the call's result)"""
    return tf.cast(index // in_block, tf.uint64), index % in_block


def _integers(shape: Any, key: tf.Tensor, counter: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Draws integers of all values of `dtype`: uint32 or uint64.

    Each of a call's numbers makes the call again. On a CPU that is three times as fast as one call
    for all, whose numbers XLA would have to interleave, and does not vectorise.
    """
    block, place = _split(tf.range(_size(shape)), _in_block(dtype))
    words = _philox(counter[0] + block, counter[1], key[0])
    if dtype == tf.uint64:
        words = _joined(words)
    return tf.reshape(_chosen(place, words), shape)


def _normals(
    low: tf.Tensor, place: tf.Tensor, high: tf.Tensor, key: tf.Tensor, dtype: tf.DType
) -> tf.Tensor:
    """Makes normal numbers by the Box-Muller transform: a sine and a cosine of two uniform ones.

    Args:
        low, high, key: See `_philox`.
        place: Of each number, in the result of its call of the generator.
        dtype: float32 or float64.
    """
    words = _philox(low, high, key)
    is_cosine = place % 2
    if dtype == tf.float64:
        first, second = (_unit(bits, dtype) for bits in _joined(words))
        angle = tf.constant(2 * math.pi, tf.float64) * second
        length = tf.sqrt(-2 * tf.math.log(tf.maximum(first, _LEAST)))
        return length * tf.where(tf.equal(is_cosine, 1), tf.cos(angle), tf.sin(angle))
    first, second = (_unit(_chosen(place // 2, words[i::2]), dtype) for i in range(2))
    angle = tf.constant(2 * math.pi, tf.float64) * tf.cast(second, tf.float64)
    length = tf.sqrt(-2 * log(tf.maximum(first, _LEAST)))
    return length * sine_or_cosine(tf.cast(angle, tf.float32), is_cosine)


def _unit(bits: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Makes floats of [0, 1): the mantissa is random, the exponent that of 1."""
    layout = _LAYOUTS[dtype]
    if dtype == tf.float64:  # the first of two numbers is the upper half
        bits = _left(bits) | _right(bits)
    mantissa = tf.cast(bits, layout.bits) & tf.constant(2**layout.mantissa - 1, layout.bits)
    one = tf.constant(layout.one << layout.mantissa, layout.bits)
    return tf.bitcast(mantissa | one, dtype) - tf.ones([], dtype)


def _chosen(number: tf.Tensor, options: Sequence[tf.Tensor]) -> tf.Tensor:
    """For each element, that of `options[number]`."""
    *others, chosen = options
    for i, option in reversed(list(enumerate(others))):
        chosen = tf.where(tf.equal(number, i), option, chosen)
    return chosen


def _philox(low: tf.Tensor, high: tf.Tensor, key: tf.Tensor) -> list[tf.Tensor]:
    """Calls the generator Philox4x32-10 at the counters `high * 2**64 + low`.

    Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011).

    Args:
        low: uint64.
        high, key: uint64 scalars.

    Returns:
        The four results, each a uint32 of the shape of `low`.
    """
    counter, keys = [*_halves(low), *_halves(high)], _halves(key)
    for _ in range(10):
        low_0, high_0 = _halves(tf.cast(counter[0], tf.uint64) * 0xD2511F53)
        low_1, high_1 = _halves(tf.cast(counter[2], tf.uint64) * 0xCD9E8D57)
        counter = [high_1 ^ counter[1] ^ keys[0], low_1, high_0 ^ counter[3] ^ keys[1], low_0]
        keys = [keys[0] + 0x9E3779B9, keys[1] + 0xBB67AE85]
    return counter


def _halves(numbers: tf.Tensor) -> list[tf.Tensor]:
    """The lower and the upper halves of uint64s, as uint32s."""
    return [tf.cast(numbers, tf.uint32), tf.cast(_right(numbers), tf.uint32)]


def _joined(words: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Makes a uint64 of each two of `words`, the lower half first."""
    halves = [tf.cast(word, tf.uint64) for word in words]
    return [low | _left(high) for low, high in zip(halves[0::2], halves[1::2], strict=True)]


def _left(numbers: tf.Tensor) -> tf.Tensor:
    """Shifts uint64s to the left by half of their bits."""
    return tf.bitwise.left_shift(numbers, tf.constant(32, tf.uint64))


def _right(numbers: tf.Tensor) -> tf.Tensor:
    """Shifts uint64s to the right by half of their bits."""
    return tf.bitwise.right_shift(numbers, tf.constant(32, tf.uint64))


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
