"""`tf.contrib.cudnn_rnn` of TF 1.15: the cells that run its weights on any device."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator2strategy.tf1.contrib.rnn.fused_cells import LSTMBlockCell, MatrixCell

_v1 = tf.compat.v1


class CudnnCompatibleLSTMCell(LSTMBlockCell):
    """An LSTM step with cuDNN's defaults: no forget bias, no clipping.

    Args:
        num_units: Size of state and output.
        reuse: True if variables are those that the scope has.

    Source: `tf.contrib.cudnn_rnn.CudnnCompatibleLSTMCell`, TF 1.15.
    """

    def __init__(self, num_units: int, reuse: bool | None = None):
        super().__init__(num_units, forget_bias=0, reuse=reuse, name="cudnn_compatible_lstm_cell")


class CudnnCompatibleGRUCell(MatrixCell):
    """A GRU whose reset gate multiplies what the state contributes to the candidate, as in cuDNN.

    Args:
        num_units: Size of state and output.
        reuse: True if variables are those that the scope has.
        kernel_initializer: Of all matrices; by default that of the scope.

    Source: `tf.contrib.cudnn_rnn.CudnnCompatibleGRUCell`, TF 1.15.
    """

    def __init__(self, num_units: int, reuse: bool | None = None, kernel_initializer: Any = None):
        super().__init__(num_units, reuse)
        self._kernel_initializer = kernel_initializer

    def _make_variables(self, columns: int) -> None:
        size = self._num_units
        of_input, of_state = "candidate/input_projection", "candidate/hidden_projection"
        # In the order of the original, which that of its trainable variables is.
        self._gates = self._kernel("gates", columns + size, 2 * size)
        self._gate_bias = self._bias("gates", 2 * size, 1.0)
        self._of_input = self._kernel(of_input, columns, size)
        self._of_state = self._kernel(of_state, size, size)
        self._input_bias = self._bias(of_input, size, 0.0)
        self._state_bias = self._bias(of_state, size, 0.0)

    def _kernel(self, name: str, rows: int, columns: int) -> tf.Variable:
        start = self._kernel_initializer
        return self.add_variable(f"{name}/kernel", [rows, columns], initializer=start)

    def _bias(self, name: str, size: int, value: float) -> tf.Variable:
        start = _v1.constant_initializer(value)
        return self.add_variable(f"{name}/bias", [size], initializer=start)

    def call(self, inputs: tf.Tensor, state: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        gates = tf.matmul(tf.concat([inputs, state], 1), self._gates)
        reset, update = tf.split(tf.sigmoid(tf.nn.bias_add(gates, self._gate_bias)), 2, 1)
        from_input = tf.nn.bias_add(tf.matmul(inputs, self._of_input), self._input_bias)
        from_state = tf.nn.bias_add(tf.matmul(state, self._of_state), self._state_bias)
        new = (1 - update) * tf.tanh(from_input + reset * from_state) + update * state
        return new, new
