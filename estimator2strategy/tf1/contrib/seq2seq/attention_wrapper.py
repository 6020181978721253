"""Attention of `tf.contrib.seq2seq`: a cell that looks back at a memory, [batch, time, depth]."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from typing import Any, cast

import tensorflow as tf

import estimator2strategy.tf1 as tf1
from estimator2strategy.tf1.contrib.seq2seq.attention_mechanisms import (
    AttentionMechanism,
    compute_attention,
    projection,
    size_of,
    zeros,
)

_v1 = tf.compat.v1


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

        return cast(
            AttentionWrapperState, tf.nest.map_structure(like, self, self._replace(**kwargs))
        )


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
        cell_input_fn: Callable[..., Any] | None = None,
        output_attention: bool = True,
        initial_cell_state: Any = None,
        name: str | None = None,
        attention_layer: Any = None,
        attention_fn: Callable[..., Any] | None = None,
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
        self._attention_fn = attention_fn or compute_attention
        self._output_attention = output_attention
        self._alignment_history = alignment_history
        self._attention_layers, self._attention_layer_size = self._layers(
            attention_layer_size, attention_layer
        )
        self._initial_cell_state = None
        if initial_cell_state is not None:
            batch = size_of(tf.nest.flatten(initial_cell_state)[-1], 0)
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
            return [projection(n, "attention_layer", m.dtype) for n, m in pairs], sum(given)
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
                attention=zeros(self._attention_layer_size, batch_size, dtype),
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
        output = self._checked(size_of(output, 0), output, "query (decoder output)")
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


def hardmax(logits: Any, name: str | None = None) -> tf.Tensor:
    """1 at the largest logit of each row, 0 elsewhere."""
    with _v1.name_scope(name, "Hardmax"):
        logits = tf.convert_to_tensor(logits, name="logits")
        return tf.one_hot(tf.argmax(logits, -1), size_of(logits, -1), dtype=logits.dtype)


def _concat(inputs: tf.Tensor, attention: tf.Tensor) -> tf.Tensor:
    return tf.concat([inputs, attention], -1)


def _tuple(items: Any) -> tuple[Any, ...]:
    return tuple(items) if isinstance(items, (list, tuple)) else (items,)
