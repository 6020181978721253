"""Finds tensors of a replica that a function of the host uses without being given them."""

from __future__ import annotations

import contextlib
import functools
import traceback
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple, TypeAlias

import tensorflow as tf

from estimator2strategy.engine.user_code import location, user_line
from estimator2strategy.errors import RecordingError

Node: TypeAlias = "tf.Tensor | tf.Operation"


class Capture(NamedTuple):
    """A use, on the host, of a tensor that depends on one replica's part of the batch.

    Attributes:
        captured: A tensor that is used, or the op of a control dependency.
        user: The op that uses it; None where no op does, yet.
    """

    captured: Node
    user: tf.Operation | None

    def error(
        self,
        function: Callable[..., Any],
        name: str,
        feeds: Collection[tf.Tensor],
        caused: Exception | None = None,
    ) -> RecordingError:
        """The error that tells the user about the capture.

        Args:
            function: The user's function that captured it.
            name: Its name in the contract, such as 'metric_fn'.
            feeds: The placeholders for one replica's part of the batch.
            caused: The exception that ended the function, if one did.
        """
        if _op(self.captured) in {feed.op for feed in feeds}:
            made = "a part of the features and labels that model_fn was called with"
        else:
            made = f"made at {user_line(_op(self.captured).traceback)}"
        if self.user is not None:
            made += f"\n  and used at {user_line(self.user.traceback)}"
        elif caused is not None:
            frames = traceback.extract_tb(caused.__traceback__)
            made += f"\n  and used at {user_line(frames)}"
        return RecordingError(
            f"{name} {location(function)} captures a tensor of model_fn instead of taking it as an "
            f'argument: "{self.captured.name}", {made}\n'
            f"  {name} runs on the host, which sees of the cores' tensors only those that it is "
            "given: there the batches of all cores are one.\n"
            f"  Add the tensor to those of the pair ({name}, tensors), and an argument to {name}."
        )


def first_capture(
    graph: tf.Graph,
    feeds: Iterable[tf.Tensor],
    since: int,
    results: Collection[Node] | None = None,
) -> Capture | None:
    """The first use, by ops of the host, of a tensor that depends on one replica's batch.

    Args:
        feeds: The placeholders for that part.
        since: The number of ops in the graph before the host's were made.
        results: The tensors that the host needs; its other ops may use anything. None: none may.
    """
    inside = _inside(graph, feeds)
    needed = None if results is None else _behind(results)
    for op in graph.get_operations()[since:]:
        if op in inside and (needed is None or op in needed):
            return Capture(next(source for source in _sources(op) if _op(source) in inside), op)
    for result in results or ():
        if _op(result) in inside:
            return Capture(result, None)
    return None


def capture_in_closure(
    graph: tf.Graph, feeds: Iterable[tf.Tensor], function: Callable[..., Any]
) -> Capture | None:
    """The first of a function's free variables that depends on one replica's part of the batch.

    Args:
        feeds: The placeholders for that part.
    """
    inside = _inside(graph, feeds)
    while isinstance(function, functools.partial):
        function = function.func
    for cell in getattr(function, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # a variable that has no value yet
            for value in tf.nest.flatten(cell.cell_contents):
                if isinstance(value, tf.Tensor | tf.Operation) and _op(value) in inside:
                    return Capture(value, None)
    return None


def _inside(graph: tf.Graph, feeds: Iterable[tf.Tensor]) -> set[tf.Operation]:
    """The ops that depend on the placeholders `feeds`, themselves included."""
    inside = {tensor.op for tensor in feeds}
    for op in graph.get_operations():  # creation order: what an op needs comes before it
        if any(_op(source) in inside for source in _sources(op)):
            inside.add(op)
    return inside


def _sources(op: tf.Operation) -> tuple[Node, ...]:
    return (*op.inputs, *op.control_inputs)


def _behind(results: Iterable[Node]) -> set[tf.Operation]:
    """The ops that `results` need, themselves included."""
    seen: set[tf.Operation] = set()
    frontier = [_op(result) for result in results]
    while frontier:
        op = frontier.pop()
        if op not in seen:
            seen.add(op)
            frontier += map(_op, _sources(op))
    return seen


def _op(node: Node) -> tf.Operation:
    return node if isinstance(node, tf.Operation) else node.op
