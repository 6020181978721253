"""Computes several batches in one call, with the values of each: for predictions.

A call from Python costs more than a small batch does. So some batches are taken, and one call works
on all of them. Nothing but taking a batch has effects. So the values before the end of the input,
or before a step that fails, are the same as one batch at a time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.replay.next_batch import NextBatch, of_each_batch
from estimator2strategy.engine.replay.replay import Replay

# No more batches are taken after so many seconds: what is there already is waited for.
_TAKING = 0.02

# A second batch fills the gaps that the first leaves between its kernels: a ResNet predicts twice
# as fast on two processors. More would take memory, and gain nothing there.
_AT_ONCE = 2


class BatchedPredict:
    """Runs the same fetches for batch after batch.

    Must be made, and called, in the `modern_world`.

    Args:
        replay: The graph and its state.
        tensors: Names of the fetched tensors.
        node: The node that takes a batch; nothing else behind the tensors may have effects.
    """

    def __init__(self, replay: Replay, tensors: Sequence[str], node: str):
        self._replay, self._tensors = replay, tuple(tensors)
        self._next_batch = NextBatch(replay, node)
        self._specs = [replay.spec(name) for name in tensors]
        self._function = self._traced()
        self.functions = (self._function,)

    def run(self, batches: int) -> tuple[list[list[Any]], Exception | None]:
        """Works on up to `batches` batches, fewer if they are slow in coming.

        Returns:
            The values (numpy) that each batch gave, and the error with which the next one ended,
            which is an OutOfRangeError after the last one.
        """
        taken, error = self._taken(batches)
        try:
            values = self._values(taken)
        except tf.errors.OpError:
            return self._up_to_failure(taken)
        if len(values) < len(taken):
            error = tf.errors.OutOfRangeError(None, None, "End of sequence")
        return values, error

    def retire(self) -> None:
        """Drops what was kept of the input: nothing is."""

    def _taken(self, batches: int) -> tuple[list[tf.Tensor], Exception | None]:
        taken: list[tf.Tensor] = []
        until = time.perf_counter() + _TAKING
        while not taken or (len(taken) < batches and time.perf_counter() < until):
            try:
                taken.append(self._next_batch.optional())
            except tf.errors.OpError as error:
                return taken, error
        return taken, None

    def _up_to_failure(self, taken: Sequence[tf.Tensor]) -> tuple[list[list[Any]], Exception]:
        values: list[list[Any]] = []
        for optional in taken:
            try:
                values += self._values([optional])
            except tf.errors.OpError as error:
                return values, error
        raise RuntimeError("The same batches failed together, and not one by one.")

    def _values(self, taken: Sequence[tf.Tensor]) -> list[list[Any]]:
        if not taken:
            return []
        count, *lists = self._function(tf.stack(taken))
        of_tensors = [
            _unstacked(x, s.dtype, int(count)) for x, s in zip(lists, self._specs, strict=True)
        ]
        return list(map(list, zip(*of_tensors, strict=True)))

    def _traced(self) -> Any:
        trace, tensors, next_batch = self._replay.trace, self._tensors, self._next_batch
        types = [spec.dtype for spec in self._specs]

        @tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.variant)])
        def looped(taken: tf.Tensor) -> list[tf.Tensor]:
            def values_of(batch: tf.Tensor) -> Sequence[tf.Tensor]:
                return trace(tensors, (), next_batch.values(batch))

            return of_each_batch(taken, values_of, types, _AT_ONCE)

        return looped.get_concrete_function()


def _unstacked(values: tf.Tensor, dtype: tf.DType, count: int) -> list[Any]:
    """The elements of a tensor list as numpy values; cheaper if their shapes are all the same."""
    if not count:
        return []
    try:
        stacked = tf.raw_ops.TensorListStack(
            input_handle=values, element_shape=-1, element_dtype=dtype
        )
        return list(stacked.numpy())
    except tf.errors.InvalidArgumentError:
        return [
            tf.raw_ops.TensorListGetItem(
                input_handle=values, index=i, element_shape=-1, element_dtype=dtype
            ).numpy()
            for i in range(count)
        ]


def batched_predict(replay: Replay, tensors: Sequence[str]) -> Any:
    """The BatchedPredict of such fetches, or what runs as one on JAX; None if they cannot."""
    recorded = replay.recorded
    node = recorded.only_next_batch(map(input_node, tensors))
    if not node or not recorded.is_pure(map(input_node, tensors), node) or recorded.runs_python():
        return None
    if replay.device is None:
        return BatchedPredict(replay, tensors, node)
    from estimator2strategy.engine.replay.engines import on_jax

    return on_jax.build_of_each(replay, tensors)
