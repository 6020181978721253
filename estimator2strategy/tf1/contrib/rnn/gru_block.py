"""`tf.contrib.rnn` of TF 1.15: the GRU that had a kernel of its own."""

from __future__ import annotations

import tensorflow as tf

import estimator2strategy.tf1 as tf1
from estimator2strategy.tf1.contrib.rnn.fused_cells import LayerRNNCell

_v1 = tf.compat.v1


class GRUBlockCell(LayerRNNCell):
    """A GRU, of several ops: its kernel's gradient left TensorFlow with tf.contrib.

    Args:
        num_units: Size of state and output.
        cell_size: Old name of `num_units`.
        reuse: True if variables are those that the scope has.
        name: Of the scope of the variables.

    Raises:
        ValueError: Not exactly one size is given.

    Source: `tf.contrib.rnn.GRUBlockCell`, TF 1.15; https://arxiv.org/abs/1406.1078.
    """

    _names = ("w_ru", "b_ru", "w_c", "b_c")

    def __init__(
        self,
        num_units: int | None = None,
        cell_size: int | None = None,
        reuse: bool | None = None,
        name: str = "gru_cell",
    ):
        super().__init__(_reuse=reuse, name=name)
        if (cell_size is None) == (num_units is None):
            raise ValueError("Exactly one of num_units or cell_size must be provided.")
        self._cell_size: int = num_units or cell_size  # type: ignore[assignment]
        self.input_spec = tf1.layers.InputSpec(ndim=2)

    @property
    def state_size(self) -> int:
        return self._cell_size

    @property
    def output_size(self) -> int:
        return self._cell_size

    def build(self, input_shape: tf.TensorShape) -> None:
        columns = tf.compat.dimension_value(tf.TensorShape(input_shape)[1])
        if columns is None:
            raise ValueError("Expecting input_size to be set.")
        rows, size = columns + self._cell_size, self._cell_size
        gates, gate_bias, candidate, candidate_bias = self._names
        ones, zeros = (_v1.constant_initializer(value) for value in (1.0, 0.0))
        self._gates = self.add_variable(gates, [rows, 2 * size])
        self._gate_bias = self.add_variable(gate_bias, [2 * size], initializer=ones)
        self._candidate = self.add_variable(candidate, [rows, size])
        self._candidate_bias = self.add_variable(candidate_bias, [size], initializer=zeros)
        self.built = True

    def call(self, inputs: tf.Tensor, h_prev: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        size = tf.compat.dimension_value(h_prev.shape.with_rank(2)[1])
        if size != self._cell_size:
            raise ValueError(f"Shape of h_prev[1] incorrect: cell_size {self._cell_size} vs {size}")
        gates = tf.matmul(tf.concat([inputs, h_prev], 1), self._gates) + self._gate_bias
        reset, update = tf.split(tf.sigmoid(gates), 2, 1)
        candidate = tf.matmul(tf.concat([inputs, h_prev * reset], 1), self._candidate)
        state = (1 - update) * tf.tanh(candidate + self._candidate_bias) + update * h_prev
        return state, state


class GRUBlockCellV2(GRUBlockCell):
    """A `GRUBlockCell` with the variables of `tf.nn.rnn_cell.GRUCell`."""

    _names = ("gates/kernel", "gates/bias", "candidate/kernel", "candidate/bias")
