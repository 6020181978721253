"""`tf.contrib.rnn` of TF 1.15: cells whose units see their own past alone.

A vector takes the place of the matrix that recurrent cells multiply their state by.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

import estimator2strategy.tf1 as tf1
from estimator2strategy.tf1.contrib.rnn.fused_cells import MatrixCell

_v1 = tf.compat.v1
_cells = tf1.nn.rnn_cell


class _VectorCell(MatrixCell):
    """A cell with an activation, and with vectors for the units' own past.

    Args:
        activation: Of new inputs; tanh by default.
        num_units, reuse, **kwargs: As for `MatrixCell`.
    """

    def __init__(
        self,
        num_units: int,
        activation: Callable[..., Any] | None = None,
        reuse: bool | None = None,
        **kwargs: Any,
    ):
        super().__init__(num_units, reuse, **kwargs)
        self._activation = activation or tf.tanh

    def _vector(self, name: str, size: int) -> Any:
        first = _v1.random_uniform_initializer(-1, 1, dtype=self.dtype)
        return self.add_variable(name, [1, size], initializer=first)


class SRUCell(_VectorCell):
    """The Simple Recurrent Unit: a gate for its state, and one between state and input.

    Args: See the other cells here.

    Source: `tf.contrib.rnn.SRUCell`, TF 1.15; https://arxiv.org/abs/1709.02755.
    """

    def _make_variables(self, columns: int) -> None:
        self._kernel = self.add_variable("kernel", [columns, 4 * self._num_units])
        zeros = _v1.zeros_initializer()
        self._bias = self.add_variable("bias", [2 * self._num_units], initializer=zeros)

    def call(self, inputs: tf.Tensor, state: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        new, *gates, skipped = tf.split(tf.matmul(inputs, self._kernel), 4, 1)
        gate = tf.sigmoid(tf.nn.bias_add(tf.concat(gates, 1), self._bias))
        forget, reset = tf.split(gate, 2, 1)
        state = forget * state + (1.0 - forget) * new
        return reset * self._activation(state) + (1.0 - reset) * skipped, state


class IndRNNCell(_VectorCell):
    """A plain recurrent cell of independent units.

    Args: See the other cells here.

    Source: `tf.contrib.rnn.IndRNNCell`, TF 1.15; https://arxiv.org/abs/1803.04831.
    """

    def __init__(
        self,
        num_units: int,
        activation: Callable[..., Any] | None = None,
        reuse: bool | None = None,
        name: str | None = None,
        dtype: Any = None,
    ):
        super().__init__(num_units, activation, reuse, name=name, dtype=dtype)

    def _make_variables(self, columns: int) -> None:
        self._kernel = self.add_variable("kernel_w", [columns, self._num_units])
        self._own = self._vector("kernel_u", self._num_units)
        zeros = _v1.zeros_initializer(dtype=self.dtype)
        self._bias = self.add_variable("bias", [self._num_units], initializer=zeros)

    def call(self, inputs: tf.Tensor, state: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        new = tf.matmul(inputs, self._kernel) + state * self._own
        output = self._activation(tf.nn.bias_add(new, self._bias))
        return output, output


class _Gates:
    """The gates of a cell, side by side, for an input and for a state as wide as they are."""

    def __init__(self, cell: Any, names: tuple[str, str, str], columns: int, parts: int, bias: Any):
        kernel, own, offset = names
        size = parts * cell._num_units
        first = cell._kernel_initializer
        self._kernel = cell.add_variable(kernel, [columns, size], initializer=first)
        self._own = cell._vector(own, size)
        bias = cell._bias_initializer or bias
        self._bias = cell.add_variable(offset, [size], initializer=bias)
        self._parts = parts

    def __call__(self, inputs: tf.Tensor, state: tf.Tensor) -> tf.Tensor:
        own = tf.tile(state, [1, self._parts]) * self._own
        return tf.nn.bias_add(tf.matmul(inputs, self._kernel) + own, self._bias)


class _GatedCell(_VectorCell):
    """A cell whose gates are `_Gates`.

    Args:
        num_units: Size of state and output.
        activation: Of inner states and outputs; tanh by default.
        reuse: True if variables are those that the scope has.
        kernel_initializer: Of the matrices; the scope's by default.
        bias_initializer: Of the biases; by default ones for a GRU's gates and else zeros.
        name, dtype: As for `tf.layers`.
    """

    def __init__(
        self,
        num_units: int,
        activation: Callable[..., Any] | None = None,
        reuse: bool | None = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: Any = None,
    ):
        super().__init__(num_units, activation, reuse, name=name, dtype=dtype)
        self._kernel_initializer = kernel_initializer
        self._bias_initializer = bias_initializer


class IndyGRUCell(_GatedCell):
    """A GRU of independent units.

    Args: As for `_GatedCell`.

    Source: `tf.contrib.rnn.IndyGRUCell`, TF 1.15; https://arxiv.org/abs/1803.04831.
    """

    def _make_variables(self, columns: int) -> None:
        ones = _v1.constant_initializer(1.0, dtype=self.dtype)
        names = ("gates/kernel_w", "gates/kernel_u", "gates/bias")
        self._gates = _Gates(self, names, columns, 2, ones)
        zeros = _v1.zeros_initializer(dtype=self.dtype)
        names = ("candidate/kernel", "candidate/kernel_u", "candidate/bias")
        self._candidate = _Gates(self, names, columns, 1, zeros)

    def call(self, inputs: tf.Tensor, state: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        reset, update = tf.split(tf.sigmoid(self._gates(inputs, state)), 2, 1)
        new = self._activation(self._candidate(inputs, reset * state))
        state = update * state + (1 - update) * new
        return state, state


class IndyLSTMCell(_GatedCell):
    """An LSTM of independent units.

    Args:
        forget_bias: Added to the forget gate.
        num_units, and the others: As for `_GatedCell`.

    Source: `tf.contrib.rnn.IndyLSTMCell`, TF 1.15; https://arxiv.org/abs/1903.08023.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        activation: Callable[..., Any] | None = None,
        reuse: bool | None = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: Any = None,
    ):
        super().__init__(
            num_units, activation, reuse, kernel_initializer, bias_initializer, name, dtype
        )
        self._forget_bias = forget_bias

    @property
    def state_size(self) -> Any:
        return _cells.LSTMStateTuple(self._num_units, self._num_units)

    def _make_variables(self, columns: int) -> None:
        zeros = _v1.zeros_initializer(dtype=self.dtype)
        self._gates = _Gates(self, ("kernel_w", "kernel_u", "bias"), columns, 4, zeros)

    def call(self, inputs: tf.Tensor, state: Any) -> tuple[tf.Tensor, Any]:
        cell, output = state
        entry, new, forget, exit_ = tf.split(self._gates(inputs, output), 4, 1)
        kept = cell * tf.sigmoid(forget + self._forget_bias)
        cell = kept + tf.sigmoid(entry) * self._activation(new)
        output = self._activation(cell) * tf.sigmoid(exit_)
        return output, _cells.LSTMStateTuple(cell, output)
