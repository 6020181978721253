"""Lets a cond of a core use resources of the host, such as a lookup table or a summary writer.

A cond is one op on one device. TensorFlow cannot place a cond whose inputs are both a variable of a
core and a table of the host, but it places the nodes of its branches one by one. So each branch
finds the table by its name, and the cond takes the variable alone:

    If(pred, variable, table)           If(pred, variable)
      then(variable, table)       >       then(variable): table = HashTableV2(shared_name=...)
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from estimator2strategy.engine.plan.edges import input_node

_CONDS = frozenset({"If", "StatelessIf", "Case", "StatelessCase"})

# A cond that is recorded for a TPU is left whole otherwise, all of it on one device.
_NODE_BY_NODE = "_lower_using_switch_merge"


@dataclasses.dataclass(frozen=True)
class Found:
    """The way in which a function finds a resource that no argument gives it.

    Attributes:
        node: The NodeDef that gives the handle: without inputs, on the resource's device.
        output: Name of the op's output.
    """

    node: Any
    output: str


def is_cond(node: Any) -> bool:
    """True if a NodeDef takes one of several branches."""
    return node.op in _CONDS


def find_inside(node: Any, found: Mapping[str, Found], library: Mapping[str, Any]) -> list[Any]:
    """Makes the branches of a cond find resources that it was given.

    Args:
        node: The cond's NodeDef; changed in place.
        found: The resources, by the edges that bring them.
        library: All functions, by name.

    Returns:
        The functions that it calls now and that are new, inner ones first.
    """
    arguments = [edge for edge in node.input if not edge.startswith("^")][1:]
    places = {place: found[edge] for place, edge in enumerate(arguments) if edge in found}
    if not places:
        return []
    node.input[:] = [edge for edge in node.input if edge not in found]
    node.attr[_NODE_BY_NODE].b = True
    types = node.attr["Tin"].list.type
    types[:] = _without(types, places)
    made: list[Any] = []
    for attr in node.attr.values():
        for branch in (attr.func, *attr.list.func):
            if branch.name in library:
                made += _finding(library[branch.name], places, library)
                branch.name = made[-1].signature.name
    return made


def keep_order(nodes: Iterable[Any], unseen: Mapping[str, Collection[str]]) -> None:
    """Makes conds that find a resource wait for the other users of it, and the reverse.

    Ops that get the resource's handle as an input are in order without that.

    Args:
        nodes: The nodes in the order in which they are to run; changed in place.
        unseen: The resources that conds find, by the names of the conds.
    """
    resources = {resource for found in unseen.values() for resource in found}
    if not resources:
        return
    last: dict[str, str] = {}
    for node in nodes:
        given = resources.intersection(map(input_node, node.input))
        for resource in sorted(given.union(unseen.get(node.name, ()))):
            before = last.get(resource)
            if before and unseen.keys() & {before, node.name}:
                node.input.append(f"^{before}")
            last[resource] = node.name


def _finding(function: Any, places: Mapping[int, Found], library: Mapping[str, Any]) -> list[Any]:
    """`function` without the arguments at `places`, after the functions that it calls now."""
    copy = type(function)()
    copy.CopyFrom(function)
    arguments = copy.signature.input_arg
    resources = {arguments[place].name: resource for place, resource in places.items()}
    inner = [
        made
        for node in copy.node_def
        if is_cond(node)
        for made in find_inside(node, resources, library)
    ]
    kept = _without(arguments, places)
    attributes = {
        new: function.arg_attr[old]
        for new, old in enumerate(_without(range(len(arguments)), places))
        if old in function.arg_attr
    }
    del arguments[:]
    arguments.extend(kept)
    copy.arg_attr.clear()
    for place, attribute in attributes.items():
        copy.arg_attr[place].CopyFrom(attribute)
    copy.resource_arg_unique_id.clear()
    edges = {name: f"{name}:{resource.output}:0" for name, resource in resources.items()}
    for node in copy.node_def:
        node.input[:] = [edges.get(edge, edge) for edge in node.input]
    for result, edge in function.ret.items():
        copy.ret[result] = edges.get(edge, edge)
    for name, resource in resources.items():  # a node in the argument's place, under its name
        node = copy.node_def.add()
        node.CopyFrom(resource.node)
        node.name = name
    digest = hashlib.blake2b(copy.SerializeToString(deterministic=True), digest_size=8)
    copy.signature.name += f"_{digest.hexdigest()}"
    return [*inner, copy]


def _without(items: Iterable[Any], places: Mapping[int, Any]) -> list[Any]:
    return [item for place, item in enumerate(items) if place not in places]
