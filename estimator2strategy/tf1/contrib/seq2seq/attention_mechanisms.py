"""Attention mechanisms of `tf.contrib.seq2seq`, and the functions that they are made of.

Programs with a mechanism of their own import the functions, and the base class, by private names of
`tensorflow.contrib.seq2seq.python.ops.attention_wrapper`.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

import estimator2strategy.tf1 as tf1

_v1 = tf.compat.v1


class AttentionMechanism(abc.ABC):
    """Scores the memory for a query: alignments [batch, time], which add up to 1."""

    @property
    @abc.abstractmethod
    def alignments_size(self) -> Any:
        """Length of the memory."""

    @property
    @abc.abstractmethod
    def state_size(self) -> Any:
        """The size of the state that one step hands to the next."""


class BaseAttentionMechanism(AttentionMechanism):
    """The shared part of the mechanisms: a masked memory, its keys, layers for memory and query.

    Programs derive from it as `_BaseAttentionMechanism`.

    Args:
        query_layer: A layer for the query, or None.
        memory: [batch, time, depth].
        probability_fn: Makes alignments of scores [batch, time] and a state.
        memory_sequence_length: [batch]; what comes later is not looked at.
        memory_layer: A layer that makes keys of the memory.
        check_inner_dims_defined: True if all axes of the memory from the third on must be known.
        score_mask_value: Score of what is not looked at; minus infinity by default.
        custom_key_value_fn: Makes keys and values of keys and values.
        name: Of the name scope.
    """

    def __init__(
        self,
        query_layer: Any,
        memory: Any,
        probability_fn: Callable[..., Any],
        memory_sequence_length: Any = None,
        memory_layer: Any = None,
        check_inner_dims_defined: bool = True,
        score_mask_value: Any = None,
        custom_key_value_fn: Callable[..., Any] | None = None,
        name: str | None = None,
    ):
        for what, layer in (("query_layer", query_layer), ("memory_layer", memory_layer)):
            if layer is not None and not isinstance(layer, tf1.layers.Layer):
                raise TypeError(f"{what} is not a Layer: {type(layer).__name__}")
        if not callable(probability_fn):
            raise TypeError(
                f"probability_fn must be callable, saw type: {type(probability_fn).__name__}"
            )
        self._query_layer = query_layer
        self._memory_layer = memory_layer
        self.dtype = memory_layer.dtype
        lengths = memory_sequence_length
        unseen = -math.inf if score_mask_value is None else score_mask_value
        # Mechanisms of programs call it, and some set their own: the name, and both arguments, are
        # those of TF 1.15.
        self._probability_fn: Callable[..., tf.Tensor] = lambda score, state: probability_fn(
            maybe_mask_score(score, lengths, score_mask_value=unseen), state
        )
        self._name = name
        with _v1.name_scope(name, "BaseAttentionMechanismInit"):
            self._values = prepare_memory(
                memory, lengths, check_inner_dims_defined=check_inner_dims_defined
            )
            self._keys = memory_layer(self._values)
            if custom_key_value_fn is not None:
                self._keys, self._values = custom_key_value_fn(self._keys, self._values)
            batch, size = (size_of(self._keys, axis) for axis in (0, 1))
            self._batch_size, self._alignments_size = batch, size

    @property
    def memory_layer(self) -> Any:
        """Makes keys of the memory."""
        return self._memory_layer

    @property
    def query_layer(self) -> Any:
        """Applied to the query, unless it is None."""
        return self._query_layer

    @property
    def values(self) -> tf.Tensor:
        """The memory, 0 where a sequence has ended."""
        return self._values

    @property
    def keys(self) -> tf.Tensor:
        """[batch, time, units]"""
        return self._keys

    @property
    def batch_size(self) -> Any:
        """The batch size of the memory."""
        return self._batch_size

    @property
    def alignments_size(self) -> Any:
        return self._alignments_size

    @property
    def state_size(self) -> Any:
        return self._alignments_size

    def initial_alignments(self, batch_size: Any, dtype: Any) -> tf.Tensor:
        """Zeros."""
        return zeros(self._alignments_size, batch_size, dtype)

    def initial_state(self, batch_size: Any, dtype: Any) -> tf.Tensor:
        """The first alignments."""
        return self.initial_alignments(batch_size, dtype)


class LuongAttention(BaseAttentionMechanism):
    """Multiplicative attention (arXiv:1508.04025), with a scale if asked for.

    Args:
        num_units: Depth of the keys, which must be that of the query.
        memory: [batch, time, depth].
        memory_sequence_length: [batch]; what comes later is not looked at.
        scale: True if there is a variable `attention_g`.
        probability_fn: Makes alignments of scores; softmax by default.
        score_mask_value: Score of what is not looked at; minus infinity by default.
        dtype: Of the memory layer.
        custom_key_value_fn: Makes keys and values of keys and values.
        name: Of the name scope.
    """

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        scale: bool = False,
        probability_fn: Callable[..., Any] | None = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Callable[..., Any] | None = None,
        name: str = "LuongAttention",
    ):
        super().__init__(
            None,
            memory,
            _of_score(probability_fn),
            memory_sequence_length,
            projection(num_units, "memory_layer", dtype),
            score_mask_value=score_mask_value,
            custom_key_value_fn=custom_key_value_fn,
            name=name,
        )
        self._num_units = num_units
        self._scale = scale

    def __call__(self, query: tf.Tensor, state: Any) -> tuple[tf.Tensor, tf.Tensor]:
        """Alignments of `query` [batch, units], and the state after it."""
        with _v1.variable_scope(None, "luong_attention", [query]):
            score = luong_score_of(query, self._keys, self._scale)
        alignments = self._probability_fn(score, state)
        return alignments, alignments


class BahdanauAttention(BaseAttentionMechanism):
    """Additive attention (arXiv:1409.0473), normalised if asked for (arXiv:1602.07868).

    Args: see `LuongAttention`; `normalize` adds `attention_g` and `attention_b`.
    """

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        probability_fn: Callable[..., Any] | None = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Callable[..., Any] | None = None,
        name: str = "BahdanauAttention",
    ):
        super().__init__(
            projection(num_units, "query_layer", dtype),
            memory,
            _of_score(probability_fn),
            memory_sequence_length,
            projection(num_units, "memory_layer", dtype),
            score_mask_value=score_mask_value,
            custom_key_value_fn=custom_key_value_fn,
            name=name,
        )
        self._num_units = num_units
        self._normalize = normalize

    def __call__(self, query: tf.Tensor, state: Any) -> tuple[tf.Tensor, tf.Tensor]:
        """Alignments of `query` [batch, depth], and the state after it."""
        with _v1.variable_scope(None, "bahdanau_attention", [query]):
            processed = self._query_layer(query)
            score = bahdanau_score_of(
                processed, self._keys, self._num_units, self._normalize, query.dtype
            )
        alignments = self._probability_fn(score, state)
        return alignments, alignments


def _of_score(probability_fn: Callable[..., Any] | None) -> Callable[..., Any]:
    """The function with a second argument, the state, that it does not need."""
    return lambda score, state: (probability_fn or tf.nn.softmax)(score)


def luong_score_of(query: tf.Tensor, keys: tf.Tensor, is_scaled: bool) -> tf.Tensor:
    """`luong_score` with the variable of the current scope, if it is scaled."""
    scale = None
    if is_scaled:
        scale = _v1.get_variable("attention_g", [], query.dtype, _v1.ones_initializer())
    return luong_score(query, keys, scale)


def bahdanau_score_of(
    processed_query: tf.Tensor, keys: tf.Tensor, units: int, is_normalized: bool, dtype: Any
) -> tf.Tensor:
    """`bahdanau_score` with the variables of the current scope, which have this dtype."""
    v = _v1.get_variable("attention_v", [units], dtype)
    g = b = None
    if is_normalized:
        first = _v1.constant_initializer(math.sqrt(1.0 / units))
        g = _v1.get_variable("attention_g", [], dtype, first)
        b = _v1.get_variable("attention_b", [units], dtype, _v1.zeros_initializer())
    return bahdanau_score(processed_query, keys, v, g, b)


def luong_score(query: tf.Tensor, keys: tf.Tensor, scale: Any) -> tf.Tensor:
    """Scores [batch, time] of a query [batch, units]: products with the keys, scaled or not.

    Raises:
        ValueError: Query and keys have different depths.
    """
    depth, units = query.shape[-1], keys.shape[-1]
    if tf.compat.dimension_value(depth) != tf.compat.dimension_value(units):
        raise ValueError(
            f"Incompatible or unknown inner dimensions between query and keys.  Query ({query}) "
            f"has units: {depth}.  Keys ({keys}) have units: {units}.  Perhaps you need to set "
            f"num_units to the keys' dimension ({units})?"
        )
    score = tf.squeeze(tf.matmul(query[:, None], keys, transpose_b=True), [1])
    return score if scale is None else scale * score


def bahdanau_score(
    processed_query: tf.Tensor,
    keys: tf.Tensor,
    attention_v: Any,
    attention_g: Any = None,
    attention_b: Any = None,
) -> tf.Tensor:
    """Scores [batch, time] of a query [batch, units]; normalised if `g` and `b` are given."""
    hidden = keys + processed_query[:, None]
    if attention_g is not None and attention_b is not None:
        hidden += attention_b
        inverse = tf.math.rsqrt(tf.reduce_sum(tf.square(attention_v)))
        attention_v = attention_g * attention_v * inverse
    return tf.reduce_sum(attention_v * tf.tanh(hidden), 2)


def maybe_mask_score(
    score: tf.Tensor,
    memory_sequence_length: Any = None,
    memory_mask: Any = None,
    score_mask_value: Any = None,
) -> tf.Tensor:
    """Scores [batch, time], with `score_mask_value` where a sequence has ended or a mask is False.

    Raises:
        ValueError: Lengths and a mask are given.
    """
    _check_one(memory_sequence_length, memory_mask)
    if memory_sequence_length is None and memory_mask is None:
        return score
    if memory_mask is None:
        lengths = tf.convert_to_tensor(memory_sequence_length)
        message = "All values in memory_sequence_length must be greater than zero."
        with tf.control_dependencies([_v1.assert_positive(lengths, message=message)]):
            memory_mask = tf.sequence_mask(lengths, tf.shape(score)[1])
    unseen = tf.fill(tf.shape(score), tf.cast(score_mask_value, score.dtype))
    return tf.where(memory_mask, score, unseen)


def _check_one(lengths: Any, mask: Any) -> None:
    if lengths is not None and mask is not None:
        raise ValueError("memory_sequence_length and memory_mask can't be provided at same time.")


def prepare_memory(
    memory: Any,
    memory_sequence_length: Any = None,
    memory_mask: Any = None,
    check_inner_dims_defined: bool = True,
) -> Any:
    """The memory, a tensor or several, with 0 where a sequence has ended or a mask is False.

    Raises:
        ValueError: Lengths and a mask are given; or inner axes are not known.
    """
    _check_one(memory_sequence_length, memory_mask)
    memory = tf.nest.map_structure(lambda m: tf.convert_to_tensor(m, name="memory"), memory)
    for part in tf.nest.flatten(memory) if check_inner_dims_defined else ():
        if not part.shape[2:].is_fully_defined():
            raise ValueError(
                f"Expected memory {part.name} to have fully defined inner dims, but saw shape: "
                f"{part.shape}"
            )
    if memory_sequence_length is None and memory_mask is None:
        return memory
    first = tf.nest.flatten(memory)[0]
    if memory_mask is None:
        memory_mask = tf.sequence_mask(memory_sequence_length, tf.shape(first)[1])
    mask = tf.cast(memory_mask, first.dtype)

    def masked(part: tf.Tensor) -> tf.Tensor:
        inner = tf.ones([tf.rank(part) - 2], tf.int32)
        return part * tf.reshape(mask, tf.concat([tf.shape(mask), inner], 0))

    return tf.nest.map_structure(masked, memory)


def compute_attention(
    attention_mechanism: Any, cell_output: tf.Tensor, attention_state: Any, attention_layer: Any
) -> tuple[tf.Tensor, tf.Tensor, Any]:
    """Attention, alignments and state after a step."""
    alignments, after = attention_mechanism(cell_output, state=attention_state)
    context = tf.squeeze(tf.matmul(alignments[:, None], attention_mechanism.values), [1])
    if attention_layer is None:
        return context, alignments, after
    return attention_layer(tf.concat([cell_output, context], 1)), alignments, after


def projection(units: int, name: str, dtype: Any) -> Any:
    """A dense layer without a bias."""
    return tf1.layers.Dense(units, name=name, use_bias=False, dtype=dtype or tf.float32)


def size_of(tensor: tf.Tensor, axis: int) -> Any:
    """Size of an axis, a number where it is known."""
    return tf.compat.dimension_value(tensor.shape[axis]) or tf.shape(tensor)[axis]


def zeros(size: Any, batch_size: Any, dtype: Any) -> tf.Tensor:
    """[batch_size, size]"""
    return tf.zeros([batch_size, size], dtype)
