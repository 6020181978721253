"""Several batches in one call, with the values that each of them gave: for predictions.

A call from Python costs more than a small batch does. So some batches are drawn, and one call works
on all of them. As nothing but the draw has effects, what comes before the end of the input, or
before a step that fails, is what it would have been one batch at a time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.replay.next_batch import Draw

# No more batches are drawn after so many seconds: what is there already is waited for.
_DRAWING = 0.02

# A second batch fills the gaps that the first leaves between its kernels: a ResNet predicts twice
# as fast on two processors. More would take memory, and gain nothing there.
_AT_ONCE = 2


class Ahead:
    """Runs the same fetches for batch after batch.

    Must be made, and called, in the `modern_world`.

    Args:
        session: The ReplaySession that replays them.
        tensors: Names of the fetched tensors.
        draw: The node that draws a batch; nothing else behind the tensors may have effects.
    """

    def __init__(self, session: Any, tensors: Sequence[str], draw: str):
        self._session, self._tensors = session, tuple(tensors)
        self._draw = Draw(session, draw)
        self._specs = [session.spec(name) for name in tensors]
        self._function = self._traced()

    def run(self, batches: int) -> tuple[list[list[Any]], Exception | None]:
        """Works on up to `batches` batches, fewer if they are slow in coming.

        Returns:
            The values (numpy) that each batch gave, and the error with which the next one ended,
            which is an OutOfRangeError after the last one.
        """
        drawn, error = self._drawn(batches)
        try:
            values = self._values(drawn)
        except tf.errors.OpError:
            return self._up_to_failure(drawn)
        if len(values) < len(drawn):
            error = tf.errors.OutOfRangeError(None, None, "End of sequence")
        return values, error

    def _drawn(self, batches: int) -> tuple[list[tf.Tensor], Exception | None]:
        drawn: list[tf.Tensor] = []
        until = time.perf_counter() + _DRAWING
        while not drawn or (len(drawn) < batches and time.perf_counter() < until):
            try:
                drawn.append(self._draw.optional())
            except tf.errors.OpError as error:
                return drawn, error
        return drawn, None

    def _up_to_failure(self, drawn: Sequence[tf.Tensor]) -> tuple[list[list[Any]], Exception]:
        values: list[list[Any]] = []
        for optional in drawn:
            try:
                values += self._values([optional])
            except tf.errors.OpError as error:
                return values, error
        raise RuntimeError("The same batches failed together, and not one by one.")

    def _values(self, drawn: Sequence[tf.Tensor]) -> list[list[Any]]:
        if not drawn:
            return []
        count, *lists = self._function(tf.stack(drawn))
        of_tensors = [
            _unstacked(x, s.dtype, int(count)) for x, s in zip(lists, self._specs, strict=True)
        ]
        return list(map(list, zip(*of_tensors, strict=True)))

    def _traced(self) -> Any:
        trace, tensors, specs, draw = self._session.trace, self._tensors, self._specs, self._draw

        @tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.variant)])
        def looped(drawn):
            def one_batch(done, *lists):
                values = trace(tensors, (), draw.values(drawn[done]))
                pushed = [
                    tf.raw_ops.TensorListPushBack(input_handle=to, tensor=value)
                    for to, value in zip(lists, values, strict=True)
                ]
                return done + 1, *pushed

            def more(done, *lists):
                del lists
                left = done < tf.size(drawn)
                return tf.cond(
                    left, lambda: tf.raw_ops.OptionalHasValue(optional=drawn[done]), lambda: left
                )

            lists = [
                tf.raw_ops.EmptyTensorList(
                    element_shape=-1, max_num_elements=-1, element_dtype=spec.dtype
                )
                for spec in specs
            ]
            start = [tf.constant(0), *lists]
            return tf.while_loop(more, one_batch, start, parallel_iterations=_AT_ONCE)

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


def ahead_of(session: Any, tensors: Sequence[str]) -> Ahead | None:
    """How such fetches run for several batches at once; None if they cannot."""
    recorded = session.recorded
    draw = recorded.only_draw(map(input_node, tensors))
    if not draw or not recorded.is_pure(map(input_node, tensors), draw) or recorded.runs_python():
        return None
    return Ahead(session, tensors, draw)
