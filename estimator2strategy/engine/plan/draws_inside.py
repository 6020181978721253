"""Lets seeded random ops in branches and loops draw from streams that the program is given.

    If(pred, x)                          If(pred, x, streams)
      then(x): RandomUniform(...)    >     then(x, streams): draw(..., streams)

A kernel keeps the place of its op in a stream. A program that XLA compiles has no kernels, so the
places of the ops in a node's functions are a variable, whose handle goes along to them. Each call
of a function has places of its own, as each has kernels of its own where a Session inlines calls.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from estimator2strategy.engine.plan import random_ops
from estimator2strategy.engine.plan.graph import NodeDef


class _Form(NamedTuple):
    """The way in which an op calls functions.

    Attributes:
        op: The op of the same form that may have effects.
        types: The attribute with the types of the functions' arguments.
        functions: The attributes that name the functions.
        loop: The attribute of the function whose results are its next arguments.
    """

    op: str
    types: str
    functions: tuple[str, ...]
    loop: str = ""


_FORMS = {
    prefix + form.op.removeprefix("Stateful"): form
    for form in (
        _Form("If", "Tin", ("then_branch", "else_branch")),
        _Form("Case", "Tin", ("branches",)),
        _Form("While", "T", ("cond", "body"), loop="body"),
    )
    for prefix in ("", "Stateless")
} | {
    name: _Form("StatefulPartitionedCall", "Tin", ("f",))
    for name in ("PartitionedCall", "StatefulPartitionedCall")
}
_HANDLE = "random_streams"

# Makes the OpDef of the function to call in place of a node, of its inputs and the variable's
# handle; the numbers are that of the op's row in the variable, and that of all rows.
Draw = Callable[[NodeDef, int, int], Any]


@dataclasses.dataclass(frozen=True)
class Given:
    """The node's functions that draw from streams.

    Attributes:
        edge: The edge on which the node expects the handle of the variable.
        seeds: Name of each op -> its `seed2`, in the order of the variable's rows.
        functions: The functions that are new.
    """

    edge: str
    seeds: dict[str, int]
    functions: list[Any]


def ops_inside(node: NodeDef, library: Mapping[str, Any]) -> dict[str, NodeDef]:
    """The random ops, with a seed or without, to whose functions a variable can be given.

    Args:
        node: May call functions.
        library: All functions, by name.

    Returns:
        The ops by a name that says the way to them, which is the same in each process.
    """
    return {
        name: inner
        for name, _, inner in _inside(node, library, node.name)
        if random_ops.has_draw(inner)
    }


def out_of_reach(
    node: NodeDef, library: Mapping[str, Any], functions: Iterable[str]
) -> list[NodeDef]:
    """The other random ops, of the node and inside, which draw from generators of their kernels.

    Args:
        node, library: As for `ops_inside`.
        functions: The names of all functions behind the node.
    """
    reached = {function for _, function, _ in _inside(node, library, node.name)}
    others = [
        inner
        for name in functions
        for inner in library[name].node_def
        if not (name in reached and random_ops.has_draw(inner))
    ]
    if not random_ops.has_draw(node):
        others.append(node)
    return list(filter(random_ops.is_stateful, others))


def _inside(
    node: NodeDef, library: Mapping[str, Any], path: str, outer: frozenset[str] = frozenset()
) -> Iterator[tuple[str, str, NodeDef]]:
    """(the way to a node, the function that it is in, it), for all functions of known forms."""
    for place, called in _called(node):
        if called.name not in library or called.name in outer:
            continue
        for inner in library[called.name].node_def:
            name = f"{path}:{place}:{inner.name}"
            yield name, called.name, inner
            yield from _inside(inner, library, name, outer | {called.name})


def _called(node: NodeDef) -> Iterator[tuple[str, Any]]:
    """The functions that a node of a known form calls, each with its place among them."""
    form = _FORMS.get(node.op)
    for name in form.functions if form else ():
        attr = node.attr[name]
        if attr.HasField("func"):
            yield name, attr.func
        yield from ((f"{name}_{i}", called) for i, called in enumerate(attr.list.func))


def give_streams(node: NodeDef, library: Mapping[str, Any], draw: Draw) -> Given | None:
    """Makes the seeded random ops in a node's functions draw from a variable.

    Args:
        node: Changed in place.
        library: All functions, by name.
        draw: Gives the function that draws for an op.

    Returns:
        None if there are no such ops.
    """
    seeded = {
        name: op for name, op in ops_inside(node, library).items() if random_ops.is_drawn_in_xla(op)
    }
    if not seeded:
        return None
    rows = {name: number for number, name in enumerate(seeded)}
    made: list[Any] = []

    def change(node: NodeDef, path: str, handle: str) -> None:
        form = _FORMS[node.op]
        node.op = form.op
        data = [edge for edge in node.input if not edge.startswith("^")]
        node.input.insert(len(data), handle)
        node.attr[form.types].list.type.append(tf.resource.as_datatype_enum)
        if form.loop and node.attr["output_shapes"].list.shape:
            node.attr["output_shapes"].list.shape.add()
        for place, called in _called(node):
            copy = _with_handle(library[called.name], returned=place == form.loop)
            for inner in copy.node_def:
                within(inner, f"{path}:{place}:{inner.name}")
            _name_by_content(copy)
            made.append(copy)
            called.name = copy.signature.name

    def within(node: NodeDef, path: str) -> None:
        if path in rows:
            function = draw(node, rows[path], len(rows))
            random_ops.call(node, function, _HANDLE)
        elif any(name.startswith(f"{path}:") for name in rows):
            change(node, path, _HANDLE)

    edge = f"random/streams/{node.name}"
    change(node, node.name, edge)
    return Given(edge, {name: op.attr["seed2"].i for name, op in seeded.items()}, made)


def _with_handle(function: Any, returned: bool) -> Any:
    """A copy of a function with one argument more, which it may return."""
    copy = type(function)()
    copy.CopyFrom(function)
    copy.signature.input_arg.add(name=_HANDLE, type=tf.resource.as_datatype_enum)
    copy.signature.is_stateful = True
    if returned:
        copy.signature.output_arg.add(name=_HANDLE, type=tf.resource.as_datatype_enum)
        copy.ret[_HANDLE] = _HANDLE
    return copy


def _name_by_content(function: Any) -> None:
    digest = hashlib.blake2b(function.SerializeToString(deterministic=True), digest_size=8)
    function.signature.name += f"_{digest.hexdigest()}"
