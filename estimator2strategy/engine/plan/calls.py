"""Calls of functions: those of TF 1's `Defun`, and those of today.

A node that calls a function of `Defun` has the function's name as its op. It can be imported only
where that function is known. Calls that TensorFlow 2 makes are a `PartitionedCall`, which names the
function in an attribute. Inside functions no calls are left: `inlining.py` replaces them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tensorflow.core.framework import graph_pb2

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.plan.custom_gradients import calls_own, gradient_of
from estimator2strategy.engine.plan.inlining import inline_calls, rename_edges


def as_partitioned_calls(graph_def: graph_pb2.GraphDef) -> None:
    """Makes each call by the name of a function a `PartitionedCall`, in functions too.

    Functions that are no longer what they were get other names: this process knows the old ones.
    """
    library = _library(graph_def)
    if not library:
        return
    gradients = {g.function_name: g.gradient_func for g in graph_def.library.gradient}
    for node in graph_def.node:
        _take_own_gradient(node, gradients)
    for function in library.values():
        own = {node.name: _take_own_gradient(node, gradients) for node in function.node_def}
        renamed = {
            f"{name}:output:{place}": f"{name}:{result.name}:0"
            for name, gradient in own.items()
            if gradient
            for place, result in enumerate(library[gradient].signature.output_arg)
        }
        _rename_edges(function, renamed)
    # A function that has a gradient of its own is not what its nodes are, once differentiated.
    inlined = inline_calls(library, kept=gradients)
    for node in graph_def.node:
        _call(node, library)
    changed = {n for n, f in library.items() if _calls_in(f, library) or n in inlined}
    _rename(graph_def, changed, "partitioned")
    if gradients:
        now = {name: function.signature.name for name, function in library.items()}
        _differentiate(graph_def, {now[f]: now[own] for f, own in gradients.items()})


def _library(graph_def: graph_pb2.GraphDef) -> dict[str, Any]:
    return {function.signature.name: function for function in graph_def.library.function}


def _rename(graph_def: graph_pb2.GraphDef, names: Iterable[str], suffix: str) -> None:
    """Gives functions that are no longer what they were, and all that call them, other names."""
    library = _library(graph_def)
    changed = {name: library[name] for name in names}
    while callers := [n for n, f in library.items() if n not in changed and _refers(f, changed)]:
        changed.update((name, library[name]) for name in callers)
    for name, function in changed.items():
        function.signature.name = f"{name}_{suffix}"
    for nodes in (graph_def.node, *(function.node_def for function in changed.values())):
        for node in nodes:
            for called in _called(node):
                if called.name in changed:
                    called.name = changed[called.name].signature.name


def _differentiate(graph_def: graph_pb2.GraphDef, own: Mapping[str, str]) -> None:
    """Makes gradients of functions that call those of `own` calls of functions, too.

    Args:
        own: Function -> function that is its gradient.
    """
    library = _library(graph_def)
    bodies = {"": graph_def.node} | {name: f.node_def for name, f in library.items()}
    waiting = [
        (name, node, function)
        for name, nodes in bodies.items()
        for node in nodes
        if node.op == "SymbolicGradient"
        and (function := library.get(node.attr["f"].func.name))
        and calls_own(function, own)
    ]
    if not waiting:
        return
    for function in library.values():
        _tf_private.register_function(function)
    called = {function.signature.name: function for _, _, function in waiting}
    made = {name: gradient_of(function, own) for name, function in called.items()}
    for _, node, function in waiting:
        gradient = made[function.signature.name]
        node.op = gradient.signature.name
        node.attr.clear()
        _call(node, {node.op: gradient})
    graph_def.library.function.extend(made.values())
    _rename(graph_def, {name for name, _, _ in waiting if name}, "differentiated")


def _take_own_gradient(node: Any, gradients: Mapping[str, str]) -> str | None:
    """Makes the gradient of a function with a `grad_func` a call of that; returns its name.

    The runtime knows functions, and not which is the gradient of which.
    """
    own = gradients.get(node.attr["f"].func.name) if node.op == "SymbolicGradient" else None
    if own:
        node.op = own
        node.attr.clear()
    return own


def _calls_in(function: Any, library: Mapping[str, Any]) -> bool:
    """Changes the calls in a function; returns True if there are any."""
    renamed: dict[str, str] = {}
    for node in function.node_def:
        if node.op in library:
            outputs = library[node.op].signature.output_arg
            for place, output in enumerate(outputs):
                renamed[f"{node.name}:{output.name}:0"] = f"{node.name}:output:{place}"
            _call(node, library)
    _rename_edges(function, renamed)
    return bool(renamed)


def _refers(function: Any, names: Mapping[str, Any]) -> bool:
    return any(called.name in names for node in function.node_def for called in _called(node))


def _called(node: Any) -> Iterator[Any]:
    for attr in node.attr.values():
        if attr.HasField("func"):
            yield attr.func
        yield from attr.list.func


def _call(node: Any, library: Mapping[str, Any]) -> None:
    """Makes a node whose op is a function one that names it."""
    name = node.op
    if name not in library:
        return
    signature = library[name].signature
    node.op = "StatefulPartitionedCall" if signature.is_stateful else "PartitionedCall"
    node.attr["f"].func.name = name
    node.attr["Tin"].list.type.extend(argument.type for argument in signature.input_arg)
    node.attr["Tout"].list.type.extend(argument.type for argument in signature.output_arg)


def _rename_edges(function: Any, renamed: Mapping[str, str]) -> None:
    rename_edges(function, lambda edge: renamed.get(edge, edge))
