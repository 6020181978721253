"""Monotonic attention of `tf.contrib.seq2seq`: it moves along the memory, and never back.

Sources: `tf.contrib.seq2seq` attention_wrapper.py, TF 1.15; Raffel et al., arXiv:1704.00784.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy.tf1.contrib.seq2seq.attention_mechanisms import (
    BaseAttentionMechanism,
    bahdanau_score_of,
    luong_score_of,
    projection,
    size_of,
)

_v1 = tf.compat.v1


def safe_cumprod(x: Any, *args: Any, **kwargs: Any) -> tf.Tensor:
    """The cumulative product of numbers from 0 to 1, by their logarithms.

    The product itself, and its gradient, underflow. Numbers outside of the range, and 0, are
    clipped to it.

    Args:
        x: A tensor of any shape, float16, float32 or float64.
        args: Further arguments of `tf.cumsum`, which are those of `tf.math.cumprod`.
        kwargs: The same, by name: `axis`, `exclusive`, `reverse`, `name`.

    Returns:
        A tensor of the shape and dtype of `x`.
    """
    with _v1.name_scope(None, "SafeCumprod", [x]):
        x = tf.convert_to_tensor(x, name="x")
        smallest = np.finfo(x.dtype.as_numpy_dtype).tiny
        logarithms = tf.math.log(tf.clip_by_value(x, smallest, 1))
        return tf.exp(tf.cumsum(logarithms, *args, **kwargs))


def monotonic_attention(p_choose_i: Any, previous_attention: Any, mode: str) -> tf.Tensor:
    """The distribution of a step's attention over the memory, from the step before.

    Args:
        p_choose_i: [batch, time], floats from 0 to 1: probabilities that the step stops at an entry
            of the memory once it has come there.
        previous_attention: [batch, time], the same dtype: the distribution of the step before. The
            first step has 1 for the first entry, 0 for the others.
        mode: "recursive" is exact and goes through the memory in a loop. "parallel" has a closed
            form, which is not exact where probabilities are near 0 or 1. "hard" takes probabilities
            that are 0 or 1.

    Returns:
        [batch, time], the dtype of `p_choose_i`.

    Raises:
        ValueError: There is no such mode.
    """
    p = tf.convert_to_tensor(p_choose_i, name="p_choose_i")
    before = tf.convert_to_tensor(previous_attention, name="previous_attention")
    if mode not in _MODES:
        raise ValueError("mode must be 'recursive', 'parallel', or 'hard'.")
    return _MODES[mode](p, before)


def _recursive(p: tf.Tensor, before: tf.Tensor) -> tf.Tensor:
    batch = size_of(p, 0)
    # An entry is passed, and the next one reached, with 1 - p.
    passed = tf.concat([tf.ones([batch, 1], p.dtype), 1 - p[:, :-1]], 1)

    def reach(reached: tf.Tensor, entry: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        passing, starting = entry
        # A loop needs the same static shape in each step.
        return tf.reshape(passing * reached + starting, [batch])

    by_time = (tf.transpose(passed), tf.transpose(before))
    return p * tf.transpose(tf.scan(reach, by_time, tf.zeros([batch], p.dtype)))


def _parallel(p: tf.Tensor, before: tf.Tensor) -> tf.Tensor:
    passed = safe_cumprod(1 - p, axis=1, exclusive=True)
    starts = tf.cumsum(before / tf.clip_by_value(passed, 1e-10, 1.0), axis=1)
    return p * passed * starts


def _hard(p: tf.Tensor, before: tf.Tensor) -> tf.Tensor:
    # Entries before the last one that was attended to are out of reach.
    p *= tf.cumsum(before, axis=1)
    return p * tf.math.cumprod(1 - p, axis=1, exclusive=True)


_MODES = {"recursive": _recursive, "parallel": _parallel, "hard": _hard}


def monotonic_probability_fn(
    score: tf.Tensor,
    previous_alignments: tf.Tensor,
    sigmoid_noise: float,
    mode: str,
    seed: int | None = None,
) -> tf.Tensor:
    """Alignments of scores, each a sigmoid's or, in mode "hard", 0 or 1 by its sign.

    Programs import it as `_monotonic_probability_fn`.

    Args:
        score: [batch, time], floats.
        previous_alignments: [batch, time], the alignments of the step before.
        sigmoid_noise: Deviation of noise on the scores, which trains a model to score decidedly.
        mode: See `monotonic_attention`.
        seed: Of the noise.

    Returns:
        [batch, time], the dtype of `score`.
    """
    if sigmoid_noise > 0:
        score += sigmoid_noise * tf.random.normal(tf.shape(score), dtype=score.dtype, seed=seed)
    p = tf.cast(score > 0, score.dtype) if mode == "hard" else tf.sigmoid(score)
    return monotonic_attention(p, previous_alignments, mode)


class BaseMonotonicAttentionMechanism(BaseAttentionMechanism):
    """A mechanism whose first step starts at the first entry of the memory.

    Programs derive from it as `_BaseMonotonicAttentionMechanism`.
    """

    def initial_alignments(self, batch_size: Any, dtype: Any) -> tf.Tensor:
        """[batch_size, time]: 1 for the first entry, 0 for the others."""
        first = tf.zeros([batch_size], tf.int32)
        return tf.one_hot(first, self._alignments_size, dtype=dtype)


class BahdanauMonotonicAttention(BaseMonotonicAttentionMechanism):
    """Monotonic attention that scores as `BahdanauAttention`, and adds `attention_score_bias`.

    Args:
        num_units: Depth of keys and query.
        memory: [batch, time, depth].
        memory_sequence_length: [batch]; what comes later is not looked at.
        normalize: True if there are variables `attention_g` and `attention_b`.
        score_mask_value: Score of what is not looked at; minus infinity by default.
        sigmoid_noise: Deviation of noise on the scores; 0 if the model does not train.
        sigmoid_noise_seed: Seed of the noise.
        score_bias_init: The bias at first, negative for a long memory.
        mode: See `monotonic_attention`.
        dtype: Of the layers.
        name: Of the name scope.
    """

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        score_mask_value: Any = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: Any = 0.0,
        mode: str = "parallel",
        dtype: Any = None,
        name: str = "BahdanauMonotonicAttention",
    ):
        super().__init__(
            projection(num_units, "query_layer", dtype),
            memory,
            _probability_fn(sigmoid_noise, mode, sigmoid_noise_seed),
            memory_sequence_length,
            projection(num_units, "memory_layer", dtype),
            score_mask_value=score_mask_value,
            name=name,
        )
        self._num_units = num_units
        self._normalize = normalize
        self._score_bias_init = score_bias_init

    def __call__(self, query: tf.Tensor, state: Any) -> tuple[tf.Tensor, tf.Tensor]:
        """Alignments of `query` [batch, depth], and the state after it."""
        with _v1.variable_scope(None, "bahdanau_monotonic_attention", [query]):
            processed = self.query_layer(query) if self.query_layer else query
            score = bahdanau_score_of(
                processed, self._keys, self._num_units, self._normalize, query.dtype
            )
            score += _score_bias(processed.dtype, self._score_bias_init)
        alignments = self._probability_fn(score, state)
        return alignments, alignments


class LuongMonotonicAttention(BaseMonotonicAttentionMechanism):
    """Monotonic attention that scores as `LuongAttention`, and adds `attention_score_bias`.

    Args: see `BahdanauMonotonicAttention`; `num_units` must be the depth of the query, and `scale`
        adds `attention_g`.
    """

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        score_mask_value: Any = None,
        sigmoid_noise: float = 0.0,
        sigmoid_noise_seed: int | None = None,
        score_bias_init: Any = 0.0,
        mode: str = "parallel",
        dtype: Any = None,
        name: str = "LuongMonotonicAttention",
    ):
        super().__init__(
            None,
            memory,
            _probability_fn(sigmoid_noise, mode, sigmoid_noise_seed),
            memory_sequence_length,
            projection(num_units, "memory_layer", dtype),
            score_mask_value=score_mask_value,
            name=name,
        )
        self._num_units = num_units
        self._scale = scale
        self._score_bias_init = score_bias_init

    def __call__(self, query: tf.Tensor, state: Any) -> tuple[tf.Tensor, tf.Tensor]:
        """Alignments of `query` [batch, units], and the state after it."""
        with _v1.variable_scope(None, "luong_monotonic_attention", [query]):
            score = luong_score_of(query, self._keys, self._scale)
            score += _score_bias(query.dtype, self._score_bias_init)
        alignments = self._probability_fn(score, state)
        return alignments, alignments


def _probability_fn(noise: float, mode: str, seed: int | None) -> Any:
    return functools.partial(monotonic_probability_fn, sigmoid_noise=noise, mode=mode, seed=seed)


def _score_bias(dtype: Any, first: Any) -> Any:
    return _v1.get_variable("attention_score_bias", dtype=dtype, initializer=first)
