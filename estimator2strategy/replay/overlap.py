"""Steps side by side: several batches are drawn, then all the work on them is one piece of graph.

An evaluation's step depends on the step before it only through what the metrics have added up. So
the work on two batches can share the cores of a CPU, which one small batch does not fill. The
updates still happen in the order of the batches: automatic control dependencies see to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy import _tf_private
from estimator2strategy.plan.edges import input_node
from estimator2strategy.plan.graph import element_of


class Draw:
    """How the steps of a recorded graph draw their batches.

    Args:
        session: The ReplaySession that runs the steps.
        node: The one node (an IteratorGetNext) that draws.
    """

    def __init__(self, session: Any, node: str):
        self._session, self.node = session, node
        self._iterator = input_node(session.recorded[node].input[0])
        self._element = element_of(session.recorded[node])
        self.outputs = tuple(f"{node}:{i}" for i in range(len(self._element["output_types"])))

    def optional(self) -> tf.Tensor:
        """The next batch, as a variant that is empty where the input has ended."""
        iterator = self._session.state.handle(self._iterator)
        if not tf.executing_eagerly():
            iterator = _tf_private.capture(iterator)
        return tf.raw_ops.IteratorGetNextAsOptional(iterator=iterator, **self._element)

    def values(self, optional: tf.Tensor) -> dict[str, tf.Tensor]:
        """The batch in `optional`, by the names of the outputs of the recorded draw."""
        values = tf.raw_ops.OptionalGetValue(optional=optional, **self._element)
        return dict(zip(self.outputs, values, strict=True))

    def timed(self) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        """(the next batch, by the names of the outputs of the recorded draw, seconds it took).

        Raises:
            tf.errors.OutOfRangeError: As it runs, if the input has ended.
        """
        iterator = _tf_private.capture(self._session.state.handle(self._iterator))
        began = tf.timestamp()
        with tf.control_dependencies([began]):
            values = tf.raw_ops.IteratorGetNext(iterator=iterator, **self._element)
        with tf.control_dependencies(values):
            seconds = tf.timestamp() - began
        return dict(zip(self.outputs, values, strict=True)), seconds


def only_draw(session: Any, names: Iterable[str]) -> Draw | None:
    """How the batch among and behind the nodes `names` is drawn; None if not by just one node."""
    node = session.recorded.only_draw(names)
    return Draw(session, node) if node else None


class Overlap:
    """Runs steps `width` at a time, with the results of running them one after the other.

    Must be made in the `modern_world`.
    """

    def __init__(self, session: Any, draw: Draw, tensors: Sequence[str], ops: Sequence[str], width):
        self._session, self._draw, self._width = session, draw, width
        self._tensors, self._ops = tuple(tensors), tuple(ops)
        self.function = self._traced()

    def run(self, steps: int) -> tuple[int, list[tf.Tensor]]:
        """Runs up to `steps` steps: as many as are a multiple of `width`, fewer if the input ends.

        Returns:
            How many it ran, and the values that the last one gave.
        """
        done, complete, *rest = self.function(tf.constant(steps))
        left, results = rest[: self._width - 1], rest[self._width - 1 :]
        done = int(done)
        for optional in [] if complete else left:
            if tf.raw_ops.OptionalHasValue(optional=optional):
                batch = list(self._draw.values(optional).values())
                results = self._session.once(self._tensors, self._ops, self._draw.outputs)(*batch)
                done += 1
        return done, results

    def _traced(self) -> Any:
        width, draw, trace = self._width, self._draw, self._session.trace
        specs = [self._session.spec(name) for name in self._tensors]

        def side_by_side(optionals):
            for optional in optionals:
                values = trace(self._tensors, self._ops, draw.values(optional))
            for value, spec in zip(values, specs, strict=True):
                value.set_shape(spec.shape)
            return values

        @tf.function(autograph=False, input_signature=[tf.TensorSpec([], tf.int32)])
        def overlapping(steps):
            def more(done, complete, *_):
                return complete & (done + width <= steps)

            def together(done, complete, *rest):
                optionals = [draw.optional() for _ in range(width)]
                complete = tf.raw_ops.OptionalHasValue(optional=optionals[-1])
                values = tf.cond(
                    complete, lambda: side_by_side(optionals), lambda: list(rest[width - 1 :])
                )
                return done + tf.where(complete, width, 0), complete, *optionals[:-1], *values

            none = [tf.raw_ops.OptionalNone() for _ in range(width - 1)]
            start = [tf.constant(0), tf.constant(True), *none, *map(blank, specs)]
            shapes = [v.shape for v in start[: width + 1]] + [s.shape for s in specs]
            return tf.while_loop(more, together, start, shape_invariants=shapes)

        return overlapping.get_concrete_function()


def blank(spec: tf.TensorSpec) -> tf.Tensor:
    """Any value of the given dtype that a loop variable of that shape may start from."""
    shape = [] if spec.shape.rank is None else [d or 0 for d in spec.shape.as_list()]
    if spec.dtype == tf.string:
        return tf.constant("", tf.string, shape)  # where empty it would be float32 otherwise
    return tf.zeros(shape, spec.dtype)
