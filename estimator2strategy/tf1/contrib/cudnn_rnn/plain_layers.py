"""`tf.contrib.cudnn_rnn` of TF 1.15: its layers and cells, here as plain ops that any device runs.

TF 1.15 gave them to cuDNN, so they ran on GPUs only. They compute the same, and have their weights
in the same variable and under the same names in checkpoints.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

import estimator2strategy.tf1 as tf1
from estimator2strategy.errors import UnsupportedError
from estimator2strategy.tf1.contrib.cudnn_rnn.weight_buffers import (
    Blocks,
    CanonicalWeights,
    GruKernels,
    Layout,
    OneKernel,
)
from estimator2strategy.tf1.contrib.rnn.fused_cells import LSTMBlockCell, MatrixCell

_v1 = tf.compat.v1

CUDNN_RNN_UNIDIRECTION = "unidirectional"
CUDNN_RNN_BIDIRECTION = "bidirectional"
CUDNN_INPUT_LINEAR_MODE = "linear_input"
CUDNN_INPUT_SKIP_MODE = "skip_input"
CUDNN_INPUT_AUTO_MODE = "auto_select"


# (the gates' part of the input, that of the state, the old state) -> the new state; `h` is first.
_Step = Callable[[tf.Tensor, tf.Tensor, tuple[tf.Tensor, ...]], tuple[tf.Tensor, ...]]


def _lstm(
    of_input: tf.Tensor, of_state: tf.Tensor, state: tuple[Any, ...]
) -> tuple[tf.Tensor, ...]:
    take, keep, new, give = tf.split(of_input + of_state, 4, 1)
    cell = tf.sigmoid(keep) * state[1] + tf.sigmoid(take) * tf.tanh(new)
    return tf.sigmoid(give) * tf.tanh(cell), cell


def _gru(of_input: tf.Tensor, of_state: tf.Tensor, state: tuple[Any, ...]) -> tuple[tf.Tensor, ...]:
    reset_in, update_in, new_in = tf.split(of_input, 3, 1)
    reset_state, update_state, new_state = tf.split(of_state, 3, 1)
    update = tf.sigmoid(update_in + update_state)
    new = tf.tanh(new_in + tf.sigmoid(reset_in + reset_state) * new_state)
    return ((1 - update) * new + update * state[0],)


def _plain(activation: Callable[[tf.Tensor], tf.Tensor]) -> _Step:
    return lambda of_input, of_state, state: (activation(of_input + of_state),)


@dataclasses.dataclass(frozen=True)
class _Kind:
    """A kind of recurrent layer.

    Attributes:
        mode: cuDNN's name of it.
        states: How many tensors a state is.
        step: One step in time.
        form: Of the weights of the cell that computes the same.
    """

    mode: str
    states: int
    step: _Step
    form: OneKernel | GruKernels


class _StepCell(tf1.nn.rnn_cell.RNNCell):
    """One step of a layer, whose inputs are the gates' parts of the input."""

    def __init__(self, kind: _Kind, blocks: Blocks):
        super().__init__()
        self._kind, self._blocks = kind, blocks
        self._units = blocks.units

    @property
    def state_size(self) -> tuple[int, ...]:
        return (self._units,) * self._kind.states

    @property
    def output_size(self) -> int:
        return self._units

    def call(
        self, inputs: tf.Tensor, state: tuple[Any, ...]
    ) -> tuple[tf.Tensor, tuple[tf.Tensor, ...]]:
        of_state = tf.matmul(state[0], self._blocks.of_state, transpose_b=True)
        new = self._kind.step(inputs, of_state + self._blocks.state_bias, state)
        return new[0], new


class _CudnnRNN(tf1.layers.Layer):
    """Recurrent layers in one or both directions, with all weights in the variable `opaque_kernel`.

    Args:
        num_layers: How many layers.
        num_units: Size of a state.
        input_mode: "linear_input", or "auto_select" if inputs have another size than states.
        direction: "unidirectional" or "bidirectional".
        dropout: The rate of dropout between layers, in training.
        seed: Of dropout, and of the initial weights.
        dtype: float16, float32 or float64.
        kernel_initializer: Of each matrix; by default Glorot's, uniform.
        bias_initializer: Of each bias; by default 0.
        name: Of the variable scope.

    Raises:
        ValueError: `direction`, `input_mode` or `dtype` is none of those.

    Source: `tf.contrib.cudnn_rnn`, TF 1.15.
    """

    _kind: _Kind

    def __init__(
        self,
        num_layers: int,
        num_units: int,
        input_mode: str = CUDNN_INPUT_LINEAR_MODE,
        direction: str = CUDNN_RNN_UNIDIRECTION,
        dropout: float = 0.0,
        seed: int | None = None,
        dtype: tf.DType = tf.float32,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
    ):
        super().__init__(dtype=dtype, name=name)
        _check("direction", direction, CUDNN_RNN_UNIDIRECTION, CUDNN_RNN_BIDIRECTION)
        modes = (CUDNN_INPUT_LINEAR_MODE, CUDNN_INPUT_SKIP_MODE, CUDNN_INPUT_AUTO_MODE)
        _check("input_mode", input_mode, *modes)
        _check("dtype", dtype, tf.float16, tf.float32, tf.float64)
        self.num_layers = num_layers
        self.num_units = num_units
        self.input_mode = input_mode
        self.direction = direction
        self.saveable: CanonicalWeights | None = None
        self._plain_dtype = dtype
        self._dropout = dropout
        self._seed = seed
        self._kernel_initializer = kernel_initializer or _v1.glorot_uniform_initializer(
            seed=seed, dtype=dtype
        )
        self._bias_initializer = bias_initializer or _v1.constant_initializer(0.0, dtype=dtype)
        self._layout: Layout | None = None
        self.built = False

    @property
    def rnn_mode(self) -> str:
        return self._kind.mode

    @property
    def num_dirs(self) -> int:
        return 1 if self.direction == CUDNN_RNN_UNIDIRECTION else 2

    @property
    def input_size(self) -> int:
        return self._built("input_size").input_size

    @property
    def canonical_weight_shapes(self) -> list[tuple[int, int]]:
        return self._built("canonical_weight_shapes").weight_shapes

    @property
    def canonical_bias_shapes(self) -> list[list[int]]:
        return self._built("canonical_bias_shapes").bias_shapes

    def _built(self, name: str) -> Layout:
        if self._layout is None:
            raise ValueError(f"'{name}' is unknown since layer has not been built.")
        return self._layout

    def state_shape(self, batch_size: Any) -> tuple[list[Any], ...]:
        """The shapes of a state: [layers * directions, batch, units] each."""
        shape = [self.num_layers * self.num_dirs, batch_size, self.num_units]
        return tuple(list(shape) for _ in range(self._kind.states))

    def build(self, input_shape: Any) -> None:
        if self.built:
            return
        shape = tf.TensorShape(input_shape)
        if shape.rank != 3:
            raise ValueError(f"Expecting input_shape with 3 dims, got {shape.rank}")
        input_size = tf.compat.dimension_value(shape[2])
        if input_size is None:
            raise ValueError(
                "The last dimension of the inputs to `CudnnRNN` should be defined. Found `None`."
            )
        skips = {CUDNN_INPUT_SKIP_MODE, CUDNN_INPUT_AUTO_MODE}
        if self.input_mode in skips and input_size == self.num_units:
            raise UnsupportedError(
                f"{type(self).__name__}(input_mode={self.input_mode!r}) is not supported where "
                "inputs have the size of states, because its first layer has no matrix for them: "
                "use input_mode='linear_input', and train anew."
            )
        _check("input_mode", self.input_mode, CUDNN_INPUT_LINEAR_MODE, CUDNN_INPUT_AUTO_MODE)
        self.input_spec = tf1.layers.InputSpec(ndim=3, axes={-1: input_size})
        self._layout = Layout(
            self._kind.form, self.num_layers, self.num_dirs, self.num_units, input_size
        )
        self.kernel = self.add_variable(
            "opaque_kernel", [self._layout.size], initializer=self._first_values
        )
        # Its names are those of cells in the scope of whoever builds the layer.
        scope = _v1.get_variable_scope()
        if scope.reuse is not True:
            name = f"{self.kernel.op.name}_saveable"
            self.saveable = CanonicalWeights(self.kernel, self._layout, scope.name, name)
            _v1.add_to_collection(_v1.GraphKeys.SAVEABLE_OBJECTS, self.saveable)
        self.built = True

    def _first_values(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> tf.Tensor:
        layout = self._built("opaque_kernel")
        parts = [self._kernel_initializer(shape, dtype=dtype) for shape in layout.weight_shapes]
        parts += [self._bias_initializer(shape, dtype=dtype) for shape in layout.bias_shapes]
        return tf.concat([tf.reshape(part, [-1]) for part in parts], 0)

    def call(
        self,
        inputs: Any,
        initial_state: tuple[Any, ...] | None = None,
        sequence_lengths: Any = None,
        time_major: bool = True,
        training: bool = True,
    ) -> tuple[tf.Tensor, tuple[tf.Tensor, ...]]:
        """Runs over all steps.

        Args:
            inputs: [time, batch, size]; [batch, time, size] if not `time_major`.
            initial_state: A tuple of tensors [layers * directions, batch, units], the first two
                axes in the order of those of `inputs`; by default 0.
            sequence_lengths: [batch], integers; by default all have all steps.
            time_major: True if the first axis is time.
            training: True if there is dropout.

        Returns:
            (outputs [time, batch, directions * units], a state), axes ordered as those of `inputs`.

        Raises:
            TypeError: `initial_state` is not a tuple.
        """
        if initial_state is not None and not isinstance(initial_state, tuple):
            raise TypeError(f"Invalid initial_state type: {initial_state}, expecting tuple.")
        ordered = tf.identity if time_major else _first_axes_swapped
        outputs = ordered(tf.convert_to_tensor(inputs, self.dtype))
        if initial_state is None:
            shapes = self.state_shape(tf.shape(outputs)[1])
            state = [tf.zeros(shape, self.dtype) for shape in shapes]
        else:
            state = [ordered(tf.convert_to_tensor(each, self.dtype)) for each in initial_state]
        starts = list(zip(*(tf.unstack(each) for each in state), strict=True))
        blocks, ends = self._built("kernel").split(self.kernel), []
        for layer in range(self.num_layers):
            if layer and training and self._dropout:
                outputs = _v1.nn.dropout(outputs, rate=self._dropout, seed=self._seed)
            ways = range(layer * self.num_dirs, (layer + 1) * self.num_dirs)
            states = [
                self._one_way(blocks[way], outputs, sequence_lengths, starts[way], way != ways[0])
                for way in ways
            ]
            outputs = tf.concat([each for each, _ in states], 2)
            ends += [end for _, end in states]
        return ordered(outputs), tuple(ordered(tf.stack(each)) for each in zip(*ends, strict=True))

    def _one_way(
        self,
        blocks: Blocks,
        inputs: tf.Tensor,
        lengths: Any,
        start: tuple[tf.Tensor, ...],
        backward: bool,
    ) -> tuple[tf.Tensor, tuple[tf.Tensor, ...]]:
        """One layer in one direction: (outputs [time, batch, units], its last state)."""
        steps = _reversed(inputs, lengths) if backward else inputs
        of_input = tf.tensordot(steps, blocks.of_input, [[2], [1]]) + blocks.input_bias
        outputs, end = tf1.nn.dynamic_rnn(
            _StepCell(self._kind, blocks),
            of_input,
            sequence_length=lengths,
            initial_state=tuple(start),
            time_major=True,
        )
        return _reversed(outputs, lengths) if backward else outputs, end


def _check(name: str, value: Any, *choices: Any) -> None:
    if value not in choices:
        raise ValueError(f"Invalid {name}: {value}, expecting one of {choices}")


def _first_axes_swapped(tensor: tf.Tensor) -> tf.Tensor:
    return tf.transpose(tensor, [1, 0, 2])


def _reversed(steps: tf.Tensor, lengths: Any) -> tf.Tensor:
    """[time, batch, size], the steps of each example from its last to its first."""
    if lengths is None:
        return tf.reverse(steps, [0])
    return tf.reverse_sequence(steps, lengths, seq_axis=0, batch_axis=1)


class CudnnLSTM(_CudnnRNN):
    __doc__ = _CudnnRNN.__doc__
    # cuDNN's gates are input, forget, candidate, output; a cell's input, candidate, forget, output.
    _kind = _Kind("lstm", 2, _lstm, OneKernel("cudnn_compatible_lstm_cell", (0, 2, 1, 3)))


class CudnnGRU(_CudnnRNN):
    __doc__ = _CudnnRNN.__doc__
    _kind = _Kind("gru", 1, _gru, GruKernels("cudnn_compatible_gru_cell"))


class CudnnRNNTanh(_CudnnRNN):
    __doc__ = _CudnnRNN.__doc__
    _kind = _Kind("rnn_tanh", 1, _plain(tf.tanh), OneKernel("basic_rnn_cell", (0,)))


class CudnnRNNRelu(_CudnnRNN):
    __doc__ = _CudnnRNN.__doc__
    _kind = _Kind("rnn_relu", 1, _plain(tf.nn.relu), OneKernel("basic_rnn_cell", (0,)))


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
