"""`tf.contrib.rnn` of TF 1.15: cells that are not in `tf.nn.rnn_cell`, and what runs them.

A fused cell runs over all steps at once: inputs and outputs are [time, batch, units].
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, cast

import tensorflow as tf

import estimator2strategy.tf1 as tf1
from estimator2strategy.tf1.contrib import layers as _layers

_v1 = tf.compat.v1
_cells = tf1.nn.rnn_cell


class LayerRNNCell(_cells.RNNCell):
    """A cell whose variables are made as those of a layer: once, by `build`."""

    def __call__(
        self, inputs: Any, state: Any, scope: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        # A layer of tf.layers; RNNCell itself would open a variable scope for get_variable.
        layer_call = tf1.layers.Layer.__call__
        return layer_call(self, inputs, state, *args, scope=scope, **kwargs)


class MatrixCell(LayerRNNCell):
    """A cell that takes matrices [batch, columns], with a state and an output of one size.

    Args:
        num_units: Size of state and output.
        reuse: True if variables are those that the scope has.
        **kwargs: Of `tf.layers.Layer`.
    """

    def __init__(self, num_units: int, reuse: bool | None = None, **kwargs: Any):
        super().__init__(_reuse=reuse, **kwargs)
        self.input_spec = tf1.layers.InputSpec(ndim=2)
        self._num_units = num_units

    @property
    def state_size(self) -> Any:
        return self._num_units

    @property
    def output_size(self) -> int:
        return self._num_units

    def build(self, inputs_shape: Any) -> None:
        columns = tf.compat.dimension_value(tf.TensorShape(inputs_shape)[1])
        if columns is None:
            raise ValueError(f"Expected inputs.shape[-1] to be known, saw shape: {inputs_shape}")
        self._make_variables(columns)
        self.built = True

    def _make_variables(self, columns: int) -> None:
        """Makes the variables for inputs of `columns`."""
        raise NotImplementedError


def _lstm_variables(cell: Any, input_size: int) -> None:
    """Makes the variables of an LSTM with block kernels: those of `tf.nn.rnn_cell.LSTMCell`."""
    units = cell._num_units
    cell._kernel = cell.add_variable("kernel", [input_size + units, 4 * units])
    cell._bias = cell.add_variable("bias", [4 * units], initializer=_v1.zeros_initializer())
    if cell._use_peephole:
        cell._diagonals = {
            name: cell.add_variable(f"w_{name[-1]}_diag", [units]) for name in ("wci", "wcf", "wco")
        }
    cell.built = True


def _lstm_arguments(cell: Any, dtype: Any) -> dict[str, Any]:
    """The arguments of both block kernels."""
    no_peephole = dict.fromkeys(("wci", "wcf", "wco"), tf.zeros([cell._num_units], dtype))
    return {
        "w": cell._kernel,
        "b": cell._bias,
        "forget_bias": cell._forget_bias,
        "cell_clip": -1.0 if cell._cell_clip is None else cell._cell_clip,
        "use_peephole": cell._use_peephole,
        **(cell._diagonals if cell._use_peephole else no_peephole),
    }


class LSTMBlockCell(LayerRNNCell):
    """An LSTM step in one kernel; variables as those of `tf.nn.rnn_cell.LSTMCell`."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        dtype: Any = None,
        reuse: bool | None = None,
        name: str = "lstm_cell",
    ):
        super().__init__(_reuse=reuse, dtype=dtype, name=name)
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._cell_clip = cell_clip
        self._use_peephole = use_peephole

    @property
    def state_size(self) -> Any:
        return _cells.LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self) -> int:
        return self._num_units

    def build(self, inputs_shape: Any) -> None:
        size = tf.compat.dimension_value(tf.TensorShape(inputs_shape)[1])
        if not size:
            raise ValueError(f"Expecting inputs_shape[1] to be set: {inputs_shape}")
        _lstm_variables(self, size)

    def call(self, inputs: tf.Tensor, state: Any) -> tuple[tf.Tensor, Any]:
        if len(state) != 2:
            raise ValueError("Expecting state to be a tuple with length 2.")
        c, h = _lstm_step(inputs, *state, **_lstm_arguments(self, self.dtype))
        return h, _cells.LSTMStateTuple(c, h)


def _lstm_step(
    x: tf.Tensor,
    cs_prev: tf.Tensor,
    h_prev: tf.Tensor,
    forget_bias: float,
    cell_clip: float,
    use_peephole: bool,
    **weights: Any,
) -> list[tf.Tensor]:
    """New c and h, by the kernel LSTMBlockCell, whose gradient left TensorFlow with tf.contrib."""

    @tf.custom_gradient
    def step(
        x: Any, cs_prev: Any, h_prev: Any, w: Any, b: Any, wci: Any, wcf: Any, wco: Any
    ) -> Any:
        inputs = {"x": x, "cs_prev": cs_prev, "h_prev": h_prev, "w": w, "b": b}
        inputs.update(wci=wci, wcf=wcf, wco=wco, use_peephole=use_peephole)
        made = tf.raw_ops.LSTMBlockCell(forget_bias=forget_bias, cell_clip=cell_clip, **inputs)

        def gradient(cs_grad: Any, h_grad: Any) -> Any:
            gates = {name: getattr(made, name) for name in ("i", "cs", "f", "o", "ci", "co")}
            back = tf.raw_ops.LSTMBlockCellGrad(cs_grad=cs_grad, h_grad=h_grad, **gates, **inputs)
            size = tf.shape(x)[1]
            xh_grad = tf.matmul(back.dicfo, w, transpose_b=True)
            w_grad = tf.matmul(tf.concat([x, h_prev], 1), back.dicfo, transpose_a=True)
            b_grad = tf.reduce_sum(back.dicfo, 0)
            diagonals = (back.wci_grad, back.wcf_grad, back.wco_grad)
            return (
                xh_grad[:, :size],
                back.cs_prev_grad,
                xh_grad[:, size:],
                w_grad,
                b_grad,
                *diagonals,
            )

        return [made.cs, made.h], gradient

    names = ("w", "b", "wci", "wcf", "wco")
    return cast(
        list[tf.Tensor],
        step(x, cs_prev, h_prev, *(tf.convert_to_tensor(weights[name]) for name in names)),
    )


class FusedRNNCell(abc.ABC):
    """A whole recurrent network as one function."""

    @abc.abstractmethod
    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> tuple[Any, Any]:
        """Outputs, a tensor or a list of steps as `inputs` is, and the final state."""


class FusedRNNCellAdaptor(FusedRNNCell):
    """A fused cell that runs an ordinary one, step by step."""

    def __init__(self, cell: Any, use_dynamic_rnn: bool = False):
        self._cell = cell
        self._use_dynamic_rnn = use_dynamic_rnn

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> tuple[Any, Any]:
        is_list = isinstance(inputs, list)
        how = {
            "sequence_length": sequence_length,
            "initial_state": initial_state,
            "dtype": dtype,
            "scope": scope,
        }
        if self._use_dynamic_rnn:
            steps = tf.stack(inputs) if is_list else inputs
            outputs, state = _v1.nn.dynamic_rnn(self._cell, steps, time_major=True, **how)
            return (tf.unstack(outputs) if is_list else outputs), state
        steps = inputs if is_list else tf.unstack(inputs)
        outputs, state = _v1.nn.static_rnn(self._cell, steps, **how)
        return (outputs if is_list else tf.stack(outputs)), state


class TimeReversedFusedRNN(FusedRNNCell):
    """Runs a fused cell from the end of each sequence to its beginning."""

    def __init__(self, cell: Any):
        self._cell = cell

    def __call__(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
        scope: Any = None,
    ) -> tuple[Any, Any]:
        def reverse(steps: Any) -> Any:
            if isinstance(steps, list):
                return steps[::-1]
            if sequence_length is None:
                return tf.reverse(steps, [0])
            return tf.reverse_sequence(steps, sequence_length, seq_axis=0, batch_axis=1)

        outputs, state = self._cell(
            reverse(inputs),
            initial_state=initial_state,
            dtype=dtype,
            sequence_length=sequence_length,
            scope=scope,
        )
        return reverse(outputs), state


class LSTMBlockWrapper(tf1.layers.Layer):
    """A fused LSTM; subclasses say what runs over the steps."""

    @property
    @abc.abstractmethod
    def num_units(self) -> int:
        """Size of the output."""

    @abc.abstractmethod
    def _call_cell(
        self,
        inputs: tf.Tensor,
        initial_cell_state: tf.Tensor,
        initial_output: tf.Tensor,
        dtype: Any,
        sequence_length: tf.Tensor | None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """All cell states and all outputs, [time, batch, units]."""

    def call(
        self,
        inputs: Any,
        initial_state: Any = None,
        dtype: Any = None,
        sequence_length: Any = None,
    ) -> tuple[Any, Any]:
        """Outputs and final state (c, h).

        Outputs are 0 after the end of a sequence, and the state is that at its end.

        Args:
            inputs: [time, batch, size], or a list of steps.
            initial_state: (c, h), each [batch, units]; zeros of type `dtype` by default.
            dtype: Needed where there is no `initial_state`.
            sequence_length: [batch], integers.

        Raises:
            ValueError: There is neither a state nor a type, or the state is no pair.
        """
        is_list = isinstance(inputs, list)
        steps = tf.stack(inputs) if is_list else inputs
        length, batch = tf.shape(steps)[0], tf.shape(steps)[1]
        if initial_state is None:
            if dtype is None:
                raise ValueError("Either initial_state or dtype needs to be specified")
            initial_state = [tf.zeros([batch, self.num_units], dtype)] * 2
        elif len(initial_state) != 2:
            raise ValueError("Expecting initial_state to be a tuple with length 2 or None")
        dtype = initial_state[0].dtype if dtype is None else dtype
        if sequence_length is not None:
            sequence_length = tf.convert_to_tensor(sequence_length)
        c, h = initial_state
        states, outputs = self._call_cell(steps, c, h, dtype, sequence_length)
        if sequence_length is None:
            final = _cells.LSTMStateTuple(states[-1], outputs[-1])
        else:
            mask = tf.transpose(tf.sequence_mask(sequence_length, length, dtype))
            outputs *= mask[:, :, None]
            ends = tf.stack([tf.cast(sequence_length, tf.int32), tf.range(batch)], 1)
            # Step 0 is the initial state, for sequences without a step.
            final = _cells.LSTMStateTuple(
                *(
                    tf.gather_nd(tf.concat([first[None], rest], 0), ends)
                    for first, rest in zip(initial_state, (states, outputs), strict=True)
                )
            )
        return (tf.unstack(outputs) if is_list else outputs), final


class LSTMBlockFusedCell(LSTMBlockWrapper):
    """An LSTM over all steps in one kernel; variables as those of `tf.nn.rnn_cell.LSTMCell`."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        cell_clip: float | None = None,
        use_peephole: bool = False,
        reuse: bool | None = None,
        dtype: Any = None,
        name: str = "lstm_fused_cell",
    ):
        super().__init__(_reuse=reuse, name=name, dtype=dtype)
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._cell_clip = cell_clip
        self._use_peephole = use_peephole

    @property
    def num_units(self) -> int:
        return self._num_units

    def build(self, input_shape: Any) -> None:
        _lstm_variables(self, tf.compat.dimension_value(tf.TensorShape(input_shape)[2]))

    def _call_cell(
        self,
        inputs: tf.Tensor,
        initial_cell_state: tf.Tensor,
        initial_output: tf.Tensor,
        dtype: Any,
        sequence_length: tf.Tensor | None,
    ) -> tuple[tf.Tensor, tf.Tensor]:
        lengths = tf.shape(inputs)[0] if sequence_length is None else sequence_length
        steps = tf.raw_ops.BlockLSTM(
            seq_len_max=tf.cast(tf.reduce_max(lengths), tf.int64),
            x=inputs,
            cs_prev=initial_cell_state,
            h_prev=initial_output,
            **_lstm_arguments(self, dtype),
        )
        return steps.cs, steps.h


class LayerNormBasicLSTMCell(_cells.RNNCell):
    """An LSTM step with normalised gates and recurrent dropout (arXiv:1607.06450, 1603.05118).

    Args:
        num_units: Size of the output.
        forget_bias: Added to the forget gate.
        input_size: Not used.
        activation: Of inner states and outputs.
        layer_norm: True if gates and state are normalised; a bias takes its place otherwise.
        norm_gain: First value of `gamma`.
        norm_shift: First value of `beta`.
        dropout_keep_prob: Of the new input, a number or a scalar tensor.
        dropout_prob_seed: Seed of the dropout.
        reuse: True if variables are those that the scope has.
    """

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        input_size: Any = None,
        activation: Any = tf.tanh,
        layer_norm: bool = True,
        norm_gain: float = 1.0,
        norm_shift: float = 0.0,
        dropout_keep_prob: Any = 1.0,
        dropout_prob_seed: int | None = None,
        reuse: bool | None = None,
    ):
        super().__init__(_reuse=reuse)
        self._num_units = num_units
        self._forget_bias = forget_bias
        self._activation = activation
        self._layer_norm = layer_norm
        self._norm_gain = norm_gain
        self._norm_shift = norm_shift
        self._keep_prob = dropout_keep_prob
        self._seed = dropout_prob_seed

    @property
    def state_size(self) -> Any:
        return _cells.LSTMStateTuple(self._num_units, self._num_units)

    @property
    def output_size(self) -> int:
        return self._num_units

    def _norm(self, inputs: tf.Tensor, scope: str) -> tf.Tensor:
        if not self._layer_norm:
            return inputs
        with _v1.variable_scope(scope):
            for name, value in (("gamma", self._norm_gain), ("beta", self._norm_shift)):
                first = _v1.constant_initializer(value)
                _v1.get_variable(name, inputs.shape[-1:], inputs.dtype, first)
        return _layers.layer_norm(inputs, reuse=True, scope=scope)

    def call(self, inputs: tf.Tensor, state: Any) -> tuple[tf.Tensor, Any]:
        c, h = state
        inputs = tf.concat([inputs, h], 1)
        size = [inputs.shape[-1], 4 * self._num_units]
        gates = tf.matmul(inputs, _v1.get_variable("kernel", size, inputs.dtype))
        if not self._layer_norm:
            gates = tf.nn.bias_add(gates, _v1.get_variable("bias", size[1:], inputs.dtype))
        i, j, f, o = tf.split(gates, 4, 1)
        i, j = self._norm(i, "input"), self._norm(j, "transform")
        f, o = self._norm(f, "forget"), self._norm(o, "output")
        g = self._activation(j)
        if not isinstance(self._keep_prob, float) or self._keep_prob < 1:
            g = _v1.nn.dropout(g, self._keep_prob, seed=self._seed)
        c = self._norm(c * tf.sigmoid(f + self._forget_bias) + tf.sigmoid(i) * g, "state")
        h = self._activation(c) * tf.sigmoid(o)
        return h, _cells.LSTMStateTuple(c, h)


def transpose_batch_time(x: tf.Tensor) -> tf.Tensor:
    """`x` with its first two axes exchanged."""
    x = tf.convert_to_tensor(x)
    if x.shape.rank is not None and x.shape.rank < 2:
        return x
    return tf.transpose(x, tf.concat([[1, 0], tf.range(2, tf.rank(x))], 0))


def best_effort_input_batch_size(flat_input: Sequence[tf.Tensor]) -> Any:
    """Batch size of [time, batch, ...] tensors, static where one of them knows it."""
    for tensor in flat_input:
        if tensor.shape.rank is not None and tensor.shape.rank >= 2:
            size = tf.compat.dimension_value(tensor.shape[1])
            if size is not None:
                return size
    return tf.shape(flat_input[0])[1]
