"""`tf.contrib.seq2seq` of TF 1.15: decoders, which run a cell on its own earlier outputs.

Helpers (`step_helpers.py`) choose the inputs of a step, attention (`attention_wrapper.py`) looks
back at an encoder, and `beam_search.py` searches. This module runs them and scores the result.
"""

from __future__ import annotations

import abc
import collections
import contextlib
from collections.abc import Callable
from typing import Any

import tensorflow as tf

import estimator2strategy.tf1 as tf1
from estimator2strategy.tf1.contrib.rnn.fused_cells import transpose_batch_time
from estimator2strategy.tf1.contrib.seq2seq.step_helpers import (
    Helper,
)


class Decoder(abc.ABC):
    """A decoder, which `dynamic_decode` runs."""

    @property
    def batch_size(self) -> Any:
        """The batch size of the inputs."""
        raise NotImplementedError

    @property
    def output_size(self) -> Any:
        """Structure of the sizes of a step's outputs, without the batch."""
        raise NotImplementedError

    @property
    def output_dtype(self) -> Any:
        """Structure of the types of a step's outputs."""
        raise NotImplementedError

    @abc.abstractmethod
    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        """(finished [batch], inputs, state) before the first step."""

    @abc.abstractmethod
    def step(
        self, time: Any, inputs: Any, state: Any, name: str | None = None
    ) -> tuple[Any, Any, Any, Any]:
        """(outputs, state, inputs, finished) of a step."""

    def finalize(self, outputs: Any, final_state: Any, sequence_lengths: Any) -> tuple[Any, Any]:
        """Outputs [time, batch, ...] and state as `dynamic_decode` is to return them."""
        raise NotImplementedError

    @property
    def tracks_own_finished(self) -> bool:
        """True if a sequence that had finished may go on."""
        return False


_v1 = tf.compat.v1

BasicDecoderOutput = collections.namedtuple("BasicDecoderOutput", ("rnn_output", "sample_id"))


class BasicDecoder(Decoder):
    """Runs a cell on the inputs that a helper chooses.

    Args:
        cell: An RNN cell.
        helper: A `Helper`.
        initial_state: Of the cell.
        output_layer: A layer on the outputs, before they are sampled.

    Raises:
        TypeError: `helper` or `output_layer` is something else.
    """

    def __init__(self, cell: Any, helper: Helper, initial_state: Any, output_layer: Any = None):
        if not isinstance(helper, Helper):
            raise TypeError(f"helper must be a Helper, received: {type(helper)}")
        if output_layer is not None and not isinstance(output_layer, tf1.layers.Layer):
            raise TypeError(f"output_layer must be a Layer, received: {type(output_layer)}")
        self._cell = cell
        self._helper = helper
        self._initial_state = initial_state
        self._output_layer = output_layer

    @property
    def batch_size(self) -> Any:
        return self._helper.batch_size

    def _rnn_output_size(self) -> Any:
        size = self._cell.output_size
        if self._output_layer is None:
            return size
        batched = tf.nest.map_structure(lambda s: tf.TensorShape([None]).concatenate(s), size)
        shape = self._output_layer.compute_output_shape(batched)
        return tf.nest.map_structure(lambda s: s[1:], shape)

    @property
    def output_size(self) -> BasicDecoderOutput:
        return BasicDecoderOutput(self._rnn_output_size(), self._helper.sample_ids_shape)

    @property
    def output_dtype(self) -> BasicDecoderOutput:
        dtype = tf.nest.flatten(self._initial_state)[0].dtype
        dtypes = tf.nest.map_structure(lambda _: dtype, self._rnn_output_size())
        return BasicDecoderOutput(dtypes, self._helper.sample_ids_dtype)

    def initialize(self, name: str | None = None) -> tuple[Any, Any, Any]:
        finished, inputs = self._helper.initialize()
        return finished, inputs, self._initial_state

    def step(
        self, time: Any, inputs: Any, state: Any, name: str | None = None
    ) -> tuple[Any, Any, Any, Any]:
        with _v1.name_scope(name, "BasicDecoderStep"):
            outputs, state = self._cell(inputs, state)
            if self._output_layer is not None:
                outputs = self._output_layer(outputs)
            ids = self._helper.sample(time=time, outputs=outputs, state=state)
            finished, inputs, state = self._helper.next_inputs(
                time=time, outputs=outputs, state=state, sample_ids=ids
            )
        return BasicDecoderOutput(outputs, ids), state, inputs, finished


def dynamic_decode(
    decoder: Decoder,
    output_time_major: bool = False,
    impute_finished: bool = False,
    maximum_iterations: Any = None,
    parallel_iterations: int = 32,
    swap_memory: bool = False,
    scope: Any = None,
) -> tuple[Any, Any, tf.Tensor]:
    """Runs `decoder` until all sequences have finished.

    Args:
        decoder: A `Decoder`.
        output_time_major: True if outputs are [time, batch, ...], not [batch, time, ...].
        impute_finished: True if a sequence that has finished keeps its state, with outputs of 0.
        maximum_iterations: Steps after which it ends in any case, an int32 scalar.
        parallel_iterations: Of `tf.while_loop`.
        swap_memory: Of `tf.while_loop`.
        scope: Variable scope, `decoder` by default.

    Returns:
        Outputs, final state, and int32 [batch], how many steps each sequence had.

    Raises:
        TypeError: `decoder` is something else.
        ValueError: `maximum_iterations` is no scalar.
    """
    if not isinstance(decoder, Decoder):
        raise TypeError(f"Expected decoder to be type Decoder, but saw: {type(decoder)}")
    with _v1.variable_scope(scope, "decoder"):
        finished, inputs, state = decoder.initialize()
        if maximum_iterations is not None:
            maximum_iterations = tf.convert_to_tensor(maximum_iterations, tf.int32)
            if maximum_iterations.shape.rank != 0:
                raise ValueError("maximum_iterations must be a scalar")
            finished |= maximum_iterations <= 0
        arrays = _empty_arrays(decoder)
        _, arrays, state, _, _, lengths = _v1.while_loop(
            lambda time, arrays, state, inputs, finished, lengths: ~tf.reduce_all(finished),
            _loop_body(decoder, impute_finished),
            (tf.constant(0), arrays, state, inputs, finished, tf.zeros_like(finished, tf.int32)),
            parallel_iterations=parallel_iterations,
            maximum_iterations=maximum_iterations,
            swap_memory=swap_memory,
        )
        outputs = tf.nest.map_structure(lambda array: array.stack(), arrays)
        with contextlib.suppress(NotImplementedError):  # most have nothing to do
            outputs, state = decoder.finalize(outputs, state, lengths)
        if not output_time_major:
            outputs = tf.nest.map_structure(transpose_batch_time, outputs)
    return outputs, state, lengths


def _loop_body(decoder: Decoder, impute_finished: bool) -> Callable[..., Any]:
    """A step of `decoder` as the body of a loop; its outputs go into TensorArrays."""

    def step(
        time: tf.Tensor, arrays: Any, state: Any, inputs: Any, finished: Any, lengths: Any
    ) -> Any:
        outputs, after, inputs_after, now = decoder.step(time, inputs, state)
        if not decoder.tracks_own_finished:
            now |= finished
        tf.nest.assert_same_structure(state, after)
        tf.nest.assert_same_structure(inputs, inputs_after)
        if impute_finished:
            zeros = tf.nest.map_structure(tf.zeros_like, outputs)
            outputs = tf.nest.map_structure(
                lambda zero, out: _where(finished, zero, out), zeros, outputs
            )
            after = tf.nest.map_structure(lambda old, new: _kept(finished, old, new), state, after)
        arrays = tf.nest.map_structure(lambda a, out: a.write(time, out), arrays, outputs)
        lengths = tf.where(finished, lengths, tf.fill(tf.shape(lengths), time + 1))
        return time + 1, arrays, after, inputs_after, now, lengths

    return step


def _empty_arrays(decoder: Decoder) -> Any:
    """Structure of the TensorArrays that take the outputs of all steps."""
    sizes, dtypes = decoder.output_size, decoder.output_dtype
    batch = decoder.batch_size
    static_batch = tf.get_static_value(batch) if tf.is_tensor(batch) else batch

    def empty(size: Any, dtype: Any) -> tf.TensorArray:
        shape = tf.TensorShape([static_batch]).concatenate(size)
        return _v1.TensorArray(dtype, size=0, dynamic_size=True, element_shape=shape)

    return tf.nest.map_structure(empty, sizes, dtypes)


def _where(chosen: tf.Tensor, one: tf.Tensor, other: tf.Tensor) -> tf.Tensor:
    """Rows of `one` where `chosen` [batch] is true, else of `other`."""
    return tf.where(tf.reshape(chosen, [-1] + [1] * (other.shape.rank - 1)), one, other)


def _kept(finished: tf.Tensor, old: Any, new: Any) -> Any:
    """The old state where a sequence has finished; what belongs to no example is new."""
    if isinstance(old, tf.TensorArray):
        return new
    new.set_shape(old.shape)
    return new if new.shape.rank == 0 else _where(finished, old, new)


def tile_batch(t: Any, multiplier: int, name: str | None = None) -> Any:
    """A structure of tensors with each example `multiplier` times, one after the other."""

    def tile(tensor: Any) -> tf.Tensor:
        tensor = tf.convert_to_tensor(tensor, name="t")
        if tensor.shape.rank is None or tensor.shape.rank < 1:
            raise ValueError("t must have statically known rank")
        return tf.repeat(tensor, multiplier, axis=0)

    with _v1.name_scope(name, "tile_batch"):
        return tf.nest.map_structure(tile, t)


def sequence_loss(
    logits: tf.Tensor,
    targets: tf.Tensor,
    weights: tf.Tensor,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    sum_over_timesteps: bool = False,
    sum_over_batch: bool = False,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> tf.Tensor:
    """Weighted cross entropy of sequences.

    Args:
        logits: [batch, time, classes].
        targets: Integers [batch, time].
        weights: [batch, time].
        average_across_timesteps: Divide the sum over the steps by the weights.
        average_across_batch: Divide the sum over the batch by the weights.
        sum_over_timesteps: Divide it by the number of weights that are not 0.
        sum_over_batch: The same for the batch.
        softmax_loss_function: Takes `labels` and `logits` in place of the softmax cross entropy.
        name: Of the name scope.

    Returns:
        A scalar, or [batch], [time] or [batch, time] where an axis is neither averaged nor summed.

    Raises:
        ValueError: A rank does not fit, or an axis is both averaged and summed.
    """
    if len(logits.shape) != 3:
        raise ValueError("Logits must be a [batch_size x sequence_length x logits] tensor")
    if len(targets.shape) != 2:
        raise ValueError("Targets must be a [batch_size x sequence_length] tensor")
    if len(weights.shape) != 2:
        raise ValueError("Weights must be a [batch_size x sequence_length] tensor")
    for axis, average, total in (
        ("timesteps", average_across_timesteps, sum_over_timesteps),
        ("batch", average_across_batch, sum_over_batch),
    ):
        if average and total:
            raise ValueError(
                f"average_across_{axis} and sum_over_{axis} cannot be set to True at same time."
            )
    loss_fn = softmax_loss_function or tf.nn.sparse_softmax_cross_entropy_with_logits
    with _v1.name_scope(name, "sequence_loss"):
        flat = tf.reshape(logits, [-1, tf.shape(logits)[2]])
        losses = loss_fn(labels=tf.reshape(targets, [-1]), logits=flat)
        losses = tf.reshape(losses, tf.shape(targets)) * weights
        averaged = [
            a for a, on in enumerate((average_across_batch, average_across_timesteps)) if on
        ]
        summed = [a for a, on in enumerate((sum_over_batch, sum_over_timesteps)) if on]
        return _reduced(losses, weights, averaged, summed)


def _reduced(
    losses: tf.Tensor, weights: tf.Tensor, averaged: list[int], summed: list[int]
) -> tf.Tensor:
    """Losses [batch, time], averaged or summed over these axes.

    Both axes in the same way, or else one of them; averages go first, as in TF 1.15.
    """
    if len(averaged) == 2 or (averaged and len(summed) < 2):
        total = tf.reduce_sum(losses, averaged)
        return tf.math.divide_no_nan(total, tf.reduce_sum(weights, averaged))
    if summed:
        count = tf.math.count_nonzero(weights, summed, dtype=losses.dtype)
        return tf.math.divide_no_nan(tf.reduce_sum(losses, summed), count)
    return losses
