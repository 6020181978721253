"""A block of steps that begin before the one before has ended.

    first half 1  ────────────────┐
    first half 2         ─────────┼───────────┐
    second half 1                 └──         │
    first half 3                     ─────────┼─────────
    second half 2                             └──

For evaluations: small batches do not fill the cores of a CPU, two at a time do it better. Metrics
count batch after batch, as ever, so that results are the same to the bit.

No more than two: an iteration of TensorFlow's loop ends when its ops with effects have run,
whatever else still does. So the second half of a step is part of the next iteration, and what the
first half gives is handed from one to the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.pipeline_cut import Halves, halves_of
from estimator2strategy.engine.plan.prefetch import may_draw_beside
from estimator2strategy.engine.replay import splice as splice_lib
from estimator2strategy.engine.replay.next_batch import Draw, blank, only_draw

_COUNT = tf.TensorSpec([], tf.int32)
# Nothing can stand for them before there is one.
_NOT_HANDED_ON = frozenset({tf.variant, tf.resource})


def block_in_halves(session: Any, tensors: Sequence[str], ops: Sequence[str]) -> Any:
    """The function that runs a block of steps in halves.

    Must be called in the `modern_world`.

    Args:
        session: The ReplaySession that runs it.
        tensors, ops: Names of what a step returns and runs.

    Returns:
        A ConcreteFunction of a number of steps. Its results: how many steps it ran, which are fewer
        if the input ended, and the values of `tensors` at the last one. None if a step has no
        halves.
    """
    cut = _cut(session, tensors, ops)
    if cut is None:
        return None
    draw, halves = cut
    specs = [session.spec(name) for name in halves.handed_on]

    def first_half(drawn: tf.Tensor) -> list[tf.Tensor]:
        values = session.trace(halves.handed_on, halves.waited_for, draw.values(drawn))
        for value, spec in zip(values, specs, strict=True):
            value.set_shape(spec.shape)  # set_shape of the program is not in its nodes
        return values

    def second_half(values: Sequence[tf.Tensor], tensors: Sequence[str] = ()) -> list[tf.Tensor]:
        given = dict(zip(halves.handed_on, values, strict=True))
        return session.trace(tensors, ops, given, ran=halves.waited_for)

    @tf.function(autograph=False, input_signature=[_COUNT])
    def block(steps):
        def more(done, drawn, *values):
            del done, values
            return tf.raw_ops.OptionalHasValue(optional=drawn)

        def one_step(done, drawn, *before):
            tf.cond(done > 0, lambda: second_half(before), list)
            values = first_half(drawn)
            drawn = tf.cond(done + 1 < steps, draw.optional, tf.raw_ops.OptionalNone)
            return done + 1, drawn, *values

        drawn = draw.optional()
        done, _, *last = tf.while_loop(
            more,
            one_step,
            [tf.constant(0), drawn, *map(blank, specs)],
            shape_invariants=[_COUNT.shape, drawn.shape, *(s.shape for s in specs)],
        )
        nothing = [blank(session.spec(name)) for name in tensors]
        return done, *tf.cond(done > 0, lambda: second_half(last, tensors), lambda: nothing)

    return block.get_concrete_function()


def _cut(session: Any, tensors: Sequence[str], ops: Sequence[str]) -> tuple[Draw, Halves] | None:
    recorded = session.recorded
    splices = splice_lib.needed(
        session.splices, recorded, {*map(input_node, tensors), *ops}, fed=set()
    )
    if session.state.num_replicas > 1 or any(splice.model for splice in splices):
        return None
    tensors = [*tensors, *(name for splice in splices for name in splice.inputs)]
    elsewhere = {node for splice in splices for node in splice.nodes}
    names = [*map(input_node, tensors), *ops]
    draw = only_draw(session, names)
    if draw is None or not may_draw_beside(recorded, names, draw.node):
        return None
    halves = halves_of(recorded, tensors, ops, draw.node, elsewhere)
    if halves is None or any(
        session.spec(name).dtype in _NOT_HANDED_ON for name in halves.handed_on
    ):
        return None
    return draw, halves
