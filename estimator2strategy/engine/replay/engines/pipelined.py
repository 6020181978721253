"""A block of steps, each of which starts before the previous one has ended.

    first half 1  ────────────────┐
    first half 2         ─────────┼───────────┐
    second half 1                 └──         │
    first half 3                     ─────────┼─────────
    second half 2                             └──

For evaluations: two small batches at a time fill the processors of a CPU better than one. Metrics
count batch after batch, as ever, so results are the same to the bit.

No more than two steps overlap: an iteration of TensorFlow's loop ends when its ops with effects
have run, even if others still do. So the second half of a step is part of the next iteration, and
the results of the first half are handed from one to the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.pipeline_cut import PipelineCut, may_prefetch, pipeline_cut
from estimator2strategy.engine.replay import splice as splice_lib
from estimator2strategy.engine.replay.engines.step import Engine, Ran, Request, Step, Stopped
from estimator2strategy.engine.replay.next_batch import NextBatch, blank, only_next_batch
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.replay.step_context import StepContext

_COUNT = tf.TensorSpec([], tf.int32)
# Nothing can stand for them before there is one.
_NOT_HANDED_ON = frozenset({tf.variant, tf.resource})


class Pipelined(Engine):
    """Runs steps that start before the previous one has ended. Must be made in the `modern_world`.

    Args:
        replay: The graph and its state.
        request: The fetches to run; without feeds.
        next_batch: Takes the batches.
        cut: Where a step is cut in two.
    """

    def __init__(self, replay: Replay, request: Request, next_batch: NextBatch, cut: PipelineCut):
        self._replay, self._request = replay, request
        self._next_batch, self._cut = next_batch, cut
        self._specs = [replay.spec(name) for name in cut.handed_on]
        self._function = self._traced()
        self.functions = (self._function,)

    def run(self, steps: int, feeds: Sequence[tf.Tensor]) -> Ran:
        del feeds
        count, *results = self._function(tf.constant(steps))
        done = int(count)
        return Ran(done, results, Stopped.COMPLETED if done == steps else Stopped.END_OF_INPUT)

    def _traced(self) -> Any:
        optional = self._next_batch.optional

        @tf.function(autograph=False, input_signature=[_COUNT])
        def block(steps: tf.Tensor) -> tuple[tf.Tensor, ...]:
            def more(done: tf.Tensor, batch: tf.Tensor, *values: tf.Tensor) -> tf.Tensor:
                del done, values
                return tf.raw_ops.OptionalHasValue(optional=batch)

            def one_step(
                done: tf.Tensor, batch: tf.Tensor, *before: tf.Tensor
            ) -> tuple[tf.Tensor, ...]:
                tf.cond(done > 0, lambda: self._second_half(before), list)
                values = self._first_half(batch)
                batch = tf.cond(done + 1 < steps, optional, tf.raw_ops.OptionalNone)
                return done + 1, batch, *values

            first = optional()
            done, _, *last = tf.while_loop(
                more,
                one_step,
                [tf.constant(0), first, *map(blank, self._specs)],
                shape_invariants=[_COUNT.shape, first.shape, *(s.shape for s in self._specs)],
            )
            tensors = self._request.tensors
            nothing = [blank(self._replay.spec(name)) for name in tensors]
            results = tf.cond(done > 0, lambda: self._second_half(last, tensors), lambda: nothing)
            return done, *results

        return block.get_concrete_function()

    def _first_half(self, batch: tf.Tensor) -> list[tf.Tensor]:
        given, cut = self._next_batch.values(batch), self._cut
        values = self._replay.trace(cut.handed_on, cut.waited_for, given, StepContext())
        for value, spec in zip(values, self._specs, strict=True):
            value.set_shape(spec.shape)  # set_shape of the program is not in its nodes
        return values

    def _second_half(
        self, values: Sequence[tf.Tensor], tensors: Sequence[str] = ()
    ) -> list[tf.Tensor]:
        given = dict(zip(self._cut.handed_on, values, strict=True))
        context = StepContext(ran=self._cut.waited_for)
        return self._replay.trace(tensors, self._request.ops, given, context)


def build(
    replay: Replay, step: Step, request: Request, others: Sequence[Engine]
) -> Pipelined | None:
    """Makes the engine of a request; None if its step cannot be cut in two. See `engine_for`."""
    del step, others
    roots = {*map(input_node, request.tensors), *request.ops}
    splices = splice_lib.needed(replay.splices, replay.recorded, roots, fed=set())
    on_replicas = replay.state.num_replicas > 1 or any(splice.model for splice in splices)
    if request.feeds or on_replicas:
        return None
    tensors = [*request.tensors, *(name for splice in splices for name in splice.inputs)]
    names = [*map(input_node, tensors), *request.ops]
    next_batch = only_next_batch(replay, names)
    if next_batch is None or not may_prefetch(replay.recorded, names, next_batch.node):
        return None
    elsewhere = {node for splice in splices for node in splice.nodes}
    cut = pipeline_cut(replay.recorded, tensors, request.ops, next_batch.node, elsewhere)
    if cut is None or any(replay.spec(name).dtype in _NOT_HANDED_ON for name in cut.handed_on):
        return None
    return Pipelined(replay, request, next_batch, cut)
