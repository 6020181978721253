"""Finds what a function of the host uses of the cores' inside, without being given it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple, TypeAlias

import tensorflow as tf

from estimator2strategy.errors import RecordingError
from estimator2strategy.record.functions import location, user_line

Node: TypeAlias = "tf.Tensor | tf.Operation"


class Capture(NamedTuple):
    """A use, on the host, of what depends on one core's part of the batch.

    Attributes:
        captured: What is used: a tensor, or the op of a control dependency.
        user: The op that uses it; `captured`'s own where the function just returned it.
    """

    captured: Node
    user: tf.Operation

    def error(self, function: Callable, name: str, feeds: Collection[tf.Tensor]) -> RecordingError:
        """What to tell the user.

        Args:
            function: The user's function that captured it.
            name: What the contract calls it, such as 'metric_fn'.
            feeds: The placeholders for one core's part of the batch.
        """
        made = f"made at {user_line(_op(self.captured).traceback)}"
        if _op(self.captured) in {feed.op for feed in feeds}:
            made = "a part of the features and labels that model_fn was called with"
        elif self.user is _op(self.captured):
            made += f", which {name} returns"
        else:
            made += f"\n  and used at {user_line(self.user.traceback)}"
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
    """The first use, by ops made for the host, of what depends on one core's part of the batch.

    Args:
        feeds: The placeholders for that part.
        since: How many ops the graph had before the host's were made.
        results: What the host needs; other ops of its may depend on anything. None: none may.
    """
    inside = {tensor.op for tensor in feeds}
    needed = None if results is None else _behind(results)
    for number, op in enumerate(graph.get_operations()):
        used = [source for source in (*op.inputs, *op.control_inputs) if _op(source) in inside]
        if used:
            inside.add(op)
            if number >= since and (needed is None or op in needed):
                return Capture(used[0], op)
    for result in results or ():
        if _op(result) in inside:
            return Capture(result, _op(result))
    return None


def _behind(results: Iterable[Node]) -> set[tf.Operation]:
    """The ops that `results` need, themselves included."""
    seen: set[tf.Operation] = set()
    frontier = [_op(result) for result in results]
    while frontier:
        op = frontier.pop()
        if op not in seen:
            seen.add(op)
            frontier += [_op(source) for source in (*op.inputs, *op.control_inputs)]
    return seen


def _op(node: Node) -> tf.Operation:
    return node if isinstance(node, tf.Operation) else node.op
