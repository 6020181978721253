"""Replaces the calls inside functions of a library by the bodies of the called functions.

TensorFlow differentiates a function of `Defun` while it runs (`SymbolicGradient`). It knows the
gradients of the ops in such a function, but no gradient of a `PartitionedCall`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any


def inline_calls(library: Mapping[str, Any], kept: Collection[str] = ()) -> set[str]:
    """Puts functions in the places where other functions of `library` call them by name.

    Args:
        library: All functions, by name; changed in place.
        kept: Functions whose calls stay as they are.

    Returns:
        The names of the functions that are no longer what they were.
    """
    changed: set[str] = set()
    done: set[str] = set()

    def visit(name: str) -> None:
        if name in done:
            return
        done.add(name)
        function = library[name]
        calls = [n for n in function.node_def if n.op in library and n.op not in kept]
        for call in calls:
            visit(call.op)
            _inline(function, call, library[call.op])
            changed.add(name)

    for name in library:
        visit(name)
    return changed


def rename_edges(function: Any, edge: Callable[[str], str]) -> None:
    """Replaces each edge in `function`, to a node or to a result, by what `edge` gives for it."""
    for node in function.node_def:
        node.input[:] = [edge(present) for present in node.input]
    _rename_results(function, edge)


def _rename_results(function: Any, edge: Callable[[str], str]) -> None:
    # From a copy: a map of protobuf that is changed while it is iterated over leaves entries out.
    for result, present in list(function.ret.items()):
        function.ret[result] = edge(present)


def _inline(function: Any, call: Any, callee: Any) -> None:
    """Puts the nodes of `callee` in the place of the node `call` of `function`."""
    data = [edge for edge in call.input if not edge.startswith("^")]
    waits = [edge for edge in call.input if edge.startswith("^")]
    arguments = dict(zip((a.name for a in callee.signature.input_arg), data, strict=True))
    name = call.name

    def inside(edge: str) -> str:
        """An edge of the callee, as one of the function."""
        if edge.startswith("^"):
            node = edge[1:]
            return f"^{arguments[node].split(':')[0]}" if node in arguments else f"^{name}/{node}"
        return arguments.get(edge) or f"{name}/{edge}"

    results = {f"{name}:{result}:0": inside(edge) for result, edge in callee.ret.items()}
    nodes = [f"^{name}/{node.name}" for node in callee.node_def]
    function.node_def.remove(call)
    for node in function.node_def:
        _redirect(node, lambda edge: nodes if edge == f"^{name}" else [results.get(edge, edge)])
    _rename_results(function, lambda edge: results.get(edge, edge))
    for original in callee.node_def:
        node = function.node_def.add()
        node.CopyFrom(original)
        node.name = f"{name}/{original.name}"
        _redirect(node, lambda edge: [inside(edge)])
        node.input.extend(wait for wait in waits if wait not in node.input)


def _redirect(node: Any, edges: Callable[[str], list[str]]) -> None:
    """Replaces each edge into `node` by those that `edges` gives for it."""
    controls = dict.fromkeys(
        new for edge in node.input if edge.startswith("^") for new in edges(edge)
    )
    node.input[:] = [
        *(new for edge in node.input if not edge.startswith("^") for new in edges(edge)),
        *controls,
    ]
