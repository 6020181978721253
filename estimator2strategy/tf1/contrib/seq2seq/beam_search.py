"""`tf.contrib.seq2seq` of TF 1.15: beam search, which keeps the best beginnings of each sequence.

A beam is one beginning. Tensors with beams are [batch, beams, ...]; the cell sees them as a batch.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any, cast

import tensorflow as tf

import estimator2strategy.tf1 as tf1
from estimator2strategy.tf1.contrib.seq2seq.attention_wrapper import AttentionWrapperState
from estimator2strategy.tf1.contrib.seq2seq.decoding import Decoder

_v1 = tf.compat.v1

BeamSearchDecoderState = collections.namedtuple(
    "BeamSearchDecoderState",
    ("cell_state", "log_probs", "finished", "lengths", "accumulated_attention_probs"),
)
BeamSearchDecoderOutput = collections.namedtuple(
    "BeamSearchDecoderOutput", ("scores", "predicted_ids", "parent_ids")
)
FinalBeamSearchDecoderOutput = collections.namedtuple(
    "FinalBeamSearchDecoderOutput", ("predicted_ids", "beam_search_decoder_output")
)


def gather_tree(
    step_ids: Any,
    parent_ids: Any,
    max_sequence_lengths: Any,
    end_token: Any,
    name: str | None = None,
) -> tf.Tensor:
    """Whole sequences, of the ids that each step chose and the beams that it chose them for.

    Args:
        step_ids: int32 [time, batch, beams].
        parent_ids: int32 [time, batch, beams]: which beam of the step before each one goes on from.
        max_sequence_lengths: int32 [batch]; what comes later is the end token.
        end_token: int32 scalar; what comes after it is the end token too.
        name: Of the ops.

    Returns:
        int32 [time, batch, beams].
    """
    with _v1.name_scope(name, "GatherTree"):
        step_ids, parent_ids = tf.convert_to_tensor(step_ids), tf.convert_to_tensor(parent_ids)
        beams = tf.broadcast_to(tf.range(tf.shape(step_ids)[2]), tf.shape(step_ids)[1:])
        times = tf.range(tf.shape(step_ids)[0])
        within = times[:, None] < tf.convert_to_tensor(max_sequence_lengths)[None]

        def back(later: Any, step: Any) -> tuple[tf.Tensor, tf.Tensor]:
            (_, followed), (ids, parents, active) = later, step
            chosen = [tf.gather(x, followed, batch_dims=1) for x in (ids, parents)]
            rest = tf.fill(tf.shape(ids), end_token), beams
            return _where(active, chosen[0], rest[0]), _where(active, chosen[1], rest[1])

        ids, _ = tf.scan(back, (step_ids, parent_ids, within), (beams, beams), reverse=True)
        ended = tf.cumsum(tf.cast(tf.equal(ids, end_token), tf.int32), exclusive=True)
        return tf.where(ended > 0, tf.fill(tf.shape(ids), end_token), ids)


class BeamSearchDecoder(Decoder):
    """Searches for the sequences that a cell finds most likely.

    Args:
        cell: An RNN cell, whose memory and states `tile_batch` has tiled.
        embedding: A function of int32 ids, or a matrix to look them up in.
        start_tokens: int32 [batch].
        end_token: int32 scalar.
        initial_state: Of the cell, for batch * beam_width sequences.
        beam_width: The number of beams of each sequence.
        output_layer: A layer on the cell's outputs.
        length_penalty_weight: Exponent of the length that scores are divided by.
        coverage_penalty_weight: Weight of what the attention has left out.
        reorder_tensor_arrays: True if alignment histories are returned in the order of the results.

    Raises:
        TypeError: `output_layer` is no layer.
        ValueError: `start_tokens` is no vector, `end_token` no scalar, or the initial state is
            one for another number of sequences.
    """

    def __init__(
        self,
        cell: Any,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        initial_state: Any,
        beam_width: int,
        output_layer: Any = None,
        length_penalty_weight: Any = 0.0,
        coverage_penalty_weight: Any = 0.0,
        reorder_tensor_arrays: bool = True,
    ):
        if output_layer is not None and not isinstance(output_layer, tf1.layers.Layer):
            raise TypeError(f"output_layer must be a Layer, received: {type(output_layer)}")
        start_tokens = tf.convert_to_tensor(start_tokens, tf.int32, name="start_tokens")
        if start_tokens.shape.rank != 1:
            raise ValueError("start_tokens must be a vector")
        self._end_token = tf.convert_to_tensor(end_token, tf.int32, name="end_token")
        if self._end_token.shape.rank != 0:
            raise ValueError("end_token must be a scalar")
        self._cell = cell
        self._embedding_fn: Callable[..., Any] = (
            embedding
            if callable(embedding)
            else lambda ids: _v1.nn.embedding_lookup(embedding, ids)
        )
        self._output_layer = output_layer
        self._beam_width = beam_width
        self._length_penalty_weight = length_penalty_weight
        self._coverage_penalty_weight = coverage_penalty_weight
        self._reorder_tensor_arrays = reorder_tensor_arrays
        self._batch_size = tf.size(start_tokens)
        self._static_batch = tf.get_static_value(self._batch_size)
        self._initial_cell_state = tf.nest.map_structure(self._split, initial_state)
        self._start_inputs = self._embedding_fn(tf.tile(start_tokens[:, None], [1, beam_width]))

    @property
    def batch_size(self) -> tf.Tensor:
        return self._batch_size

    @property
    def tracks_own_finished(self) -> bool:
        """True: a beam that had finished may give way to another."""
        return True

    @property
    def output_size(self) -> BeamSearchDecoderOutput:
        return BeamSearchDecoderOutput(*[tf.TensorShape([self._beam_width])] * 3)

    @property
    def output_dtype(self) -> BeamSearchDecoderOutput:
        return BeamSearchDecoderOutput(self._dtype, tf.int32, tf.int32)

    @property
    def _dtype(self) -> tf.DType:
        return tf.nest.flatten(self._initial_cell_state)[0].dtype

    def initialize(self, name: str | None = None) -> tuple[Any, Any, BeamSearchDecoderState]:
        first = tf.one_hot(tf.zeros([self._batch_size], tf.int32), self._beam_width, True, False)
        # All beams are alike, so only one of them may go on.
        nothing = tf.constant(float("-inf"), self._dtype)
        log_probs = tf.where(first, tf.zeros_like(nothing), nothing)
        attended = self._attention_probs(self._initial_cell_state)
        state = BeamSearchDecoderState(
            self._initial_cell_state,
            log_probs,
            ~first,
            tf.zeros([self._batch_size, self._beam_width], tf.int64),
            () if attended is None else attended,
        )
        return ~first, self._start_inputs, state

    def step(
        self, time: Any, inputs: Any, state: Any, name: str | None = None
    ) -> tuple[Any, Any, Any, Any]:
        with _v1.name_scope(name, "BeamSearchDecoderStep"):
            inputs = tf.nest.map_structure(self._merged, inputs)
            cell_state = tf.nest.map_structure(
                lambda t: t if _rank(t) < 2 else self._merged(t), state.cell_state
            )
            logits, cell_state = self._cell(inputs, cell_state)
            logits = tf.nest.map_structure(self._split, logits)
            cell_state = tf.nest.map_structure(self._split, cell_state)
            if self._output_layer is not None:
                logits = self._output_layer(logits)
            output, state = self._search(logits, cell_state, state)
            inputs = _v1.cond(
                tf.reduce_all(state.finished),
                lambda: self._start_inputs,
                lambda: self._embedding_fn(output.predicted_ids),
            )
        return output, state, inputs, state.finished

    def finalize(
        self, outputs: Any, final_state: Any, sequence_lengths: Any
    ) -> tuple[FinalBeamSearchDecoderOutput, Any]:
        """The sequences [time, batch, beams], best beam first."""
        del sequence_lengths  # the search counts its own
        lengths = tf.cast(tf.reduce_max(final_state.lengths, axis=1), tf.int32)
        ids = gather_tree(outputs.predicted_ids, outputs.parent_ids, lengths, self._end_token)
        if self._reorder_tensor_arrays:
            cell_state = tf.nest.map_structure(
                lambda t: self._reordered(t, outputs.parent_ids, final_state.lengths),
                final_state.cell_state,
            )
            final_state = final_state._replace(cell_state=cell_state)
        return FinalBeamSearchDecoderOutput(ids, outputs), final_state

    def _search(self, logits: Any, cell_state: Any, state: Any) -> tuple[Any, Any]:
        """The best `beam_width` of all words that may follow each of the beams."""
        words = logits.shape[-1] or tf.shape(logits)[-1]
        probs = state.log_probs[:, :, None] + self._word_log_probs(logits, state.finished)
        attended = self._attention_probs(cell_state)
        if attended is not None:
            attended *= tf.cast(~state.finished, attended.dtype)[:, :, None]
            attended += state.accumulated_attention_probs
        scores = self._scores(probs, state, attended, words)
        flat = [self._batch_size, -1]
        best, places = tf.math.top_k(tf.reshape(scores, flat), self._beam_width)
        best.set_shape([self._static_batch, self._beam_width])
        places.set_shape(best.shape)
        parents, ids = places // words, places % words

        def follow(tensor: Any) -> Any:
            return tensor if _rank(tensor) < 2 else tf.gather(tensor, parents, batch_dims=1)

        finished = follow(state.finished)
        log_probs = tf.gather(tf.reshape(probs, flat), places, batch_dims=1)
        log_probs.set_shape(best.shape)
        after = BeamSearchDecoderState(
            tf.nest.map_structure(follow, cell_state),
            log_probs,
            finished | tf.equal(ids, self._end_token),
            follow(state.lengths) + tf.cast(~finished, tf.int64),
            () if attended is None else follow(attended),
        )
        return BeamSearchDecoderOutput(best, ids, parents), after

    def _word_log_probs(self, logits: tf.Tensor, finished: tf.Tensor) -> tf.Tensor:
        """[batch, beams, words]; after its end a beam can only end again."""
        one, no = tf.zeros([], logits.dtype), tf.constant(logits.dtype.min, logits.dtype)
        ending = tf.one_hot(self._end_token, tf.shape(logits)[-1], one, no, dtype=logits.dtype)
        return tf.where(finished[:, :, None], ending, tf.nn.log_softmax(logits))

    def _scores(self, probs: Any, state: Any, attended: Any, words: Any) -> tf.Tensor:
        """[batch, beams, words]: log probabilities, less the penalties."""
        scores = probs
        if tf.get_static_value(tf.convert_to_tensor(self._length_penalty_weight)) != 0:
            longer = tf.not_equal(tf.range(words), self._end_token) & ~state.finished[:, :, None]
            lengths = state.lengths[:, :, None] + tf.cast(longer, tf.int64)
            penalty = ((5.0 + tf.cast(lengths, tf.float32)) / 6.0) ** self._length_penalty_weight
            scores = scores / tf.cast(penalty, scores.dtype)
        if attended is None:
            return scores
        # Zero is what lies behind the end of the source.
        covered = tf.where(tf.equal(attended, 0.0), tf.ones_like(attended), attended)
        penalty = tf.reduce_sum(tf.math.log(tf.minimum(covered, 1.0)), 2)
        penalty *= tf.cast(state.finished, penalty.dtype) * self._coverage_penalty_weight
        return scores + penalty[:, :, None]

    def _attention_probs(self, cell_state: Any) -> tf.Tensor | None:
        """The mean alignments [batch, beams, source] of all attending cells, if coverage counts."""
        weight = self._coverage_penalty_weight
        if isinstance(weight, (int, float)) and weight == 0:
            return None
        states = [cell_state] if isinstance(cell_state, AttentionWrapperState) else cell_state
        states = states if isinstance(states, tuple | list) else []
        means = [_mean(s.alignments) for s in states if isinstance(s, AttentionWrapperState)]
        if not means:
            raise ValueError("coverage_penalty_weight must be 0.0 if no cell is attentional.")
        return _mean(tuple(means))

    def _merged(self, tensor: tf.Tensor) -> tf.Tensor:
        """[batch * beams, ...] of [batch, beams, ...]."""
        shape = tf.concat([[self._batch_size * self._beam_width], tf.shape(tensor)[2:]], 0)
        merged = tf.reshape(tensor, shape)
        batch = self._static_batch and self._static_batch * self._beam_width
        merged.set_shape(tf.TensorShape([batch]).concatenate(tensor.shape[2:]))
        return merged

    def _split(self, tensor: Any) -> Any:
        """[batch, beams, ...] of [batch * beams, ...]; scalars and TensorArrays stay."""
        if _rank(tensor) < 1:
            return tensor
        shape = tf.concat([[self._batch_size, self._beam_width], tf.shape(tensor)[1:]], 0)
        rows = tensor.shape[0]
        if None not in (rows, self._static_batch) and rows != self._static_batch * self._beam_width:
            raise ValueError(
                f"A tensor of the state has the shape {tensor.shape}, where {self._static_batch} "
                f"sequences have {self._beam_width} beams each. Perhaps you forgot to create a "
                "zero_state with batch_size=encoder_batch_size * beam_width?"
            )
        split = tf.reshape(tensor, shape)
        static = tf.TensorShape([self._static_batch, self._beam_width])
        split.set_shape(static.concatenate(tensor.shape[1:]))
        return split

    def _has_rows(self, shape: tf.TensorShape) -> bool:
        """True if TF 1.15 reordered a TensorArray of such elements."""
        if not shape.rank:
            return False
        if self._static_batch is None or shape[0] is None:
            return True
        beams = shape.rank >= 2 and shape[1] is not None
        split = not beams or shape[:2] == [self._static_batch, self._beam_width]
        return bool(split and shape[0] == self._static_batch * self._beam_width)

    def _reordered(self, history: Any, parent_ids: tf.Tensor, lengths: tf.Tensor) -> Any:
        """A TensorArray's elements, stacked, each where the sequence that it led to is."""
        if not isinstance(history, tf.TensorArray) or not self._has_rows(history.element_shape):
            return history
        stacked = history.stack()
        time, batch, beams = (tf.shape(parent_ids)[axis] for axis in range(3))
        own = tf.broadcast_to(tf.range(beams), tf.shape(parent_ids))
        longest = tf.cast(tf.reduce_max(lengths, axis=1), tf.int32)
        followed = gather_tree(own, parent_ids, longest, beams + 1)
        within = tf.transpose(tf.sequence_mask(lengths, maxlen=time), [2, 0, 1])
        split = tf.reshape(stacked, [time, batch, beams, -1])
        ordered = tf.gather(split, tf.where(within, followed, own), batch_dims=2)
        return tf.reshape(ordered, tf.shape(stacked))


def _where(chosen: tf.Tensor, one: tf.Tensor, other: tf.Tensor) -> tf.Tensor:
    """Rows of `one` where `chosen` [batch] is true, else of `other`."""
    return tf.where(chosen[:, None], one, other)


def _rank(value: Any) -> int:
    """The rank of a tensor; a TensorArray is no part of a batch.

    Raises:
        ValueError: It is unknown.
    """
    if isinstance(value, tf.TensorArray):
        return -1
    if value.shape.rank is None:
        raise ValueError(f"Expected tensor ({value}) to have known rank, but ndims == None.")
    return cast(int, value.shape.rank)


def _mean(tensors: Any) -> tf.Tensor:
    """The mean of a tuple of tensors; a tensor is its own."""
    if not isinstance(tensors, tuple):
        return tensors
    return tensors[0] if len(tensors) == 1 else tf.reduce_mean(tf.stack(tensors, -1), -1)
