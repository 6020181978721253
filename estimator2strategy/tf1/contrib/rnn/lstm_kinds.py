"""`tf.contrib.rnn` of TF 1.15: kinds of LSTMs, and the GRU that had a kernel of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import tensorflow as tf

import estimator2strategy.tf1 as tf1
from estimator2strategy.tf1.contrib import layers as _layers
from estimator2strategy.tf1.contrib.rnn.around_cells import _Linear
from estimator2strategy.tf1.contrib.rnn.fused_cells import LayerRNNCell

_v1 = tf.compat.v1
_cells = tf1.nn.rnn_cell


def _columns(inputs: tf.Tensor) -> int:
    """The number of columns of a matrix.

    Raises:
        ValueError: It is not known.
    """
    columns = tf.compat.dimension_value(inputs.shape.with_rank(2)[1])
    if columns is None:
        raise ValueError("Could not infer input size from inputs.get_shape()[-1]")
    return cast(int, columns)


def _sharded(name: str, shape: list[int], dtype: Any, shards: int) -> tf.Tensor:
    """A matrix in `shards` variables `name_0`, `name_1`, ... of about as many rows each.

    Raises:
        ValueError: There are more shards than rows.
    """
    if shards > shape[0]:
        raise ValueError(f"Too many shards: shape={shape}, num_shards={shards}")
    rows, more = divmod(shape[0], shards)
    parts = [
        _v1.get_variable(f"{name}_{i}", [rows + (i < more), *shape[1:]], dtype)
        for i in range(shards)
    ]
    return parts[0] if shards == 1 else tf.concat(parts, 0, name=f"{name}/concat")


class _Linears:
    """The `_Linear` of each variable scope, made at its first use.

    Args:
        build_bias: True if they have a bias.
    """

    def __init__(self, build_bias: bool):
        self._build_bias = build_bias
        self._made: dict[str, _Linear] = {}

    def __call__(self, scope: str, inputs: tf.Tensor | list[tf.Tensor], size: int) -> tf.Tensor:
        with _v1.variable_scope(scope):
            if scope not in self._made:
                self._made[scope] = _Linear(inputs, size, self._build_bias)
            return self._made[scope](inputs)


class CoupledInputForgetGateLSTMCell(_cells.RNNCell):
    """An LSTM that takes in as much as it forgets.

    Args:
        num_units: Size of the cell.
        use_peepholes: True if gates look at the cell.
        initializer: Unused, as in TF 1.15: variables have the scope's.
        num_proj: Size of the outputs, if they are projected.
        proj_clip: Bound of projected outputs.
        num_unit_shards, num_proj_shards: Number of variables that a matrix consists of.
        forget_bias: Added to the forget gate.
        state_is_tuple: True if the state is an LSTMStateTuple, else both are in one tensor.
        activation: Of inner states and outputs.
        reuse: True if variables are those that the scope has.
        layer_norm: True if gates and state are normalised.
        norm_gain: First value of `gamma`.
        norm_shift: First value of `beta`.

    Source: `tf.contrib.rnn.CoupledInputForgetGateLSTMCell`, TF 1.15;
        https://arxiv.org/abs/1503.04069.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int = 1,
        num_proj_shards: int = 1,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Callable[..., Any] = tf.tanh,
        reuse: bool | None = None,
        layer_norm: bool = False,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
    ):
        del initializer
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._use_peepholes = use_peepholes
        self._num_proj = num_proj
        self._proj_clip = proj_clip
        self._num_unit_shards = num_unit_shards
        self._num_proj_shards = num_proj_shards
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._activation = activation
        self._layer_norm = layer_norm
        self._norms = {"gamma": norm_gain, "beta": norm_shift}

    @property
    def state_size(self) -> Any:
        sizes = _cells.LSTMStateTuple(self._num_units, self.output_size)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> int:
        return self._num_proj or self._num_units

    def call(self, inputs: tf.Tensor, state: Any) -> tuple[tf.Tensor, Any]:
        if not self._state_is_tuple:
            state = tf.split(state, [self._num_units, self.output_size], 1)
        cell, output = state
        new, forget, exit_ = self._gates(inputs, output)
        if self._use_peepholes:
            size, dtype = [self._num_units], inputs.dtype
            in_forget, in_exit = (_v1.get_variable(f"W_{n}_diag", size, dtype) for n in "FO")
            forget += in_forget * cell
        kept = tf.sigmoid(forget + self._forget_bias)
        cell = self._norm(kept * cell + (1 - kept) * self._activation(new), "state")
        if self._use_peepholes:
            exit_ += in_exit * cell
        output = self._projected(tf.sigmoid(exit_) * self._activation(cell))
        state = _cells.LSTMStateTuple(cell, output)
        return output, state if self._state_is_tuple else tf.concat(state, 1)

    def _gates(self, inputs: tf.Tensor, output: tf.Tensor) -> list[tf.Tensor]:
        """The new input, the forget gate and the output gate, before their activations."""
        size = [_columns(inputs) + self.output_size, 3 * self._num_units]
        weights = _sharded("W", size, inputs.dtype, self._num_unit_shards)
        zeros = _v1.zeros_initializer()
        bias = _v1.get_variable("B", size[1:], inputs.dtype, zeros)
        gates = tf.matmul(tf.concat([inputs, output], 1), weights)
        if not self._layer_norm:
            gates = tf.nn.bias_add(gates, bias)
        names = ("transform", "forget", "output")
        return [
            self._norm(gate, name) for gate, name in zip(tf.split(gates, 3, 1), names, strict=True)
        ]

    def _norm(self, inputs: tf.Tensor, scope: str) -> tf.Tensor:
        if not self._layer_norm:
            return inputs
        with _v1.variable_scope(scope):
            for name, value in self._norms.items():
                first = _v1.constant_initializer(value)
                _v1.get_variable(name, inputs.shape[-1:], initializer=first)
        return _layers.layer_norm(inputs, reuse=True, scope=scope)

    def _projected(self, output: tf.Tensor) -> tf.Tensor:
        if self._num_proj is None:
            return output
        size = [self._num_units, self._num_proj]
        output = tf.matmul(output, _sharded("W_P", size, output.dtype, self._num_proj_shards))
        bound = self._proj_clip
        return output if bound is None else tf.clip_by_value(output, -bound, bound)


class GLSTMCell(_cells.RNNCell):
    """An LSTM in groups: each sees its part of inputs and outputs alone.

    Args:
        num_units: Size of the cell.
        initializer: Of the matrices.
        num_proj: Size of the outputs, if they are projected.
        number_of_groups: Divides the sizes of inputs, cell and outputs.
        forget_bias: Added to the forget gate.
        activation: Of the output; new inputs always have tanh, as in TF 1.15.
        reuse: True if variables are those that the scope has.

    Raises:
        ValueError: A size is not divisible.

    Source: `tf.contrib.rnn.GLSTMCell`, TF 1.15; https://arxiv.org/abs/1703.10722.
    """

    def __init__(
        self,
        num_units: int,
        initializer: Any = None,
        num_proj: int | None = None,
        number_of_groups: int = 1,
        forget_bias: float = 1.0,
        activation: Callable[..., Any] = tf.tanh,
        reuse: bool | None = None,
    ):
        super().__init__(_reuse=reuse)
        for name, size in (("num_units", num_units), ("num_proj", num_proj)):
            if size and size % number_of_groups:
                raise ValueError(f"{name} must be divisible by number_of_groups")
        self._num_units = num_units
        self._initializer = initializer
        self._num_proj = num_proj
        self._groups = number_of_groups
        self._forget_bias = forget_bias
        self._activation = activation
        self._mapped = _Linears(build_bias=False)

    @property
    def state_size(self) -> Any:
        return _cells.LSTMStateTuple(self._num_units, self.output_size)

    @property
    def output_size(self) -> int:
        return self._num_proj or self._num_units

    def call(self, inputs: tf.Tensor, state: Any) -> tuple[tf.Tensor, Any]:
        cell, output = state
        columns = _columns(inputs)
        if columns % self._groups:
            raise ValueError(
                f"input size ({columns}) must be divisible by number_of_groups ({self._groups})"
            )
        with _v1.variable_scope(_v1.get_variable_scope(), initializer=self._initializer):
            entry, new, forget, exit_ = self._gates(inputs, output)
        kept = tf.sigmoid(forget + self._forget_bias) * cell
        cell = kept + tf.sigmoid(entry) * tf.tanh(new)
        output = tf.sigmoid(exit_) * self._activation(cell)
        if self._num_proj is not None:
            output = self._mapped("projection", output, self._num_proj)
        return output, _cells.LSTMStateTuple(cell, output)

    def _gates(self, inputs: tf.Tensor, output: tf.Tensor) -> list[tf.Tensor]:
        """Four gates [batch, units], before their activations."""
        parts = zip(*(tf.split(x, self._groups, 1) for x in (inputs, output)), strict=True)
        size = 4 * self._num_units // self._groups
        of_groups = [
            tf.split(self._mapped(f"group{i}", tf.concat(part, 1), size), 4, 1)
            for i, part in enumerate(parts)
        ]
        biases = [
            _v1.get_variable(
                f"bias_{name}",
                [self._num_units],
                inputs.dtype,
                _v1.constant_initializer(0.0, dtype=inputs.dtype),
            )
            for name in "ijfo"
        ]
        gates = [tf.concat(gate, 1) for gate in zip(*of_groups, strict=True)]
        return [tf.nn.bias_add(gate, bias) for gate, bias in zip(gates, biases, strict=True)]


class PhasedLSTMCell(_cells.RNNCell):
    """An LSTM whose units are open at times of their own.

    An input is (times [batch, 1], features [batch, columns]).

    Args:
        num_units: Size of the cell.
        use_peepholes: True if gates look at the cell.
        leak: Part of a step that a closed unit takes.
        ratio_on: First part of a period in which a unit is open.
        trainable_ratio_on: True if training changes that.
        period_init_min, period_init_max: Bounds of the first periods.
        reuse: True if variables are those that the scope has.

    Source: `tf.contrib.rnn.PhasedLSTMCell`, TF 1.15; https://arxiv.org/abs/1610.09513.
    """

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        leak: Any = 0.001,
        ratio_on: Any = 0.1,
        trainable_ratio_on: bool = True,
        period_init_min: Any = 1.0,
        period_init_max: Any = 1000.0,
        reuse: bool | None = None,
    ):
        super().__init__(_reuse=reuse, autocast=False)  # times may be float64
        self._num_units = num_units
        self._use_peepholes = use_peepholes
        self._leak = leak
        self._ratio_on = ratio_on
        self._trainable_ratio_on = trainable_ratio_on
        self._periods = period_init_min, period_init_max
        self._mapped = _Linears(build_bias=True)

    @property
    def state_size(self) -> Any:
        return _cells.LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self) -> int:
        return self._num_units

    def call(self, inputs: Any, state: Any) -> tuple[tf.Tensor, Any]:
        time, features = inputs
        cell, output = state
        seen = [features, output]
        peeped = [cell] if self._use_peepholes else []
        gates = tf.sigmoid(self._mapped("mask_gates", [*seen, *peeped], 2 * self._num_units))
        entry, forget = tf.split(gates, 2, 1)
        new = tf.tanh(self._mapped("new_input", seen, self._num_units))
        new_cell = cell * forget + entry * new
        peeped = [new_cell] if self._use_peepholes else []
        exit_ = tf.sigmoid(self._mapped("output_gate", [*seen, *peeped], self._num_units))
        new_output = tf.tanh(new_cell) * exit_
        is_open = self._openness(time)
        cell = is_open * new_cell + (1 - is_open) * cell
        output = is_open * new_output + (1 - is_open) * output
        return output, _cells.LSTMStateTuple(cell, output)

    def _openness(self, time: tf.Tensor) -> tf.Tensor:
        """Returns the openness of each unit, [batch, units]: it rises, falls, and then leaks."""
        size = [self._num_units]
        period = _v1.get_variable("period", size, initializer=self._first_period)
        first_phase = _v1.random_uniform_initializer(0.0, period.initial_value)
        phase = _v1.get_variable("phase", size, initializer=first_phase)
        ratio_on = _v1.get_variable(
            "ratio_on",
            size,
            initializer=_v1.constant_initializer(self._ratio_on),
            trainable=self._trainable_ratio_on,
        )
        # In the dtype of the time: periods are short beside it.
        period = tf.cast(period, time.dtype)
        shifted = time - tf.cast(phase, time.dtype)
        # A remainder with the gradient of what it is of.
        rest = tf.stop_gradient(tf.math.mod(shifted, period) - shifted) + shifted
        part = tf.cast(rest / period, tf.float32)
        rising = 2 * part / ratio_on
        is_open = tf.where(part < ratio_on, 2 - rising, self._leak * part)
        return tf.where(part < 0.5 * ratio_on, rising, is_open)

    def _first_period(self, shape: Any, dtype: Any = tf.float32, partition_info: Any = None) -> Any:
        del partition_info
        shortest, longest = (tf.math.log(bound) for bound in self._periods)
        return tf.exp(_v1.random_uniform(shape, shortest, longest, dtype))


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
