"""Decoders and losses of `tf.contrib.legacy_seq2seq`, which character models of 2016 to 2018 took.

Sequences are lists with one tensor for each step, and the graph is as long as they are.

Source: TF 1.15, `tensorflow/contrib/legacy_seq2seq/python/ops/seq2seq.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

tf1 = tf.compat.v1


def rnn_decoder(
    decoder_inputs: Sequence[Any],
    initial_state: Any,
    cell: Any,
    loop_function: Callable[[Any, int], Any] | None = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Runs a cell over a list of inputs, with one set of variables for all steps.

    Args:
        decoder_inputs: Tensors of shape [batch, input size], one for each step.
        initial_state: The cell's state before the first step.
        cell: A cell of `tf.nn.rnn_cell`.
        loop_function: Makes a step's input from the output before and the step's number, from
            the second step on. None: the inputs are those given.
        scope: The variable scope; "rnn_decoder" if None.

    Returns:
        The outputs, [batch, output size] for each step, and the last state.
    """
    with tf1.variable_scope(scope or "rnn_decoder"):
        state = initial_state
        outputs: list[Any] = []
        for step, given in enumerate(decoder_inputs):
            taken = given
            if loop_function is not None and outputs:
                with tf1.variable_scope("loop_function", reuse=True):
                    taken = loop_function(outputs[-1], step)
            if step:
                tf1.get_variable_scope().reuse_variables()
            output, state = cell(taken, state)
            outputs.append(output)
    return outputs, state


def basic_rnn_seq2seq(
    encoder_inputs: Sequence[Any],
    decoder_inputs: Sequence[Any],
    cell: Any,
    dtype: Any = tf.float32,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Encodes a list of inputs, and decodes from the state that is left; as `rnn_decoder`."""
    import copy

    with tf1.variable_scope(scope or "basic_rnn_seq2seq"):
        _, state = tf1.nn.static_rnn(copy.deepcopy(cell), encoder_inputs, dtype=dtype)
        return rnn_decoder(decoder_inputs, state, cell)


def sequence_loss_by_example(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """The cross-entropy of each sequence of a batch.

    Args:
        logits: Tensors of shape [batch, symbols], one for each step.
        targets: Symbols, int32 of shape [batch], one for each step.
        weights: float32 of shape [batch], one for each step; 0 leaves a step out.
        average_across_timesteps: Divides by the sum of the weights.
        softmax_loss_function: Called with `labels` and `logits` in place of a softmax.
        name: The name scope; "sequence_loss_by_example" if None.

    Returns:
        float32 of shape [batch].

    Raises:
        ValueError: The lists have different lengths.
    """
    if not len(logits) == len(targets) == len(weights):
        raise ValueError(
            "Lengths of logits, weights, and targets must be the same "
            f"{len(logits)}, {len(weights)}, {len(targets)}."
        )
    with tf1.name_scope(name, "sequence_loss_by_example", [*logits, *targets, *weights]):
        losses = []
        for logit, target, weight in zip(logits, targets, weights, strict=True):
            if softmax_loss_function is None:
                flat = tf.reshape(target, [-1])
                loss = tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=flat, logits=logit)
            else:
                loss = softmax_loss_function(labels=target, logits=logit)
            losses.append(loss * weight)
        total = tf.add_n(losses)
        if average_across_timesteps:
            total /= tf.add_n(weights) + 1e-12  # no 0/0 where all weights are 0
    return total


def sequence_loss(
    logits: Sequence[Any],
    targets: Sequence[Any],
    weights: Sequence[Any],
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """The sum of `sequence_loss_by_example`, divided by the batch's size unless told not to."""
    with tf1.name_scope(name, "sequence_loss", [*logits, *targets, *weights]):
        losses = sequence_loss_by_example(
            logits, targets, weights, average_across_timesteps, softmax_loss_function
        )
        cost = tf.reduce_sum(losses)
        if average_across_batch:
            cost /= tf.cast(tf.shape(targets[0])[0], cost.dtype)
    return cost
