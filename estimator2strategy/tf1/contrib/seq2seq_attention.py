"""Attention of `tf.contrib.seq2seq`: a cell that looks back at a memory, [batch, time, depth]."""

from __future__ import annotations

import abc
import collections
import math
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

import estimator2strategy.tf1 as tf1

_v1 = tf.compat.v1
_Layer = tf1.layers.Layer


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


class _Attention(AttentionMechanism):
    """The shared part of the mechanisms: a masked memory, its keys, layers for memory and query."""

    def __init__(
        self,
        query_layer: Any,
        memory: Any,
        probability_fn: Callable,
        memory_sequence_length: Any,
        memory_layer: Any,
        score_mask_value: Any,
        custom_key_value_fn: Callable | None,
        name: str,
    ):
        for what, layer in (("query_layer", query_layer), ("memory_layer", memory_layer)):
            if layer is not None and not isinstance(layer, _Layer):
                raise TypeError(f"{what} is not a Layer: {type(layer).__name__}")
        if not callable(probability_fn):
            raise TypeError(
                f"probability_fn must be callable, saw type: {type(probability_fn).__name__}"
            )
        self._query_layer = query_layer
        self._memory_layer = memory_layer
        self.dtype = memory_layer.dtype
        # Mechanisms of programs call it, and some set their own: the name, and both arguments, are
        # those of TF 1.15.
        self._probability_fn = lambda score, state: probability_fn(self._masked(score))
        self._lengths = memory_sequence_length
        self._mask_value = -math.inf if score_mask_value is None else score_mask_value
        self._name = name
        with _v1.name_scope(name, "BaseAttentionMechanismInit"):
            self._values = _masked_memory(memory, memory_sequence_length)
            self._keys = memory_layer(self._values)
            if custom_key_value_fn is not None:
                self._keys, self._values = custom_key_value_fn(self._keys, self._values)
            batch, size = (_size(self._keys, axis) for axis in (0, 1))
            self._batch_size, self._alignments_size = batch, size

    def _masked(self, score: tf.Tensor) -> tf.Tensor:
        if self._lengths is None:
            return score
        lengths = tf.convert_to_tensor(self._lengths)
        message = "All values in memory_sequence_length must be greater than zero."
        with tf.control_dependencies([_v1.assert_positive(lengths, message=message)]):
            mask = tf.sequence_mask(lengths, tf.shape(score)[1])
        unseen = tf.fill(tf.shape(score), tf.cast(self._mask_value, score.dtype))
        return tf.where(mask, score, unseen)

    def _alignments(self, score: tf.Tensor, state: Any) -> tuple[tf.Tensor, tf.Tensor]:
        alignments = self._probability_fn(score, state)
        return alignments, alignments

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
        return _zeros(self._alignments_size, batch_size, dtype)

    def initial_state(self, batch_size: Any, dtype: Any) -> tf.Tensor:
        """The first alignments."""
        return self.initial_alignments(batch_size, dtype)


class LuongAttention(_Attention):
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
        probability_fn: Callable | None = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Callable | None = None,
        name: str = "LuongAttention",
    ):
        super().__init__(
            None,
            memory,
            probability_fn or tf.nn.softmax,
            memory_sequence_length,
            _projection(num_units, "memory_layer", dtype),
            score_mask_value,
            custom_key_value_fn,
            name,
        )
        self._num_units = num_units
        self._scale = scale

    def __call__(self, query: tf.Tensor, state: Any) -> tuple[tf.Tensor, tf.Tensor]:
        """Alignments of `query` [batch, units], and the state after it."""
        with _v1.variable_scope(None, "luong_attention", [query]):
            depth, units = query.shape[-1], self._keys.shape[-1]
            if tf.compat.dimension_value(depth) != tf.compat.dimension_value(units):
                raise ValueError(
                    "Incompatible or unknown inner dimensions between query and keys.  Query "
                    f"({query}) has units: {depth}.  Keys ({self._keys}) have units: {units}.  "
                    f"Perhaps you need to set num_units to the keys' dimension ({units})?"
                )
            score = tf.squeeze(tf.matmul(query[:, None], self._keys, transpose_b=True), [1])
            if self._scale:
                one = _v1.ones_initializer()
                score *= _v1.get_variable("attention_g", [], query.dtype, one)
        return self._alignments(score, state)


class BahdanauAttention(_Attention):
    """Additive attention (arXiv:1409.0473), normalised if asked for (arXiv:1602.07868).

    Args: see `LuongAttention`; `normalize` adds `attention_g` and `attention_b`.
    """

    def __init__(
        self,
        num_units: int,
        memory: Any,
        memory_sequence_length: Any = None,
        normalize: bool = False,
        probability_fn: Callable | None = None,
        score_mask_value: Any = None,
        dtype: Any = None,
        custom_key_value_fn: Callable | None = None,
        name: str = "BahdanauAttention",
    ):
        super().__init__(
            _projection(num_units, "query_layer", dtype),
            memory,
            probability_fn or tf.nn.softmax,
            memory_sequence_length,
            _projection(num_units, "memory_layer", dtype),
            score_mask_value,
            custom_key_value_fn,
            name,
        )
        self._num_units = num_units
        self._normalize = normalize

    def __call__(self, query: tf.Tensor, state: Any) -> tuple[tf.Tensor, tf.Tensor]:
        """Alignments of `query` [batch, depth], and the state after it."""
        with _v1.variable_scope(None, "bahdanau_attention", [query]):
            hidden = self._keys + self._query_layer(query)[:, None]
            v = _v1.get_variable("attention_v", [self._num_units], query.dtype)
            if self._normalize:
                first = _v1.constant_initializer(math.sqrt(1.0 / self._num_units))
                g = _v1.get_variable("attention_g", [], query.dtype, first)
                zeros = _v1.zeros_initializer()
                hidden += _v1.get_variable("attention_b", [self._num_units], query.dtype, zeros)
                v = g * v * tf.math.rsqrt(tf.reduce_sum(tf.square(v)))
            score = tf.reduce_sum(v * tf.tanh(hidden), 2)
        return self._alignments(score, state)


class AttentionWrapperState(
    collections.namedtuple(
        "AttentionWrapperState",
        ("cell_state", "attention", "time", "alignments", "alignment_history", "attention_state"),
    )
):
    """State of an `AttentionWrapper`; several mechanisms make tuples of the last three."""

    __slots__ = ()

    def clone(self, **kwargs: Any) -> AttentionWrapperState:
        """A copy with some fields replaced; their shapes are kept."""

        def like(old: Any, new: Any) -> Any:
            if tf.is_tensor(old) and tf.is_tensor(new):
                new.set_shape(old.shape)
            return new

        return tf.nest.map_structure(like, self, self._replace(**kwargs))


class AttentionWrapper(tf1.nn.rnn_cell.RNNCell):
    """A cell with attention: it reads its input with the last attention, and returns the next one.

    Args:
        cell: The cell inside.
        attention_mechanism: One mechanism, or a list of them.
        attention_layer_size: Size, or list of sizes, of the layers on output and context; without
            one the attention is the context itself.
        alignment_history: True if the state keeps all alignments in a TensorArray.
        cell_input_fn: Joins input and attention; concatenates by default.
        output_attention: True if the output is the attention, not that of `cell`.
        initial_cell_state: The state of `cell` in `zero_state`.
        name: The layer's name.
        attention_layer: Layers of the program's own, in place of `attention_layer_size`.
        attention_fn: Computes (attention, alignments, state) in place of the default.
        dtype: The layer's dtype.

    Raises:
        TypeError: An `attention_mechanism` is not one.
        ValueError: There is not one layer for each mechanism.
    """

    def __init__(
        self,
        cell: Any,
        attention_mechanism: Any,
        attention_layer_size: Any = None,
        alignment_history: bool = False,
        cell_input_fn: Callable | None = None,
        output_attention: bool = True,
        initial_cell_state: Any = None,
        name: str | None = None,
        attention_layer: Any = None,
        attention_fn: Callable | None = None,
        dtype: Any = None,
    ):
        super().__init__(name=name, dtype=dtype)
        self._is_multi = isinstance(attention_mechanism, (list, tuple))
        self._attention_mechanisms = _tuple(attention_mechanism)
        for mechanism in self._attention_mechanisms:
            if not isinstance(mechanism, AttentionMechanism):
                raise TypeError(
                    "attention_mechanism must be an AttentionMechanism or list of multiple "
                    f"AttentionMechanism instances, saw type: {type(mechanism).__name__}"
                )
        if cell_input_fn is not None and not callable(cell_input_fn):
            raise TypeError(
                f"cell_input_fn must be callable, saw type: {type(cell_input_fn).__name__}"
            )
        if attention_layer_size is not None and attention_layer is not None:
            raise ValueError("Only one of attention_layer_size and attention_layer should be set")
        self._cell = cell
        self._cell_input_fn = cell_input_fn or _concat
        self._attention_fn = attention_fn or _compute_attention
        self._output_attention = output_attention
        self._alignment_history = alignment_history
        self._attention_layers, self._attention_layer_size = self._layers(
            attention_layer_size, attention_layer
        )
        self._initial_cell_state = None
        if initial_cell_state is not None:
            batch = _size(tf.nest.flatten(initial_cell_state)[-1], 0)
            self._initial_cell_state = self._checked(
                batch, initial_cell_state, "initial_cell_state"
            )

    def _layers(self, sizes: Any, layers: Any) -> tuple[Sequence[Any], int]:
        """A layer, or None, for each mechanism; the size of all attentions together."""
        mechanisms = self._attention_mechanisms
        depths = [tf.compat.dimension_value(m.values.shape[-1]) for m in mechanisms]
        if sizes is None and layers is None:
            return [None] * len(mechanisms), sum(depths)
        given, what = (
            (sizes, "attention_layer_size") if layers is None else (layers, "attention_layer")
        )
        given = _tuple(given)
        if len(given) != len(mechanisms):
            raise ValueError(
                f"If provided, {what} must contain exactly one for each attention_mechanism, saw: "
                f"{len(given)} vs {len(mechanisms)}"
            )
        if layers is None:
            pairs = zip(given, mechanisms, strict=True)
            return [_projection(n, "attention_layer", m.dtype) for n, m in pairs], sum(given)
        shapes = [
            layer.compute_output_shape([None, self._cell.output_size + depth])
            for layer, depth in zip(given, depths, strict=True)
        ]
        return given, sum(tf.compat.dimension_value(shape[-1]) for shape in shapes)

    def _checked(self, batch_size: Any, values: Any, what: str) -> Any:
        """`values`, once it is sure that the memories have their batch size."""
        message = (
            f"AttentionWrapper {self.name}: Non-matching batch sizes between the memory (encoder "
            f"output) and the {what}.  Are you using the BeamSearchDecoder?  You may need to tile "
            "the memory via tf.contrib.seq2seq.tile_batch with argument multiple=beam_width."
        )
        checks = [
            _v1.assert_equal(batch_size, mechanism.batch_size, message=message)
            for mechanism in self._attention_mechanisms
        ]
        with tf.control_dependencies([check for check in checks if check is not None]):
            return tf.nest.map_structure(tf.identity, values)

    def _item_or_tuple(self, items: Sequence[Any]) -> Any:
        return tuple(items) if self._is_multi else items[0]

    @property
    def output_size(self) -> Any:
        return self._attention_layer_size if self._output_attention else self._cell.output_size

    @property
    def state_size(self) -> AttentionWrapperState:
        mechanisms = self._attention_mechanisms
        sizes = [m.alignments_size for m in mechanisms]
        return AttentionWrapperState(
            cell_state=self._cell.state_size,
            time=tf.TensorShape([]),
            attention=self._attention_layer_size,
            alignments=self._item_or_tuple(sizes),
            attention_state=self._item_or_tuple([m.state_size for m in mechanisms]),
            alignment_history=self._item_or_tuple(
                sizes if self._alignment_history else [()] * len(sizes)
            ),
        )

    def zero_state(self, batch_size: Any, dtype: Any) -> AttentionWrapperState:
        """The state before the first step: zeros, but for `initial_cell_state`."""
        with _v1.name_scope(type(self).__name__ + "ZeroState"):
            cell_state = self._initial_cell_state
            if cell_state is None:
                cell_state = self._cell.zero_state(batch_size, dtype)
            cell_state = self._checked(batch_size, cell_state, "requested batch size")
            mechanisms = self._attention_mechanisms
            alignments = [m.initial_alignments(batch_size, dtype) for m in mechanisms]
            histories = [
                _v1.TensorArray(dtype, 0, dynamic_size=True, element_shape=a.shape)
                if self._alignment_history
                else ()
                for a in alignments
            ]
            states = [m.initial_state(batch_size, dtype) for m in mechanisms]
            return AttentionWrapperState(
                cell_state=cell_state,
                time=tf.zeros([], tf.int32),
                attention=_zeros(self._attention_layer_size, batch_size, dtype),
                alignments=self._item_or_tuple(alignments),
                attention_state=self._item_or_tuple(states),
                alignment_history=self._item_or_tuple(histories),
            )

    def call(self, inputs: tf.Tensor, state: Any) -> tuple[tf.Tensor, AttentionWrapperState]:
        if not isinstance(state, AttentionWrapperState):
            raise TypeError(
                "Expected state to be instance of AttentionWrapperState. "
                f"Received type {type(state)} instead."
            )
        output, cell_state = self._cell(
            self._cell_input_fn(inputs, state.attention), state.cell_state
        )
        output = self._checked(_size(output, 0), output, "query (decoder output)")
        states, histories = state.attention_state, state.alignment_history
        if not self._is_multi:
            states, histories = [states], [histories]
        made = [
            self._attention_fn(mechanism, output, before, layer)
            for mechanism, before, layer in zip(
                self._attention_mechanisms, states, self._attention_layers, strict=True
            )
        ]
        attentions, alignments, states = map(list, zip(*made, strict=True))
        if self._alignment_history:
            pairs = zip(histories, alignments, strict=True)
            histories = [history.write(state.time, a) for history, a in pairs]
        attention = tf.concat(attentions, 1)
        after = AttentionWrapperState(
            time=state.time + 1,
            cell_state=cell_state,
            attention=attention,
            attention_state=self._item_or_tuple(states),
            alignments=self._item_or_tuple(alignments),
            alignment_history=self._item_or_tuple(histories),
        )
        return (attention if self._output_attention else output), after


def _compute_attention(
    mechanism: Any, cell_output: tf.Tensor, state: Any, layer: Any
) -> tuple[tf.Tensor, tf.Tensor, Any]:
    """Attention, alignments and state after a step."""
    alignments, after = mechanism(cell_output, state=state)
    context = tf.squeeze(tf.matmul(alignments[:, None], mechanism.values), [1])
    attention = context if layer is None else layer(tf.concat([cell_output, context], 1))
    return attention, alignments, after


def hardmax(logits: Any, name: str | None = None) -> tf.Tensor:
    """1 at the largest logit of each row, 0 elsewhere."""
    with _v1.name_scope(name, "Hardmax"):
        logits = tf.convert_to_tensor(logits, name="logits")
        return tf.one_hot(tf.argmax(logits, -1), _size(logits, -1), dtype=logits.dtype)


def _projection(units: int, name: str, dtype: Any) -> Any:
    return tf1.layers.Dense(units, name=name, use_bias=False, dtype=dtype or tf.float32)


def _masked_memory(memory: Any, lengths: Any) -> tf.Tensor:
    memory = tf.convert_to_tensor(memory, name="memory")
    if not memory.shape[2:].is_fully_defined():
        raise ValueError(
            f"Expected memory {memory.name} to have fully defined inner dims, but saw shape: "
            f"{memory.shape}"
        )
    if lengths is None:
        return memory
    mask = tf.sequence_mask(lengths, tf.shape(memory)[1], memory.dtype)
    for _ in memory.shape[2:]:
        mask = mask[..., None]
    return memory * mask


def _concat(inputs: tf.Tensor, attention: tf.Tensor) -> tf.Tensor:
    return tf.concat([inputs, attention], -1)


def _size(tensor: tf.Tensor, axis: int) -> Any:
    """Size of an axis, a number where it is known."""
    return tf.compat.dimension_value(tensor.shape[axis]) or tf.shape(tensor)[axis]


def _zeros(size: Any, batch_size: Any, dtype: Any) -> tf.Tensor:
    return tf.zeros([batch_size, size], dtype)


def _tuple(items: Any) -> tuple:
    return tuple(items) if isinstance(items, (list, tuple)) else (items,)
