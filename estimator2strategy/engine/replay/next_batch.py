"""The draw of a batch, apart from the step that the program recorded it in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.graph import element_of


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


def blank(spec: tf.TensorSpec) -> tf.Tensor:
    """Any value of the given dtype that a loop variable of that shape may start from."""
    shape = [] if spec.shape.rank is None else [d or 0 for d in spec.shape.as_list()]
    if spec.dtype == tf.string:
        return tf.constant("", tf.string, shape)  # where empty it would be float32 otherwise
    return tf.zeros(shape, spec.dtype)
