"""`tf.contrib.rnn` of TF 1.15: wrappers of cells, bidirectional layers, the outputs that count.

Sources of the last: tensorflow_estimator 1.15 contrib/estimator/python/estimator/rnn.py,
`tf.contrib.learn` rnn_common.py and dynamic_rnn_estimator.py, TF 1.15.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

import estimator2strategy.tf1 as tf1


def select_last_activations(
    activations: tf.Tensor, sequence_lengths: tf.Tensor | None
) -> tf.Tensor:
    """The outputs of the last step of each sequence.

    Args:
        activations: [batch, longest, units].
        sequence_lengths: Of the sequences, integers [batch]; None where none is padded.

    Returns:
        [batch, units].
    """
    with tf.name_scope("select_last_activations"):
        batch, longest, units = tf.unstack(tf.shape(activations, out_type=tf.int64))
        lengths = longest if sequence_lengths is None else tf.cast(sequence_lengths, tf.int64)
        last = tf.range(batch) * longest + lengths - 1
        chosen = tf.gather(tf.reshape(activations, [batch * longest, units]), last)
        chosen.set_shape([activations.shape[0], activations.shape[2]])
        return chosen


def mask_activations_and_labels(
    activations: tf.Tensor, labels: tf.Tensor, sequence_lengths: tf.Tensor | None
) -> tuple[tf.Tensor, tf.Tensor]:
    """The outputs and the labels of all steps that are no padding, one after the other.

    Args:
        activations: [batch, longest, units].
        labels: [batch, longest].
        sequence_lengths: Of the sequences, integers [batch]; None where none is padded.

    Returns:
        [steps, units] and [steps].
    """
    with tf.name_scope("mask_activations_and_labels"):
        batch, longest = tf.unstack(tf.shape(labels)[:2])
        if sequence_lengths is None:
            steps = batch * longest
            return tf.reshape(activations, [steps, -1]), tf.reshape(labels, [steps])
        mask = tf.sequence_mask(sequence_lengths, longest)
        return tf.boolean_mask(activations, mask), tf.boolean_mask(labels, mask)


_v1 = tf.compat.v1


class _Linear:
    """A matrix product with what is given, side by side, plus a bias.

    The variables are `kernel` and `bias` of the scope that this is made in.

    Args:
        args: A tensor [batch, n], or several: an example of what it is called with.
        output_size: Columns of the result.
        build_bias: True if there is a bias.
        bias_initializer: Zeros by default.
        kernel_initializer: The scope's by default.

    Raises:
        ValueError: A tensor is no matrix, or the number of its columns is unknown.
    """

    def __init__(
        self,
        args: Any,
        output_size: int,
        build_bias: bool,
        bias_initializer: Any = None,
        kernel_initializer: Any = None,
    ):
        tensors = _listed(args)
        shapes = [tensor.shape for tensor in tensors]
        if any(shape.rank != 2 for shape in shapes):
            raise ValueError(f"linear is expecting 2D arguments: {shapes}")
        columns = [tf.compat.dimension_value(shape[1]) for shape in shapes]
        if None in columns:
            raise ValueError(f"linear expects shape[1] to be provided for shapes {shapes}")
        dtype = tensors[0].dtype
        with _v1.variable_scope(_v1.get_variable_scope()) as scope:
            self._kernel = _v1.get_variable(
                "kernel", [sum(columns), output_size], dtype, kernel_initializer
            )
            self._bias = None
            if build_bias:
                with _v1.variable_scope(scope) as whole:
                    whole.set_partitioner(None)
                    initializer = bias_initializer or _v1.zeros_initializer()
                    self._bias = _v1.get_variable("bias", [output_size], dtype, initializer)

    def __call__(self, args: Any) -> tf.Tensor:
        tensors = _listed(args)
        joined = tensors[0] if len(tensors) == 1 else tf.concat(tensors, 1)
        product = tf.matmul(joined, self._kernel)
        return product if self._bias is None else tf.nn.bias_add(product, self._bias)


def _linear(
    args: Any,
    output_size: int,
    bias: bool,
    bias_initializer: Any = None,
    kernel_initializer: Any = None,
) -> tf.Tensor:
    """`_Linear` made and called at once."""
    return _Linear(args, output_size, bias, bias_initializer, kernel_initializer)(args)


def _listed(args: Any) -> list[Any]:
    tensors = list(args) if isinstance(args, (list, tuple)) else [] if args is None else [args]
    if not tensors:
        raise ValueError("`args` must be specified")
    return tensors


class _Wrapper(tf1.nn.rnn_cell.RNNCell):
    """A cell around another one, with its state."""

    def __init__(self, cell: Any, reuse: bool | None = None):
        super().__init__(_reuse=reuse)
        if not hasattr(cell, "output_size") or not hasattr(cell, "state_size"):
            raise TypeError(f"The argument 'cell' ({cell}) is not an RNNCell.")
        self._cell = cell

    @property
    def state_size(self) -> Any:
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        return self._cell.output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        with _v1.name_scope(type(self).__name__ + "ZeroState"):
            return self._cell.zero_state(batch_size, dtype)


class _Projection(_Wrapper):
    """A wrapper that maps a tensor linearly; the variables are made when it is first called."""

    def __init__(self, cell: Any, activation: Callable[..., Any] | None, reuse: bool | None):
        super().__init__(cell, reuse)
        self._activation = activation
        self._linear: _Linear | None = None

    def _project(self, tensor: tf.Tensor, size: int) -> tf.Tensor:
        if self._linear is None:
            self._linear = _Linear(tensor, size, True)
        projected = self._linear(tensor)
        return self._activation(projected) if self._activation else projected


class InputProjectionWrapper(_Projection):
    """A cell whose inputs are mapped to `num_proj` columns first.

    Args:
        cell: The cell inside.
        num_proj: Columns of what it gets.
        activation: A function of them.
        input_size: Ignored.
        reuse: True if the variables are there already.

    Raises:
        TypeError: `cell` is no cell.
    """

    def __init__(
        self,
        cell: Any,
        num_proj: int,
        activation: Callable[..., Any] | None = None,
        input_size: Any = None,
        reuse: bool | None = None,
    ):
        super().__init__(cell, activation, reuse)
        self._num_proj = num_proj

    def call(self, inputs: Any, state: Any) -> Any:
        return self._cell(self._project(inputs, self._num_proj), state)


class OutputProjectionWrapper(_Projection):
    """A cell whose outputs are mapped to `output_size` columns.

    Args:
        cell: The cell inside.
        output_size: Columns of the output.
        activation: A function of them.
        reuse: True if the variables are there already.

    Raises:
        TypeError: `cell` is no cell.
        ValueError: `output_size` is less than 1.
    """

    def __init__(
        self,
        cell: Any,
        output_size: int,
        activation: Callable[..., Any] | None = None,
        reuse: bool | None = None,
    ):
        super().__init__(cell, activation, reuse)
        if output_size < 1:
            raise ValueError(f"Parameter output_size must be > 0: {output_size}.")
        self._output_size = output_size

    @property
    def output_size(self) -> int:
        return self._output_size

    def call(self, inputs: Any, state: Any) -> Any:
        output, state = self._cell(inputs, state)
        return self._project(output, self._output_size), state


class EmbeddingWrapper(_Wrapper):
    """A cell whose inputs are ids, which are looked up in the variable `embedding`.

    Args:
        cell: The cell inside.
        embedding_classes: The number of ids.
        embedding_size: Columns of what the cell gets.
        initializer: Of the variable; the scope's, or uniform numbers of variance 1.
        reuse: True if the variable is there already.

    Raises:
        TypeError: `cell` is no cell.
        ValueError: A size is less than 1.
    """

    def __init__(
        self,
        cell: Any,
        embedding_classes: int,
        embedding_size: int,
        initializer: Any = None,
        reuse: bool | None = None,
    ):
        super().__init__(cell, reuse)
        if embedding_classes <= 0 or embedding_size <= 0:
            raise ValueError(
                "Both embedding_classes and embedding_size must be > 0: "
                f"{embedding_classes}, {embedding_size}."
            )
        self._shape = [embedding_classes, embedding_size]
        self._initializer = initializer

    def call(self, inputs: Any, state: Any) -> Any:
        initializer = (
            self._initializer
            or _v1.get_variable_scope().initializer
            or _v1.random_uniform_initializer(-(3**0.5), 3**0.5)
        )
        dtype = (state[0] if isinstance(state, tuple) else state).dtype
        embedding = _v1.get_variable("embedding", self._shape, dtype, initializer)
        embedded = tf.nn.embedding_lookup(embedding, tf.reshape(inputs, [-1]))
        return self._cell(embedded, state)


def stack_bidirectional_dynamic_rnn(
    cells_fw: Sequence[Any],
    cells_bw: Sequence[Any],
    inputs: tf.Tensor,
    initial_states_fw: Any = None,
    initial_states_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    parallel_iterations: int | None = None,
    time_major: bool = False,
    scope: Any = None,
    swap_memory: bool = False,
) -> tuple[tf.Tensor, tuple[Any, ...], tuple[Any, ...]]:
    """Layers of bidirectional RNNs, each on the concatenated outputs of the one below.

    Returns:
        The last outputs, forward and backward concatenated; the final states of the forward cells;
        those of the backward cells.

    Raises:
        ValueError: The lists are empty or of different lengths.
    """
    _check_stack(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    states: list[tuple[Any, ...]] = []
    with _v1.variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (fw, bw) in enumerate(zip(cells_fw, cells_bw, strict=True)):
            with _v1.variable_scope(f"cell_{i}"):
                outputs, state = _v1.nn.bidirectional_dynamic_rnn(
                    fw,
                    bw,
                    inputs,
                    initial_state_fw=initial_states_fw[i] if initial_states_fw else None,
                    initial_state_bw=initial_states_bw[i] if initial_states_bw else None,
                    sequence_length=sequence_length,
                    parallel_iterations=parallel_iterations,
                    dtype=dtype,
                    swap_memory=swap_memory,
                    time_major=time_major,
                )
            inputs = tf.concat(outputs, 2)
            states.append(state)
    return inputs, tuple(fw for fw, _ in states), tuple(bw for _, bw in states)


def stack_bidirectional_rnn(
    cells_fw: Sequence[Any],
    cells_bw: Sequence[Any],
    inputs: list[tf.Tensor],
    initial_states_fw: Any = None,
    initial_states_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[tf.Tensor], tuple[Any, ...], tuple[Any, ...]]:
    """`stack_bidirectional_dynamic_rnn` for a list of steps."""
    _check_stack(cells_fw, cells_bw, initial_states_fw, initial_states_bw)
    states = []
    with _v1.variable_scope(scope or "stack_bidirectional_rnn"):
        for i, (fw, bw) in enumerate(zip(cells_fw, cells_bw, strict=True)):
            with _v1.variable_scope(f"cell_{i}") as cell_scope:
                inputs, *state = _v1.nn.static_bidirectional_rnn(
                    fw,
                    bw,
                    inputs,
                    initial_states_fw[i] if initial_states_fw else None,
                    initial_states_bw[i] if initial_states_bw else None,
                    dtype,
                    sequence_length,
                    cell_scope,
                )
            states.append(state)
    return inputs, tuple(fw for fw, _ in states), tuple(bw for _, bw in states)


def _check_stack(fw: Any, bw: Any, states_fw: Any, states_bw: Any) -> None:
    """Raises ValueError where cells or states do not make a stack."""
    for which, cells, states in (("fw", fw, states_fw), ("bw", bw, states_bw)):
        if not cells:
            raise ValueError(f"Must specify at least one {which} cell for BidirectionalRNN.")
        if not isinstance(cells, list):
            raise ValueError(f"cells_{which} must be a list of RNNCells (one per layer).")
        if states is not None and (not isinstance(states, list) or len(states) != len(cells)):
            raise ValueError(
                f"initial_states_{which} must be a list of state tensors (one per layer)."
            )
    if len(fw) != len(bw):
        raise ValueError("Forward and Backward cells must have the same depth.")
