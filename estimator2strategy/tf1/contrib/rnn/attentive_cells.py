"""`tf.contrib.rnn` of TF 1.15: recurrent cells, and what lets a cell attend to its past or skip."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

import estimator2strategy.tf1 as tf1
from estimator2strategy.tf1.contrib.rnn.around_cells import _Linear, _Wrapper

_v1 = tf.compat.v1
_cells = tf1.nn.rnn_cell


class AttentionCellWrapper(_Wrapper):
    """A cell that attends to its last `attn_length` outputs.

    Args:
        cell: The cell.
        attn_length: Number of outputs that are kept.
        attn_size: Size of an output; the cell's by default.
        attn_vec_size: Size in which outputs and state are compared; `attn_size` by default.
        input_size: Size of the cell's input; that of the first input by default.
        state_is_tuple: True if the state is (the cell's state, the last attention, the outputs);
            else these are side by side in one tensor.
        reuse: As for `tf.layers`.

    Raises:
        TypeError: `cell` is no cell.
        ValueError: `attn_length` is not positive, or a tuple shall be part of one tensor.

    Source: `tf.contrib.rnn.AttentionCellWrapper`, TF 1.15; https://arxiv.org/abs/1601.06733.
    """

    def __init__(
        self,
        cell: Any,
        attn_length: int,
        attn_size: int | None = None,
        attn_vec_size: int | None = None,
        input_size: int | None = None,
        state_is_tuple: bool = True,
        reuse: bool | None = None,
    ):
        super().__init__(cell, reuse)
        if isinstance(cell.state_size, (list, tuple)) and not state_is_tuple:
            raise ValueError(
                "Cell returns tuple of states, but the flag state_is_tuple is not set. "
                f"State size is: {cell.state_size}"
            )
        if attn_length <= 0:
            raise ValueError(f"attn_length should be greater than zero, got {attn_length}")
        self._length = attn_length
        self._size = cell.output_size if attn_size is None else attn_size
        self._compared = self._size if attn_vec_size is None else attn_vec_size
        self._input_size = input_size
        self._state_is_tuple = state_is_tuple
        self._maps: dict[str, _Linear] = {}

    @property
    def state_size(self) -> Any:
        sizes = (self._cell.state_size, self._size, self._size * self._length)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        return self._size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        return _cells.RNNCell.zero_state(self, batch_size, dtype)

    def call(self, inputs: tf.Tensor, state: Any) -> tuple[tf.Tensor, Any]:
        if not self._state_is_tuple:
            sizes = [self._cell.state_size, self._size, self._size * self._length]
            state = tf.split(state, sizes, 1)
        state, attention, past = state
        past = tf.reshape(past, [-1, self._length, self._size])
        width = self._input_size or tf.compat.dimension_value(inputs.shape[1])
        inputs = self._mapped("inputs", [inputs, attention], width)
        output, state = self._cell(inputs, state)
        query = tf.concat(tf.nest.flatten(state), 1) if self._state_is_tuple else state
        attention = self._attention(query, past)
        with _v1.variable_scope("attn_output_projection"):
            output = self._mapped("output", [output, attention], self._size)
        past = tf.concat([past[:, 1:], output[:, None]], 1)
        state = state, attention, tf.reshape(past, [-1, self._length * self._size])
        return output, state if self._state_is_tuple else tf.concat(state, 1)

    def _mapped(self, name: str, args: Any, size: int) -> tf.Tensor:
        if name not in self._maps:
            self._maps[name] = _Linear(args, size, True)
        return self._maps[name](args)

    def _attention(self, query: tf.Tensor, past: tf.Tensor) -> tf.Tensor:
        """The mean [batch, size] of the past, weighted by how well it fits to the query."""
        with _v1.variable_scope("attention"):
            weights = _v1.get_variable("attn_w", [1, 1, self._size, self._compared])
            scale = _v1.get_variable("attn_v", [self._compared])
            compared = tf.nn.conv2d(past[:, :, None], weights, 1, "SAME")
            wanted = self._mapped("query", query, self._compared)[:, None, None]
            fit = tf.nn.softmax(tf.reduce_sum(scale * tf.tanh(compared + wanted), [2, 3]))
        return tf.reduce_sum(fit[:, :, None] * past, 1)


class HighwayWrapper(_Wrapper):
    """Mixes what a cell is given with its output, by a gate of what it is given.

    Args:
        cell: A cell whose outputs are as large as its inputs.
        couple_carry_transform_gates: True if the output has the rest of the gate; else it has a
            gate of its own.
        carry_bias_init: First bias of the gate; the other gate has its negative.

    Source: `tf.contrib.rnn.HighwayWrapper`, TF 1.15; https://arxiv.org/abs/1505.00387.
    """

    def __init__(
        self, cell: Any, couple_carry_transform_gates: bool = True, carry_bias_init: float = 1.0
    ):
        super().__init__(cell)
        self._couple = couple_carry_transform_gates
        self._bias = carry_bias_init

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        outputs, state = self._cell(inputs, state, scope=scope)
        tf.nest.assert_same_structure(inputs, outputs)
        return tf.nest.map_structure(self._highway, inputs, outputs), state

    def _highway(self, given: tf.Tensor, output: tf.Tensor) -> tf.Tensor:
        carry = self._gate("carry", given, self._bias)
        transform = 1 - carry if self._couple else self._gate("transform", given, -self._bias)
        return given * carry + output * transform

    def _gate(self, name: str, given: tf.Tensor, bias: float) -> tf.Tensor:
        size = tf.compat.dimension_value(given.shape[1])
        weights = _v1.get_variable(f"{name}_w", [size, size])
        start = _v1.constant_initializer(bias)
        return tf.sigmoid(
            _v1.nn.xw_plus_b(
                given, weights, _v1.get_variable(f"{name}_b", [size], initializer=start)
            )
        )


class ConvLSTMCell(_cells.RNNCell):
    """An LSTM whose inputs and states are images, and whose products are convolutions.

    Args:
        conv_ndims: Dimensions of the convolution: 1, 2 or 3.
        input_shape: Shape of an input without the batch, channels last; a list.
        output_channels: Channels of the state.
        kernel_shape: Shape of the window.
        use_bias: True if there is a bias.
        skip_connection: True if the inputs are appended to the outputs.
        forget_bias: Added to the forget gate.
        initializers: Unused, as in TF 1.15.
        name: Of the scope of the variables `kernel` and `biases`.

    Raises:
        ValueError: `input_shape` does not fit to `conv_ndims`.

    Source: `tf.contrib.rnn.ConvLSTMCell`, TF 1.15; https://arxiv.org/abs/1506.04214.
    """

    def __init__(
        self,
        conv_ndims: int,
        input_shape: Sequence[int],
        output_channels: int,
        kernel_shape: Sequence[int],
        use_bias: bool = True,
        skip_connection: bool = False,
        forget_bias: float = 1.0,
        initializers: Any = None,
        name: str = "conv_lstm_cell",
    ):
        del initializers
        super().__init__(name=name)
        if conv_ndims != len(input_shape) - 1:
            raise ValueError(f"Invalid input_shape {input_shape} for conv_ndims={conv_ndims}.")
        self._kernel_shape = list(kernel_shape)
        self._channels = output_channels
        self._use_bias = use_bias
        self._skip = skip_connection
        self._forget_bias = forget_bias
        image = list(input_shape[:-1])
        state = tf.TensorShape([*image, output_channels])
        self._state_size = _cells.LSTMStateTuple(state, state)
        added = input_shape[-1] if skip_connection else 0
        self._output_size = tf.TensorShape([*image, output_channels + added])

    @property
    def state_size(self) -> Any:
        return self._state_size

    @property
    def output_size(self) -> Any:
        return self._output_size

    def call(self, inputs: tf.Tensor, state: Any, scope: Any = None) -> tuple[tf.Tensor, Any]:
        del scope
        cell, hidden = state
        both = tf.concat([inputs, hidden], -1)
        channels = tf.compat.dimension_value(both.shape[-1])
        kernel = _v1.get_variable(
            "kernel", [*self._kernel_shape, channels, 4 * self._channels], both.dtype
        )
        gates = tf.nn.convolution(both, kernel, padding="SAME")
        if self._use_bias:
            zeros = _v1.zeros_initializer()
            gates += _v1.get_variable("biases", [4 * self._channels], both.dtype, zeros)
        entry, new, forget, exit_ = tf.split(gates, 4, -1)
        cell = tf.sigmoid(forget + self._forget_bias) * cell + tf.sigmoid(entry) * tf.tanh(new)
        output = tf.tanh(cell) * tf.sigmoid(exit_)
        if self._skip:
            output = tf.concat([output, inputs], -1)
        return output, _cells.LSTMStateTuple(cell, output)


class Conv1DLSTMCell(ConvLSTMCell):
    """A `ConvLSTMCell` of one dimension."""

    def __init__(self, name: str = "conv_1d_lstm_cell", **kwargs: Any):
        super().__init__(1, name=name, **kwargs)


class Conv2DLSTMCell(ConvLSTMCell):
    """A `ConvLSTMCell` of two dimensions."""

    def __init__(self, name: str = "conv_2d_lstm_cell", **kwargs: Any):
        super().__init__(2, name=name, **kwargs)


class Conv3DLSTMCell(ConvLSTMCell):
    """A `ConvLSTMCell` of three dimensions."""

    def __init__(self, name: str = "conv_3d_lstm_cell", **kwargs: Any):
        super().__init__(3, name=name, **kwargs)


class NASCell(_cells.RNNCell):
    """The cell that a search among architectures found.

    Args:
        num_units: Size of the cell.
        num_proj: Size of the outputs, if they are projected.
        use_bias: True if there is a bias.
        reuse: As for `tf.layers`.
        **kwargs: Of `tf.layers.Layer`.

    Source: `tf.contrib.rnn.NASCell`, TF 1.15; https://arxiv.org/abs/1611.01578.
    """

    def __init__(
        self,
        num_units: int,
        num_proj: int | None = None,
        use_bias: bool = False,
        reuse: bool | None = None,
        **kwargs: Any,
    ):
        super().__init__(_reuse=reuse, **kwargs)
        self._units = num_units
        self._projected = num_proj
        self._use_bias = use_bias

    @property
    def state_size(self) -> Any:
        return _cells.LSTMStateTuple(self._units, self.output_size)

    @property
    def output_size(self) -> int:
        return self._units if self._projected is None else self._projected

    def call(self, inputs: tf.Tensor, state: Any) -> tuple[tf.Tensor, Any]:
        cell, output = state
        columns = tf.compat.dimension_value(inputs.shape[1])
        before = _v1.get_variable("recurrent_kernel", [self.output_size, 8 * self._units])
        kernel = _v1.get_variable("kernel", [columns, 8 * self._units])
        past = tf.matmul(output, before)
        if self._use_bias:
            zeros = _v1.zeros_initializer()
            past += _v1.get_variable("bias", [8 * self._units], initializer=zeros)
        new = tf.split(tf.matmul(inputs, kernel), 8, 1)
        old = tf.split(past, 8, 1)
        functions = (tf.sigmoid, tf.nn.relu, tf.sigmoid, tf.nn.relu, *(tf.tanh, tf.sigmoid) * 2)
        first = [
            function(new[i] * old[i] if i == 3 else new[i] + old[i])
            for i, function in enumerate(functions)
        ]
        kept = tf.tanh(tf.tanh(first[0] * first[1]) + cell)
        cell = kept * tf.tanh(first[2] + first[3])
        last = tf.tanh(tf.tanh(first[4] * first[5]) + tf.sigmoid(first[6] + first[7]))
        output = tf.tanh(cell * last)
        if self._projected is not None:
            weights = _v1.get_variable("projection_weights", [self._units, self._projected])
            output = tf.matmul(output, weights)
        return output, _cells.LSTMStateTuple(cell, output)


class UGRNNCell(_cells.RNNCell):
    """A cell with one gate, between its state and its inputs.

    Args:
        num_units: Size of the cell.
        initializer: Of the variables.
        forget_bias: Added to the gate.
        activation: Of what the inputs become.
        reuse: As for `tf.layers`.

    Source: `tf.contrib.rnn.UGRNNCell`, TF 1.15; https://arxiv.org/abs/1611.09913.
    """

    def __init__(
        self,
        num_units: int,
        initializer: Any = None,
        forget_bias: float = 1.0,
        activation: Callable[..., Any] = tf.tanh,
        reuse: bool | None = None,
    ):
        super().__init__(_reuse=reuse)
        self._units = num_units
        self._initializer = initializer
        self._forget_bias = forget_bias
        self._activation = activation
        self._linear: _Linear | None = None

    @property
    def state_size(self) -> int:
        return self._units

    @property
    def output_size(self) -> int:
        return self._units

    def call(self, inputs: tf.Tensor, state: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        scope = _v1.get_variable_scope()
        with _v1.variable_scope(scope, initializer=self._initializer):
            both = tf.concat([inputs, state], 1)
            self._linear = self._linear or _Linear(both, 2 * self._units, True)
            gate, new = tf.split(self._linear(both), 2, 1)
        gate = tf.sigmoid(gate + self._forget_bias)
        state = gate * state + (1 - gate) * self._activation(new)
        return state, state


class IntersectionRNNCell(_cells.RNNCell):
    """A cell with a gate between its state and its inputs, and one between inputs and outputs.

    Args:
        num_units: Size of state and output.
        num_in_proj: Not None for the first of several layers, whose inputs are projected.
        initializer: Of the variables.
        forget_bias: Added to the gates.
        y_activation: Of the output.
        reuse: As for `tf.layers`.

    Raises:
        ValueError: Inputs have another size, and are not to be projected.

    Source: `tf.contrib.rnn.IntersectionRNNCell`, TF 1.15; https://arxiv.org/abs/1611.09913.
    """

    def __init__(
        self,
        num_units: int,
        num_in_proj: int | None = None,
        initializer: Any = None,
        forget_bias: float = 1.0,
        y_activation: Callable[..., Any] = tf.nn.relu,
        reuse: bool | None = None,
    ):
        super().__init__(_reuse=reuse)
        self._units = num_units
        self._projects = bool(num_in_proj)
        self._initializer = initializer
        self._forget_bias = forget_bias
        self._activation = y_activation
        self._projection: _Linear | None = None
        self._linear: _Linear | None = None

    @property
    def state_size(self) -> int:
        return self._units

    @property
    def output_size(self) -> int:
        return self._units

    def call(self, inputs: tf.Tensor, state: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        with _v1.variable_scope(_v1.get_variable_scope(), initializer=self._initializer):
            inputs = self._projected(inputs)
            both = tf.concat([inputs, state], 1)
            self._linear = self._linear or _Linear(both, 4 * self._units, True)
            state_gate, new_state, output_gate, output = tf.split(self._linear(both), 4, 1)
        state_gate = tf.sigmoid(state_gate + self._forget_bias)
        output_gate = tf.sigmoid(output_gate + self._forget_bias)
        state = state_gate * state + (1.0 - state_gate) * tf.tanh(new_state)
        return output_gate * inputs + (1.0 - output_gate) * self._activation(output), state

    def _projected(self, inputs: tf.Tensor) -> tf.Tensor:
        if tf.compat.dimension_value(inputs.shape.with_rank(2)[1]) == self._units:
            return inputs
        if not self._projects:
            raise ValueError(
                "Must have input size == output size for Intersection RNN. To fix, num_in_proj "
                "should be set to num_units at cell init."
            )
        with _v1.variable_scope("in_projection"):
            self._projection = self._projection or _Linear(inputs, self._units, True)
            return self._projection(inputs)
