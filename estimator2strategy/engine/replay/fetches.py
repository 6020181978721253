"""The fetches and feeds of a run: which tensors they are, and when TF 1.x showed their values."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.plan.shared_memory import SAME_MEMORY


class Fetches:
    """Flattens the fetches and feeds of a session's runs, and rebuilds results.

    Args:
        graph: The graph that they are of.
    """

    def __init__(self, graph: tf.Graph):
        self._graph = graph
        self._handlers: dict[Any, Any] = {}

    def handler(self, fetches: Any, feeds: Sequence[tuple[tf.Tensor, object]] = ()) -> Any:
        """TensorFlow's handler of fetches; kept for those that come with every block."""
        key = None if feeds else key_of(fetches)
        if key in self._handlers:
            return self._handlers[key]
        handler = _tf_private.FetchHandler(self._graph, fetches, {t.ref(): v for t, v in feeds})
        if key is not None:
            self._handlers[key] = handler
        return handler

    def feeds(self, feed_dict: Mapping[Any, Any]) -> list[tuple[tf.Tensor, np.ndarray]]:
        """Feeds by tensor; those of a composite one, or of several in a tuple, become its parts.

        Raises:
            TypeError: A key is no tensor of the graph, or a value is not of its type.
            ValueError: A value has another shape than its tensor, or nobody may feed that.

        Source: `BaseSession._run`, tensorflow/python/client/session.py.
        """
        return [
            self._feed(part, value)
            for key, whole in _tf_private.flatten_dict_items(feed_dict).items()
            for part, value in _tf_private.parts_of_feed(key, whole)
        ]

    def _feed(self, key: Any, value: Any) -> tuple[tf.Tensor, np.ndarray]:
        try:
            tensor = self._graph.as_graph_element(key, allow_operation=False)
        except (KeyError, TypeError, ValueError) as error:
            raise TypeError(f"Cannot interpret feed_dict key as Tensor: {error.args[0]}") from error
        if isinstance(value, tf.Tensor):
            raise TypeError(
                "The value of a feed cannot be a tf.Tensor object. Acceptable feed values include "
                "Python scalars, strings, lists, numpy ndarrays, or TensorHandles. For reference, "
                f"the tensor object was {value} which was passed to the argument `feed_dict` with "
                f"key {key}."
            )
        dtype = tensor.dtype.as_numpy_dtype
        if isinstance(value, int) and not _holds(dtype, value):
            raise TypeError(
                f"Type of feed value {value} with type {type(value)} is not compatible with Tensor "
                f"type {dtype}. Try explicitly setting the type of the feed tensor to a larger "
                "type (e.g. int64)."
            )
        array = np.asarray(value, dtype)
        if not tensor.shape.is_compatible_with(array.shape):
            raise ValueError(
                f"Cannot feed value of shape {array.shape} for Tensor {tensor.name}, which has "
                f"shape {tensor.shape}"
            )
        if not self._graph.is_feedable(tensor):
            raise ValueError(f"Tensor {tensor.name} may not be fed.")
        return tensor, array


def _holds(dtype: Any, value: int) -> bool:
    """True if a tensor of that type can have the value."""
    return dtype is not object and bool(np.array(value).astype(dtype) == value)


def readable(tensor: tf.Tensor) -> tf.Tensor:
    """The tensor to fetch for `tensor`: the read of a variable for its handle, which has no value.

    Programs fetch "global_step:0": with TF1's ref variables that was the value.
    """
    if tensor.op.type != "VarHandleOp":
        return tensor
    reads = (op for op in tensor.consumers() if op.type == "ReadVariableOp")
    return next((op.outputs[0] for op in reads if not op.control_inputs), tensor)


def key_of(fetches: Any) -> Any:
    """A key that is equal for equal fetches; None where they hold more than tensors and ops.

    The graph keeps its tensors, ops and variables, so that their ids are theirs for good.
    """
    kind: Any = type(fetches)
    if _is_element(kind):
        return id(fetches)
    if issubclass(kind, dict):
        parts = [*fetches, *map(key_of, fetches.values())]
    elif kind is list or kind is tuple:
        parts = list(map(key_of, fetches))
    else:
        return None
    return None if None in parts else (kind, *parts)


@functools.cache
def _is_element(kind: type) -> bool:
    return issubclass(kind, (tf.Tensor, tf.Operation, tf.Variable))


def shown_after(
    recorded: RecordedGraph, tensors: Sequence[str], ops: Sequence[str]
) -> Collection[str]:
    """Returns those of `tensors` that must be read when the rest of a run is done.

    A fetched reference variable was its memory, and became an array after the run, with the run's
    own updates of the variable. Tensors such as `v + 0` were computed before these updates.

    Args:
        tensors: Names of the tensors that the run fetches.
        ops: Names of the ops that it runs.
    """
    copies = {t.name for t in recorded.graph.get_collection(_tf_private.GLOBAL_STEP_READ)}
    shared = {name: _reference(recorded, name) for name in tensors if name not in copies}
    if not any(shared.values()):
        return ()
    written = set(recorded.variables_written([*tensors, *ops]))
    return frozenset(name for name, variable in shared.items() if variable in written)


def _reference(recorded: RecordedGraph, tensor: str) -> str | None:
    """The reference variable that shared its memory with `tensor`; None if none did."""
    node = recorded[input_node(tensor)]
    while node.op in SAME_MEMORY:
        first, *others = node.input
        if any(edge[0] == "^" or recorded[input_node(edge)].op != "Const" for edge in others):
            return None
        node = recorded[input_node(first)]
    if not recorded.reads_at_once(node.name):
        return None
    variable = input_node(node.input[0])
    return variable if variable in recorded.references else None
