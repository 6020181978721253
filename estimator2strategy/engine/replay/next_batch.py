"""The next batch of a recorded input, taken apart from the step that the program recorded it in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.graph import element_of
from estimator2strategy.engine.replay.replay import Replay


class NextBatch:
    """Takes the batches that the steps of a recorded graph would take.

    Args:
        replay: The graph and its state.
        node: The one node (an IteratorGetNext) that takes a batch.

    Attributes:
        node: As above.
        outputs: Names of the recorded tensors that make up a batch.
        element: Their types and shapes, as attributes of ops.
    """

    def __init__(self, replay: Replay, node: str):
        recorded = replay.recorded
        self._state, self.node = replay.state, node
        self._iterator = input_node(recorded[node].input[0])
        self.element = element_of(recorded[node])
        self.outputs = tuple(f"{node}:{i}" for i in range(len(self.element["output_types"])))

    def optional(self) -> tf.Tensor:
        """The next batch, as a variant that is empty where the input has ended."""
        iterator = self._state.handle(self._iterator)
        if not tf.executing_eagerly():
            iterator = _tf_private.capture(iterator)
        return tf.raw_ops.IteratorGetNextAsOptional(iterator=iterator, **self.element)

    def values(self, optional: tf.Tensor) -> dict[str, tf.Tensor]:
        """The batch in `optional`, by the names in `outputs`."""
        values = tf.raw_ops.OptionalGetValue(optional=optional, **self.element)
        return dict(zip(self.outputs, values, strict=True))

    def timed(self) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        """(the next batch, by the names in `outputs`; seconds that it took).

        Raises:
            tf.errors.OutOfRangeError: As it runs, if the input has ended.
        """
        iterator = _tf_private.capture(self._state.handle(self._iterator))
        began = tf.timestamp()
        with tf.control_dependencies([began]):
            values = tf.raw_ops.IteratorGetNext(iterator=iterator, **self.element)
        with tf.control_dependencies(values):
            seconds = tf.timestamp() - began
        return dict(zip(self.outputs, values, strict=True)), seconds


class NextBatches:
    """Takes the batches that steps take in several places: each core's own, say.

    As of NextBatch; there is a next one if there is one in every place.

    Args:
        taken: The batches of one step, in the order in which they are taken.

    Attributes:
        nodes: The nodes that take them.
    """

    def __init__(self, taken: Sequence[NextBatch]):
        self._taken = taken
        self.nodes = [next_batch.node for next_batch in taken]
        self.outputs = tuple(name for next_batch in taken for name in next_batch.outputs)
        elements = [next_batch.element for next_batch in taken]
        self._element = {
            key: [part for element in elements for part in element[key]]
            for key in ("output_types", "output_shapes")
        }

    def optional(self) -> tf.Tensor:
        """The batches of all places, as a variant that is empty where one input has ended."""
        optionals = [next_batch.optional() for next_batch in self._taken]
        if len(optionals) == 1:
            return optionals[0]
        there = [tf.raw_ops.OptionalHasValue(optional=optional) for optional in optionals]

        def together() -> tf.Tensor:
            pairs = zip(self._taken, optionals, strict=True)
            values = [v for taken, optional in pairs for v in taken.values(optional).values()]
            return tf.raw_ops.OptionalFromValue(components=values)

        return tf.cond(tf.reduce_all(there), together, tf.raw_ops.OptionalNone)

    def values(self, optional: tf.Tensor) -> dict[str, tf.Tensor]:
        """The batches in `optional`, by the names in `outputs`."""
        values = tf.raw_ops.OptionalGetValue(optional=optional, **self._element)
        return dict(zip(self.outputs, values, strict=True))


def next_batches(replay: Replay, names: Iterable[str]) -> NextBatches | None:
    """The NextBatches of the nodes `names` and those behind them; None if one cannot be told."""
    nodes = replay.recorded.next_batches(names)
    return NextBatches([NextBatch(replay, node) for node in nodes]) if nodes else None


def only_next_batch(replay: Replay, names: Iterable[str]) -> NextBatch | None:
    """The NextBatch of the nodes `names` and those behind them; None unless one node takes one."""
    node = replay.recorded.only_next_batch(names)
    return NextBatch(replay, node) if node else None


def blank(spec: tf.TensorSpec) -> tf.Tensor:
    """A value from which a loop variable of that shape and dtype may start."""
    shape = [] if spec.shape.rank is None else [d or 0 for d in spec.shape.as_list()]
    if spec.dtype == tf.string:
        return tf.constant("", tf.string, shape)  # where empty it would be float32 otherwise
    return tf.zeros(shape, spec.dtype)


def of_each_batch(
    optionals: tf.Tensor,
    values_of: Callable[[tf.Tensor], Sequence[tf.Tensor]],
    types: Sequence[tf.DType],
    at_once: int = 10,
) -> list[tf.Tensor]:
    """Traces a loop over batches, which ends before the first one that is empty.

    Args:
        optionals: Batches, variant [n], as `NextBatch.optional` gives them.
        values_of: Makes the values of an optional batch.
        types: The types of the values.
        at_once: The most batches whose values are computed side by side.

    Returns:
        The number of batches, int32 scalar; and for each value a tensor list of all batches'.
    """

    def one(done: tf.Tensor, *lists: tf.Tensor) -> tuple[tf.Tensor, ...]:
        pushed = [
            tf.raw_ops.TensorListPushBack(input_handle=to, tensor=value)
            for to, value in zip(lists, values_of(optionals[done]), strict=True)
        ]
        return done + 1, *pushed

    def more(done: tf.Tensor, *lists: tf.Tensor) -> tf.Tensor:
        del lists
        left = done < tf.size(optionals)
        return tf.cond(
            left, lambda: tf.raw_ops.OptionalHasValue(optional=optionals[done]), lambda: left
        )

    lists = [
        tf.raw_ops.EmptyTensorList(element_shape=-1, max_num_elements=-1, element_dtype=dtype)
        for dtype in types
    ]
    return list(tf.while_loop(more, one, [tf.constant(0), *lists], parallel_iterations=at_once))
