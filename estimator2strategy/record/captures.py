"""Finds what a function of the host uses of the cores' inside, without being given it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

import tensorflow as tf

from estimator2strategy.errors import RecordingError
from estimator2strategy.record.functions import location, user_line


class Capture(NamedTuple):
    """A use of a core's tensor outside of the core.

    Attributes:
        tensor: The tensor (or op, of a control dependency) that depends on a core's batch.
        user: The op of the host that uses it; None: it is itself what the function returned.
    """

    tensor: tf.Tensor | tf.Operation
    user: tf.Operation | None


def first_capture(
    graph: tf.Graph,
    feeds: Iterable[tf.Tensor],
    since: int,
    results: Collection[tf.Tensor | tf.Operation] | None = None,
) -> Capture | None:
    """The first op made for the host that depends on one core's part of the batch.

    Args:
        feeds: The placeholders for that part.
        since: How many ops there were when the function of the host was called.
        results: What the function returned; ops that these do not need may depend on anything.
            None: no op may.
    """
    inside = {tensor.op for tensor in feeds}
    needed = None if results is None else _behind(results)
    for number, op in enumerate(graph.get_operations()):
        sources = [tensor for tensor in op.inputs if tensor.op in inside]
        used = [*sources, *(source for source in op.control_inputs if source in inside)]
        if not used:
            continue
        inside.add(op)
        if number >= since and (needed is None or op in needed):
            return Capture(used[0], op)
    returned = [result for result in results or () if _op(result) in inside]
    return Capture(returned[0], None) if returned else None


def refuse_captures(
    function: Callable,
    name: str,
    graph: tf.Graph,
    feeds: Collection[tf.Tensor],
    since: int,
    results: Collection[tf.Tensor | tf.Operation],
) -> None:
    """Raises where what `function` returned needs a core's tensor that it was not given.

    On a TPU the host cannot see such a tensor; here it would be the first core's only.

    Args:
        function: The user's function, called on the host.
        name: What the contract calls it, such as 'metric_fn'.
        feeds, since, results: As for `first_capture`.

    Raises:
        RecordingError: Naming the tensor, and the user's lines that made and used it.
    """
    capture = first_capture(graph, feeds, since, results)
    if capture is None:
        return
    tensor, user = capture
    where = f" at {user_line(user.traceback)}" if user is not None else ", which returns it"
    made = "It is a part of one core's batch, as input_fn gave it."
    if _op(tensor) not in {feed.op for feed in feeds}:
        made = f"It was made at {user_line(_op(tensor).traceback)}"
    raise RecordingError(
        f'{name} {location(function)} uses the tensor "{tensor.name}" of model_fn without taking '
        f"it as an argument{where}\n"
        f"  {made}\n"
        f"  {name} runs on the host, and sees of the cores' tensors only those it is given, with "
        "the batches of all cores in one.\n"
        f"  Add the tensor to those of the ({name}, tensors) pair, and an argument for it to {name}."
    )


def _behind(results: Iterable[tf.Tensor | tf.Operation]) -> set[tf.Operation]:
    """The ops that `results` need, themselves included."""
    seen: set[tf.Operation] = set()
    frontier = [_op(result) for result in results]
    while frontier:
        op = frontier.pop()
        if op not in seen:
            seen.add(op)
            frontier += [tensor.op for tensor in op.inputs]
            frontier += op.control_inputs
    return seen


def _op(tensor_or_op: tf.Tensor | tf.Operation) -> tf.Operation:
    return tensor_or_op if isinstance(tensor_or_op, tf.Operation) else tensor_or_op.op
