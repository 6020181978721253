"""The recurrent network of TF 2's `RNNClassifier` and `RNNEstimator`, a model of tf-keras.

It is a module of its own because tf-keras is slow to import.

Source: tensorflow_estimator 2.15 canned/rnn.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
import tf_keras
from tf_keras.api._v1.keras import layers as layers_v1

from estimator2strategy.estimator.canned import columns

tf1 = tf.compat.v1

_CELLS = {
    "simple_rnn": tf_keras.layers.SimpleRNNCell,
    "lstm": tf_keras.layers.LSTMCell,
    "gru": tf_keras.layers.GRUCell,
}
_LAYERS = {
    "simple_rnn": tf_keras.layers.SimpleRNN,
    "lstm": tf_keras.layers.LSTM,
    "gru": tf_keras.layers.GRU,
}


def recurrent_layer(
    units: Any, kind: Any, cell_fn: Callable[..., Any] | None, sequences: bool
) -> Any:
    """The layer, or several in one.

    Args:
        units: Its size, or the sizes of several.
        kind: "simple_rnn", "lstm", "gru", or a function of `units` that makes a cell.
        cell_fn: Makes the cell, in the place of `units` and `kind`.
        sequences: True if it gives the outputs of all steps.

    Raises:
        ValueError: `kind` makes no cell.
    """
    if isinstance(units, int) and kind in _LAYERS:
        return _LAYERS[kind](units=units, return_sequences=sequences)
    cells = cell_fn() if cell_fn else [_cell(size, kind) for size in units]
    if isinstance(cells, list) and len(cells) == 1:
        (cells,) = cells
    return tf_keras.layers.RNN(cells, return_sequences=sequences)


def _cell(units: int, kind: Any) -> Any:
    make = _CELLS.get(kind, kind)
    if not callable(make):
        raise ValueError(
            "`cell_type` should be a class producing a RNN cell, or a string specifying the cell "
            f"type. Supported strings are: {list(_CELLS)}."
        )
    cell = make(units=units)
    if not hasattr(cell, "call") or not hasattr(cell, "state_size"):
        raise ValueError("RNN cell should have a `call` and `state_size` method.")
    return cell


class RecurrentNetwork(tf_keras.Model):
    """From features to logits.

    Args:
        layer: A recurrent layer; if it gives the outputs of all steps, so does the network.
        units: Number of logits.
        sequence_columns, context_columns: As for `RNNClassifierV2`.
    """

    def __init__(
        self, layer: Any, units: int, sequence_columns: Sequence[Any], context_columns: Any
    ):
        super().__init__(name="rnn_model")
        self._sequences = tf_keras.experimental.SequenceFeatures(sequence_columns)
        self._context = layers_v1.DenseFeatures(context_columns) if context_columns else None
        self._rnn_layer = layer
        self._logits_layer = tf_keras.layers.Dense(units, name="logits")

    def call(
        self, inputs: Mapping[str, Any], training: bool | None = None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """(Logits, float32 [batch, units] or [batch, longest, units]; bool [batch, longest], which
        is False at padding)."""
        with tf.name_scope("sequence_input_layer"):
            sequence, lengths = self._sequences(inputs, training=training)
            tf1.summary.histogram("sequence_length", lengths)
            if self._context:
                sequence = columns.with_context(sequence, self._context(inputs, training=training))
        mask = tf.sequence_mask(lengths)
        outputs = self._rnn_layer(sequence, mask=mask, training=training)
        return self._logits_layer(outputs), mask
