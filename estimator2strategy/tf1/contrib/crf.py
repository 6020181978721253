"""`tf.contrib.crf` of TF 1.15: linear-chain conditional random fields.

Shapes in this module: potentials, or `inputs`, are [batch, time, tags] unary scores;
`transition_params[i, j]` is the score of tag j after tag i; sequence lengths are [batch].
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import tensorflow as tf

import estimator2strategy.tf1 as tf1
from estimator2strategy.tf1.contrib import names_of

_v1 = tf.compat.v1

__getattr__ = names_of("crf", globals())


def crf_log_likelihood(
    inputs: tf.Tensor,
    tag_indices: tf.Tensor,
    sequence_lengths: tf.Tensor,
    transition_params: Any = None,
) -> tuple[tf.Tensor, Any]:
    """Log-likelihood [batch] of the tags [batch, time], and the transitions.

    Without `transition_params` they are a new variable, `transitions`, in the current scope.
    """
    if transition_params is None:
        num_tags = tf.compat.dimension_value(inputs.shape[2])
        transition_params = _v1.get_variable("transitions", [num_tags, num_tags])
    score = crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params)
    return score - crf_log_norm(inputs, sequence_lengths, transition_params), transition_params


def crf_sequence_score(
    inputs: tf.Tensor,
    tag_indices: tf.Tensor,
    sequence_lengths: tf.Tensor,
    transition_params: Any,
) -> tf.Tensor:
    """Score [batch] of the tags [batch, time], not normalised."""
    unary = crf_unary_score(tag_indices, sequence_lengths, inputs)
    return unary + crf_binary_score(tag_indices, sequence_lengths, transition_params)


def crf_unary_score(
    tag_indices: tf.Tensor, sequence_lengths: tf.Tensor, inputs: tf.Tensor
) -> tf.Tensor:
    """The sum of the potentials of the tags, [batch]."""
    mask = tf.sequence_mask(sequence_lengths, tf.shape(tag_indices)[1])
    # Padding may be any number, also one that is no tag.
    tags = tf.where(mask, tag_indices, tf.zeros_like(tag_indices))
    scores = tf.gather(inputs, tags, batch_dims=2)
    return tf.reduce_sum(scores * tf.cast(mask, scores.dtype), 1)


def crf_binary_score(
    tag_indices: tf.Tensor, sequence_lengths: tf.Tensor, transition_params: Any
) -> tf.Tensor:
    """The sum of the scores of transitions between the tags, [batch]."""
    mask = tf.sequence_mask(sequence_lengths, tf.shape(tag_indices)[1])
    tags = tf.where(mask, tag_indices, tf.zeros_like(tag_indices))
    scores = tf.gather_nd(transition_params, tf.stack([tags[:, :-1], tags[:, 1:]], -1))
    return tf.reduce_sum(scores * tf.cast(mask[:, 1:], scores.dtype), 1)


def crf_multitag_sequence_score(
    inputs: tf.Tensor,
    tag_bitmap: tf.Tensor,
    sequence_lengths: tf.Tensor,
    transition_params: Any,
) -> tf.Tensor:
    """Log of the summed exponential scores [batch] of all sequences that `tag_bitmap` allows.

    `tag_bitmap` is bool, [batch, time, tags].
    """
    allowed = tf.where(tag_bitmap, inputs, tf.fill(tf.shape(inputs), float("-inf")))
    return crf_log_norm(allowed, sequence_lengths, transition_params)


def crf_log_norm(
    inputs: tf.Tensor, sequence_lengths: tf.Tensor, transition_params: Any
) -> tf.Tensor:
    """Log of the partition function, [batch]; 0 for an empty sequence."""
    cell = CrfForwardRnnCell(transition_params)

    def step(time: tf.Tensor, alphas: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        _, after = cell(inputs[:, time], alphas)
        inside = time < tf.cast(sequence_lengths, tf.int32)
        return time + 1, tf.where(inside[:, None], after, alphas)

    steps = tf.shape(inputs)[1]
    _, alphas = _v1.while_loop(lambda time, _: time < steps, step, [1, inputs[:, 0]])
    log_norm = tf.reduce_logsumexp(alphas, 1)
    return tf.where(sequence_lengths <= 0, tf.zeros_like(log_norm), log_norm)


def crf_decode(
    potentials: tf.Tensor, transition_params: Any, sequence_length: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """The best tags, int32 [batch, time] with 0 after the end of a sequence; their score [batch].

    The first potentials are taken as they are, whatever the length: the tag of an empty sequence is
    the best one of its first step.
    """
    shape = tf.shape(potentials)
    batch, steps, num_tags = shape[0], shape[1], shape[2]
    lengths = tf.maximum(tf.cast(sequence_length, tf.int32), 1)
    cell = CrfDecodeForwardRnnCell(transition_params)
    same = tf.tile(tf.range(num_tags)[None], [batch, 1])

    def forward(time: tf.Tensor, state: tf.Tensor, before: Any) -> tuple[Any, ...]:
        """`before[t]` is for each tag at t the best one at t - 1."""
        backpointers, after = cell(potentials[:, time], state)
        inside = (time < lengths)[:, None]
        before = before.write(time, tf.where(inside, backpointers, same))
        return time + 1, tf.where(inside, after, state), before

    def backward(time: tf.Tensor, tags: tf.Tensor, decoded: Any) -> tuple[Any, ...]:
        decoded = decoded.write(time, tags)
        return time - 1, tf.gather(before.read(time), tags, batch_dims=1), decoded

    before = _v1.TensorArray(tf.int32, steps, clear_after_read=False).write(0, same)
    loop = [1, potentials[:, 0], before]
    _, state, before = _v1.while_loop(lambda time, *_: time < steps, forward, loop)
    loop = [steps - 1, tf.argmax(state, 1, tf.int32), _v1.TensorArray(tf.int32, steps)]
    _, _, decoded = _v1.while_loop(lambda time, *_: time >= 0, backward, loop)
    tags = tf.transpose(decoded.stack())
    tags *= tf.sequence_mask(lengths, steps, tf.int32)
    tags.set_shape(potentials.shape[:2])
    return tags, tf.reduce_max(state, 1)


def viterbi_decode(
    score: np.ndarray, transition_params: np.ndarray
) -> tuple[list[Any], np.ndarray]:
    """The best tags of one sequence, and their score, in NumPy.

    Args:
        score: Unary scores, [time, tags].
        transition_params: [tags, tags].
    """
    best, backpointers = score[0], []
    for unary in score[1:]:
        paths = best[:, None] + transition_params
        backpointers.append(np.argmax(paths, 0))
        best = unary + np.max(paths, 0)
    tags = [np.argmax(best)]
    for pointers in reversed(backpointers):
        tags.append(pointers[tags[-1]])
    return tags[::-1], np.max(best)


class _TagCell(tf1.nn.rnn_cell.RNNCell):
    """A cell whose state and output have one number for each tag."""

    def __init__(self, transition_params: Any):
        super().__init__()
        self._transition_params = tf.expand_dims(transition_params, 0)
        self._num_tags = tf.compat.dimension_value(transition_params.shape[0])

    @property
    def state_size(self) -> int:
        return cast(int, self._num_tags)

    @property
    def output_size(self) -> int:
        return cast(int, self._num_tags)

    def _scores(self, state: tf.Tensor) -> tf.Tensor:
        """[batch, from, to]"""
        return tf.expand_dims(state, 2) + self._transition_params


class CrfForwardRnnCell(_TagCell):
    """The forward algorithm in log space; output and state are the alphas, [batch, tags]."""

    def __call__(self, inputs: tf.Tensor, state: tf.Tensor, scope: Any = None) -> tuple[Any, ...]:
        alphas = inputs + tf.reduce_logsumexp(self._scores(state), 1)
        return alphas, alphas


class CrfDecodeForwardRnnCell(_TagCell):
    """Viterbi forwards: output are backpointers, int32 [batch, tags], state the best scores."""

    def __call__(self, inputs: tf.Tensor, state: tf.Tensor, scope: Any = None) -> tuple[Any, ...]:
        scores = self._scores(state)
        return tf.argmax(scores, 1, tf.int32), inputs + tf.reduce_max(scores, 1)


class CrfDecodeBackwardRnnCell(tf1.nn.rnn_cell.RNNCell):
    """Viterbi backwards: follows backpointers [batch, tags]; output, state: tags [batch, 1]."""

    def __init__(self, num_tags: int):
        super().__init__()
        self._num_tags = num_tags

    @property
    def state_size(self) -> int:
        return 1

    @property
    def output_size(self) -> int:
        return 1

    def __call__(self, inputs: tf.Tensor, state: tf.Tensor, scope: Any = None) -> tuple[Any, ...]:
        tags = tf.gather(inputs, state, batch_dims=1)
        return tags, tags
