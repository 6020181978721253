"""A block of steps: one call from Python that runs step after step.

    draw 1 | step 1   | step 2   | step 3
           | draw 2   | draw 3   |

The next batch is drawn while a step runs, where neither can tell. The last step of a block draws
none: between blocks the input stands where the training does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.prefetch import may_draw_beside
from estimator2strategy.engine.replay.compiled import Program
from estimator2strategy.engine.replay.next_batch import Draw, blank, only_draw

Batch: TypeAlias = dict[str, tf.Tensor]
_COUNT = tf.TensorSpec([], tf.int32)


def block_of(
    session: Any,
    tensors: Sequence[str],
    ops: Sequence[str],
    feeds: Sequence[str],
    programs: Sequence[Program],
) -> Any:
    """The function that runs a block.

    Must be called in the `modern_world`.

    Args:
        session: The ReplaySession that runs it.
        tensors, ops: Names of what a step returns and runs.
        feeds: Names of the tensors that are the same at every step.
        programs: What XLA has compiled of a step.

    Returns:
        A ConcreteFunction of a number of steps, and of the feeds. Its results: how many steps it
        ran, which are fewer if the loss became NaN or the input ended; the value of `step.counter`,
        if there is one; and the values of `tensors` at the last step. Where steps draw their
        batches themselves the input ends with an OutOfRangeError instead.
    """
    step = session.step
    specs = [session.spec(name) for name in tensors]
    healthy = tensors.index(step.healthy) if step.healthy in tensors else None
    watched = session.watched_variable(tensors)
    batches = _batches(session, [*map(input_node, tensors), *ops], feeds)

    def keep(values: Sequence[tf.Tensor]) -> None:
        if watched is not None and healthy is not None:
            watched.assign(values[healthy], read_value=False)

    @tf.function(autograph=False, input_signature=[_COUNT, *map(session.spec, feeds)])
    def block(steps, *fed):
        def unfinished(done, drawn, *values):
            more = (done < steps) & batches.there(drawn)
            return more if healthy is None else more & ~is_nan(values[healthy])

        def one_step(done, drawn, *_):
            def run(batch: Batch) -> list[tf.Tensor]:
                given = dict(zip(feeds, fed, strict=True)) | batch
                return session.trace(tensors, ops, given, programs)

            session.step_in_block = done
            values, drawn = batches.step(run, drawn, done + 1 < steps)
            session.step_in_block = None
            for value, spec in zip(values, specs, strict=True):
                value.set_shape(spec.shape)  # set_shape of the program is not in its nodes
            if batches.end_is_an_error:
                keep(values)
            return done + 1, drawn, *values

        first = batches.first()
        done, _, *values = tf.while_loop(
            unfinished,
            one_step,
            [tf.constant(0), first, *map(blank, specs)],
            shape_invariants=[_COUNT.shape, first.shape, *(s.shape for s in specs)],
        )
        if watched is not None and not batches.end_is_an_error:
            tf.cond(done > 0, lambda: keep(values), lambda: None)
        if step.counter:
            values = [session.read(step.counter), *values]
        return done, *values

    return block.get_concrete_function()


def is_nan(loss: tf.Tensor) -> tf.Tensor:
    """Whether a loss is NaN, so that no further step is to run."""
    return tf.reduce_any(tf.math.is_nan(loss))


class _DrawnBySteps:
    """Each step draws its batch as it begins, if it draws any."""

    end_is_an_error = True

    def __init__(self, session: Any, draw: Draw | None):
        self._session, self._draw = session, draw

    def first(self) -> tf.Tensor:
        return tf.constant(0)  # nothing is handed from step to step

    def there(self, drawn: tf.Tensor) -> bool:
        del drawn
        return True

    def step(
        self, run: Callable[[Batch], list[tf.Tensor]], drawn: tf.Tensor, more: tf.Tensor
    ) -> tuple[list[tf.Tensor], tf.Tensor]:
        del more
        batch: Batch = {}
        if self._draw and self._session.measures_input:
            batch, seconds = self._draw.timed()
            self._session.add_waited(seconds)
        return run(batch), drawn


class _DrawnBeside:
    """The next batch is drawn while a step runs."""

    end_is_an_error = False

    def __init__(self, session: Any, draw: Draw):
        self._session, self._draw = session, draw

    def first(self) -> tf.Tensor:
        draw = self._draw.optional
        return self._timed(draw, after=[]) if self._session.measures_input else draw()

    def there(self, drawn: tf.Tensor) -> tf.Tensor:
        return tf.raw_ops.OptionalHasValue(optional=drawn)

    def step(
        self, run: Callable[[Batch], list[tf.Tensor]], drawn: tf.Tensor, more: tf.Tensor
    ) -> tuple[list[tf.Tensor], tf.Tensor]:
        def draw() -> tf.Tensor:
            return tf.cond(more, self._draw.optional, tf.raw_ops.OptionalNone)

        if not self._session.measures_input:
            return run(self._draw.values(drawn)), draw()
        graph = tf.compat.v1.get_default_graph()
        before = len(graph.get_operations())
        values = run(self._draw.values(drawn))
        return values, self._timed(draw, after=_last(graph.get_operations()[before:]))

    def _timed(self, draw: Callable[[], tf.Tensor], after: Sequence[tf.Operation]) -> tf.Tensor:
        """What `draw` gives. The block waits for it when the ops `after` have run."""
        with tf.control_dependencies(after):
            since = tf.timestamp()
        drawn = draw()
        with tf.control_dependencies([drawn]):
            self._session.add_waited(tf.maximum(tf.timestamp() - since, 0))
        return drawn


def _last(ops: Sequence[tf.Operation]) -> list[tf.Operation]:
    """Those whose results nothing takes; the others ran before them.

    An op that something waits for besides is not fused with the next one: a product with its bias,
    a batch norm with its ReLU.
    """
    return [op for op in ops if not any(x.consumers() for x in op.outputs)]


def _batches(
    session: Any, names: Sequence[str], feeds: Sequence[str]
) -> _DrawnBySteps | _DrawnBeside:
    draw = None if session.splices else only_draw(session, names)
    if draw and not feeds and may_draw_beside(session.recorded, names, draw.node):
        return _DrawnBeside(session, draw)
    return _DrawnBySteps(session, draw)
