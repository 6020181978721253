"""Decides which ops of a served graph parse, which compute with weights, and which make texts.

    plan = planned(graph, inputs, outputs)
    plan.parts["numbers"].returned          # {"logits": "dense/BiasAdd:0"}

Text is whatever touches strings or tables. Text before the weights, with all that follows it up to
the weights, is `parsing`; text that depends on weights is `texts`; the rest is `numbers`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.errors import SavedModelError

PARSING, NUMBERS, TEXTS = "parsing", "numbers", "texts"
VARIABLES = frozenset(["VarHandleOp", "VariableV2", "Variable"])
_NO_NUMBERS = (tf.string, tf.variant, tf.resource)

Ops = frozenset[tf.Operation]


@dataclasses.dataclass(frozen=True)
class ServedPart:
    """A part of the graph.

    Attributes:
        fed: Name of a tensor -> the name of the input that takes its place.
        returned: Name of an output -> the name of its tensor.
        forbidden: The ops that the part cannot have.
    """

    fed: Mapping[str, str]
    returned: Mapping[str, str]
    forbidden: Ops


def planned(
    graph: tf.Graph, inputs: Mapping[str, str], outputs: Mapping[str, str]
) -> dict[str, ServedPart]:
    """The parts of a served graph; those that return nothing are left out.

    Args:
        graph: Its graph.
        inputs: Name of an input -> the name of its tensor.
        outputs: Likewise.

    Raises:
        SavedModelError: There is nothing to split, or a loop has both strings and weights.
    """
    needed = _needed([graph.get_tensor_by_name(name).op for name in outputs.values()])
    placeholders = frozenset(graph.get_tensor_by_name(name).op for name in inputs.values())
    text = frozenset(op for op in needed if _is_text(op))
    if not text:
        raise SavedModelError(
            "there are no strings, tables or parsers to split off: converters take the model as "
            "it is"
        )
    weighed = _following((op for op in needed if op.type in VARIABLES), needed)
    after = _following(text & weighed, needed)
    before = _following(text, needed) - weighed
    numbers = needed - before - after
    if not numbers & weighed:
        raise SavedModelError("no weight is used by what the signature returns: nothing is left")
    dynamic = weighed | _following(placeholders & needed, needed)
    made = before - placeholders
    # An op that does not depend on the input, such as a table, is made again where it is needed.
    parsed = _crossing(made, numbers) | _crossing(made & dynamic, after)
    computed = _crossing((numbers & dynamic) - placeholders, after)
    _check_crossing(parsed | computed, numbers, needed)
    names = _Names([*inputs, *outputs])
    raw = {tensor: name for name, tensor in inputs.items()}
    fed_to_numbers = raw | {t.name: names.new_for(t) for t in _sorted(parsed)}
    fed_to_texts = fed_to_numbers | {t.name: names.new_for(t) for t in _sorted(computed)}

    def returned(ops: Ops, tensors: Iterable[tf.Tensor]) -> dict[str, str]:
        own = {n: t for n, t in outputs.items() if graph.get_tensor_by_name(t).op in ops}
        return own | {fed_to_texts[tensor.name]: tensor.name for tensor in _sorted(tensors)}

    parts = {
        PARSING: ServedPart(raw, returned(before, parsed), weighed),
        NUMBERS: ServedPart(fed_to_numbers, returned(numbers, computed), before | after),
        TEXTS: ServedPart(fed_to_texts, returned(after, ()), dynamic - after),
    }
    return {name: part for name, part in parts.items() if part.returned}


def _sorted(tensors: Iterable[Any]) -> list[tf.Tensor]:
    return sorted({tensor.deref() for tensor in tensors}, key=lambda tensor: tensor.name)


def _needed(ends: Iterable[tf.Operation]) -> Ops:
    """These ops and all that they compute with."""
    return _reached(ends, lambda op: (tensor.op for tensor in op.inputs))


def _following(starts: Iterable[tf.Operation], within: Ops, until: Sequence[str] = ()) -> Ops:
    """These ops and all that compute with them, up to ops of some types."""

    def users(op: tf.Operation) -> Iterable[tf.Operation]:
        if op.type in until:
            return ()
        return (user for out in op.outputs for user in out.consumers() if user in within)

    return _reached(starts, users)


def _reached(
    starts: Iterable[tf.Operation], nearby: Callable[[tf.Operation], Iterable[tf.Operation]]
) -> Ops:
    ops: set[tf.Operation] = set()
    waiting = list(starts)
    while waiting:
        op = waiting.pop()
        if op not in ops:
            ops.add(op)
            waiting.extend(nearby(op))
    return frozenset(ops)


def _is_text(op: tf.Operation) -> bool:
    tensors = (*op.inputs, *op.outputs)
    return "Table" in op.type or any(tensor.dtype.base_dtype == tf.string for tensor in tensors)


def _crossing(producers: Ops, consumers: Ops) -> frozenset[Any]:
    """References of the tensors that go from ops to others."""
    return frozenset(
        tensor.ref() for op in consumers for tensor in op.inputs if tensor.op in producers
    )


def _check_crossing(crossing: Iterable[Any], numbers: Ops, needed: Ops) -> None:
    """Raises the error of a tensor that cannot go from part to part."""
    loops = _following((op for op in needed if op.type == "Enter"), needed, ["Exit"])
    branches = _following((op for op in needed if op.type == "Switch"), needed, ["Merge", "Exit"])
    for tensor in _sorted(crossing):
        if tensor.op in loops and tensor.op.type != "Exit":
            raise SavedModelError(f"{tensor.name!r} is in a loop that has both strings and weights")
        if tensor.op in branches and tensor.op.type not in ("Merge", "Exit"):
            raise SavedModelError(f"{tensor.name!r} is in a cond that has both strings and weights")
        users = {user.name for user in tensor.consumers() if user in numbers}
        if tensor.dtype.base_dtype in _NO_NUMBERS and users:
            raise SavedModelError(
                f"{sorted(users)[0]!r} computes with weights and with {tensor.name!r}, which is no "
                "number"
            )


class _Names:
    """Short names of tensors: the last part of their op's name, and a number if it is taken."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)

    def new_for(self, tensor: tf.Tensor) -> str:
        """A new name; no other tensor has it."""
        short = re.sub(r"\W", "_", tensor.op.name.rpartition("/")[2])
        number = 0
        while (name := f"{short}_{number}" if number else short) in self._taken:
            number += 1
        self._taken.add(name)
        return name
