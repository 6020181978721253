"""Helpers of `tf.contrib.seq2seq`: what a decoder samples from an output, and reads next."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Any, cast

import tensorflow as tf

from estimator2strategy.tf1.contrib.rnn.fused_cells import transpose_batch_time

_v1 = tf.compat.v1


class Helper(abc.ABC):
    """Says what the first inputs are, what is sampled from an output, and what comes next."""

    @property
    @abc.abstractmethod
    def batch_size(self) -> Any:
        """A scalar int32 tensor."""

    @property
    @abc.abstractmethod
    def sample_ids_shape(self) -> tf.TensorShape:
        """The shape of the result of `sample`, without the batch."""

    @property
    @abc.abstractmethod
    def sample_ids_dtype(self) -> tf.DType:
        """The dtype of the result of `sample`."""

    @abc.abstractmethod
    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        """(finished [batch], inputs) before the first step."""

    @abc.abstractmethod
    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        """Sample ids [batch, ...] of a step's outputs."""

    @abc.abstractmethod
    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        """(finished, inputs, state) for the next step."""


class CustomHelper(Helper):
    """A helper made of three functions.

    Args:
        initialize_fn: Returns (finished, inputs).
        sample_fn: Takes time, outputs, state; returns sample ids.
        next_inputs_fn: Takes those and sample_ids; returns (finished, inputs, state).
        sample_ids_shape: Of one sample; scalar by default.
        sample_ids_dtype: int32 by default.
    """

    def __init__(
        self,
        initialize_fn: Callable[..., Any],
        sample_fn: Callable[..., Any],
        next_inputs_fn: Callable[..., Any],
        sample_ids_shape: Any = None,
        sample_ids_dtype: Any = None,
    ):
        self._initialize_fn = initialize_fn
        self._sample_fn = sample_fn
        self._next_inputs_fn = next_inputs_fn
        self._batch_size: Any = None
        self._sample_ids_shape = tf.TensorShape(sample_ids_shape or [])
        self._sample_ids_dtype = sample_ids_dtype or tf.int32

    @property
    def batch_size(self) -> Any:
        if self._batch_size is None:
            raise ValueError("batch_size accessed before initialize was called")
        return self._batch_size

    @property
    def sample_ids_shape(self) -> tf.TensorShape:
        return self._sample_ids_shape

    @property
    def sample_ids_dtype(self) -> tf.DType:
        return self._sample_ids_dtype

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        finished, inputs = self._initialize_fn()
        if self._batch_size is None:
            self._batch_size = tf.size(finished)
        return finished, inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        return self._sample_fn(time=time, outputs=outputs, state=state)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        return cast(
            tuple[Any, Any, Any],
            self._next_inputs_fn(time=time, outputs=outputs, state=state, sample_ids=sample_ids),
        )


class _ScalarIds(Helper):
    """A helper whose samples are classes."""

    _batch_size: Any

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def sample_ids_shape(self) -> tf.TensorShape:
        return tf.TensorShape([])

    @property
    def sample_ids_dtype(self) -> tf.DType:
        return tf.int32


class TrainingHelper(_ScalarIds):
    """Reads given inputs, whatever the outputs; its samples are the most likely classes.

    Args:
        inputs: Structure of [batch, time, ...] tensors.
        sequence_length: int32 [batch].
        time_major: True if `inputs` are [time, batch, ...].
        name: Of the name scope.

    Raises:
        ValueError: `sequence_length` is no vector.
    """

    def __init__(
        self, inputs: Any, sequence_length: Any, time_major: bool = False, name: str | None = None
    ):
        with _v1.name_scope(name, "TrainingHelper"):
            inputs = tf.nest.map_structure(tf.convert_to_tensor, inputs)
            self._inputs = inputs
            self._sequence_length = tf.convert_to_tensor(sequence_length, name="sequence_length")
            if self._sequence_length.shape.rank != 1:
                raise ValueError(
                    "Expected sequence_length to be a vector, but received shape: "
                    f"{self._sequence_length.shape}"
                )
            self._steps = (
                inputs if time_major else tf.nest.map_structure(transpose_batch_time, inputs)
            )
            self._batch_size = tf.size(self._sequence_length)

    @property
    def inputs(self) -> Any:
        """The inputs, as they were given."""
        return self._inputs

    @property
    def sequence_length(self) -> tf.Tensor:
        """The sequence lengths, as they were given."""
        return self._sequence_length

    def _read(self, time: Any, all_finished: Any) -> Any:
        """The inputs of a step; zeros when there are no more steps."""
        return tf.nest.map_structure(
            lambda steps: _v1.cond(
                all_finished, lambda: tf.zeros_like(steps[0]), lambda: steps[time]
            ),
            self._steps,
        )

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        finished = tf.equal(0, self._sequence_length)
        return finished, self._read(0, tf.reduce_all(finished))

    def sample(
        self, time: Any, outputs: Any, state: Any = None, name: str | None = None, **unused: Any
    ) -> Any:
        return tf.argmax(outputs, -1, tf.int32)

    def next_inputs(
        self,
        time: Any,
        outputs: Any,
        state: Any,
        sample_ids: Any = None,
        name: str | None = None,
        **unused: Any,
    ) -> tuple[Any, Any, Any]:
        finished = time + 1 >= self._sequence_length
        return finished, self._read(time + 1, tf.reduce_all(finished)), state


class _Scheduled(TrainingHelper):
    """A training helper that sometimes reads what was made in place of what was given."""

    def __init__(self, sampling_probability: Any, **kwargs: Any):
        self._sampling_probability = tf.convert_to_tensor(
            sampling_probability, name="sampling_probability"
        )
        rank = self._sampling_probability.shape.rank
        if rank not in (0, 1):
            raise ValueError(
                "sampling_probability must be either a scalar or a vector. "
                f"saw shape: {self._sampling_probability.shape}"
            )
        super().__init__(**kwargs)

    def _chosen(self, seed: int | None) -> tf.Tensor:
        """The examples that read the cell's own output, bool [batch]."""
        probability = self._sampling_probability
        return (
            _v1.random_uniform([self.batch_size], seed=seed, dtype=probability.dtype) < probability
        )


class ScheduledEmbeddingTrainingHelper(_Scheduled):
    """Reads, with a probability, the embedding of a class sampled from the outputs.

    Sample ids are -1 where nothing was sampled. Other arguments: see `TrainingHelper`.

    Args:
        embedding: A function of ids, or what `tf.nn.embedding_lookup` takes.
        sampling_probability: [] or [batch].
        seed: Of the classes.
        scheduling_seed: Of the choice whether to sample.
    """

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        embedding: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        scheduling_seed: int | None = None,
        name: str | None = None,
    ):
        self._embedding_fn = _embedding_fn(embedding)
        self._seed = seed
        self._scheduling_seed = scheduling_seed
        super().__init__(
            sampling_probability,
            inputs=inputs,
            sequence_length=sequence_length,
            time_major=time_major,
            name=name,
        )

    def sample(
        self, time: Any, outputs: Any, state: Any = None, name: str | None = None, **unused: Any
    ) -> Any:
        ids = _categorical(outputs, self._seed)
        return tf.where(self._chosen(self._scheduling_seed), ids, -tf.ones_like(ids))

    def next_inputs(
        self,
        time: Any,
        outputs: Any,
        state: Any,
        sample_ids: Any = None,
        name: str | None = None,
        **unused: Any,
    ) -> tuple[Any, Any, Any]:
        finished, given, state = super().next_inputs(time, outputs, state)
        made = self._embedding_fn(tf.maximum(sample_ids, 0))
        return finished, _where(sample_ids > -1, made, given), state


class ScheduledOutputTrainingHelper(_Scheduled):
    """Reads, with a probability, the outputs themselves, or what `next_inputs_fn` makes of them.

    Sample ids are 1 where the outputs are read. Other arguments: see `TrainingHelper`.

    Args:
        sampling_probability: [] or [batch].
        seed: Of the choice.
        next_inputs_fn: Makes inputs of outputs.
        auxiliary_inputs: Concatenated to inputs and outputs alike.
    """

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        next_inputs_fn: Callable[..., Any] | None = None,
        auxiliary_inputs: Any = None,
        name: str | None = None,
    ):
        self._seed = seed
        self._next_inputs_fn = next_inputs_fn or (lambda outputs: outputs)
        self._auxiliary = None
        if auxiliary_inputs is not None:
            auxiliary = tf.convert_to_tensor(auxiliary_inputs, name="auxiliary_inputs")
            inputs = tf.concat([inputs, auxiliary], -1)
            self._auxiliary = auxiliary if time_major else transpose_batch_time(auxiliary)
        super().__init__(
            sampling_probability,
            inputs=inputs,
            sequence_length=sequence_length,
            time_major=time_major,
            name=name,
        )

    def sample(
        self, time: Any, outputs: Any, state: Any = None, name: str | None = None, **unused: Any
    ) -> Any:
        return tf.cast(self._chosen(self._seed), tf.int32)

    def next_inputs(
        self,
        time: Any,
        outputs: Any,
        state: Any,
        sample_ids: Any = None,
        name: str | None = None,
        **unused: Any,
    ) -> tuple[Any, Any, Any]:
        finished, given, state = super().next_inputs(time, outputs, state)
        made = self._next_inputs_fn(outputs)
        if self._auxiliary is not None:
            last = tf.shape(self._auxiliary)[0] - 1
            made = tf.concat([made, self._auxiliary[tf.minimum(time + 1, last)]], -1)
        chosen = tf.cast(sample_ids, tf.bool) & ~tf.reduce_all(finished)
        return finished, _where(chosen, made, given), state


class GreedyEmbeddingHelper(_ScalarIds):
    """Reads the embedding of the most likely class, until it is the end token.

    Args:
        embedding: A function of ids, or what `tf.nn.embedding_lookup` takes.
        start_tokens: int32 [batch].
        end_token: int32 scalar.

    Raises:
        ValueError: The tokens have other ranks.
    """

    def __init__(self, embedding: Any, start_tokens: Any, end_token: Any):
        self._embedding_fn = _embedding_fn(embedding)
        self._start_tokens = tf.convert_to_tensor(start_tokens, tf.int32, name="start_tokens")
        self._end_token = tf.convert_to_tensor(end_token, tf.int32, name="end_token")
        if self._start_tokens.shape.rank != 1:
            raise ValueError("start_tokens must be a vector")
        if self._end_token.shape.rank != 0:
            raise ValueError("end_token must be a scalar")
        self._batch_size = tf.size(self._start_tokens)
        self._start_inputs = self._embedding_fn(self._start_tokens)

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        return tf.fill([self._batch_size], False), self._start_inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        if not tf.is_tensor(outputs):
            raise TypeError(f"Expected outputs to be a single Tensor, got: {type(outputs)}")
        return tf.argmax(outputs, -1, tf.int32)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        finished = tf.equal(sample_ids, self._end_token)
        inputs = _v1.cond(
            tf.reduce_all(finished),
            lambda: self._start_inputs,
            lambda: self._embedding_fn(sample_ids),
        )
        return finished, inputs, state


class SampleEmbeddingHelper(GreedyEmbeddingHelper):
    """Reads the embedding of a class sampled from the outputs, which are logits.

    Args:
        softmax_temperature: The divisor of the logits.
        seed: Of the sampling.
    """

    def __init__(
        self,
        embedding: Any,
        start_tokens: Any,
        end_token: Any,
        softmax_temperature: Any = None,
        seed: int | None = None,
    ):
        super().__init__(embedding, start_tokens, end_token)
        self._softmax_temperature = softmax_temperature
        self._seed = seed

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        if not tf.is_tensor(outputs):
            raise TypeError(f"Expected outputs to be a single Tensor, got: {type(outputs)}")
        if self._softmax_temperature is not None:
            outputs = outputs / self._softmax_temperature
        return _categorical(outputs, self._seed)


class InferenceHelper(Helper):
    """Samples by a function, and reads its samples.

    Args:
        sample_fn: Makes sample ids of outputs.
        sample_shape: The shape of one sample.
        sample_dtype: The dtype of the samples.
        start_inputs: Inputs of the first step.
        end_fn: `end_fn(sample_ids)` -> bool [batch], True where a sequence ends.
        next_inputs_fn: Makes inputs of sample ids.
    """

    def __init__(
        self,
        sample_fn: Callable[..., Any],
        sample_shape: Any,
        sample_dtype: Any,
        start_inputs: Any,
        end_fn: Callable[..., Any],
        next_inputs_fn: Callable[..., Any] | None = None,
    ):
        self._sample_fn = sample_fn
        self._end_fn = end_fn
        self._sample_shape = tf.TensorShape(sample_shape)
        self._sample_dtype = sample_dtype
        self._next_inputs_fn = next_inputs_fn
        self._start_inputs = tf.convert_to_tensor(start_inputs, name="start_inputs")
        self._batch_size = tf.shape(self._start_inputs)[0]

    @property
    def batch_size(self) -> Any:
        return self._batch_size

    @property
    def sample_ids_shape(self) -> tf.TensorShape:
        return self._sample_shape

    @property
    def sample_ids_dtype(self) -> tf.DType:
        return self._sample_dtype

    def initialize(self, name: str | None = None) -> tuple[Any, Any]:
        return tf.fill([self._batch_size], False), self._start_inputs

    def sample(self, time: Any, outputs: Any, state: Any, name: str | None = None) -> Any:
        return self._sample_fn(outputs)

    def next_inputs(
        self, time: Any, outputs: Any, state: Any, sample_ids: Any, name: str | None = None
    ) -> tuple[Any, Any, Any]:
        made = self._next_inputs_fn(sample_ids) if self._next_inputs_fn else sample_ids
        return self._end_fn(sample_ids), made, state


def _embedding_fn(embedding: Any) -> Callable[..., Any]:
    if callable(embedding):
        return cast(Callable[..., Any], embedding)
    return lambda ids: _v1.nn.embedding_lookup(embedding, ids)


def _categorical(logits: tf.Tensor, seed: int | None) -> tf.Tensor:
    """One class for each row of logits, int32."""
    draws = _v1.multinomial(tf.reshape(logits, [-1, tf.shape(logits)[-1]]), 1, seed, None, tf.int32)
    return tf.reshape(draws, tf.shape(logits)[:-1])


def _where(chosen: tf.Tensor, made: tf.Tensor, given: tf.Tensor) -> tf.Tensor:
    """Rows of `made` where `chosen` [batch] is true, else of `given`."""
    shape = tf.concat([tf.shape(chosen), tf.ones([tf.rank(given) - 1], tf.int32)], 0)
    return tf.where(tf.reshape(chosen, shape), made, given)
