"""Calls of functions, as nodes of TF 1 have them and as nodes of today do.

A function of `Defun` is called by a node whose op is the function's name. Such a node needs the
function wherever it is imported; a `PartitionedCall` names it in an attribute, as all calls do that
TensorFlow 2 makes. In functions there are no calls left: each is what it calls (`inlining.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tensorflow.core.framework import graph_pb2

from estimator2strategy import _tf_private
from estimator2strategy.plan.inlining import inline_calls
from estimator2strategy.plan.own_gradients import calls_own, gradient_of


def as_partitioned_calls(graph_def: graph_pb2.GraphDef) -> None:
    """Makes each call by the name of a function a `PartitionedCall`, in functions too.

    Functions that are no longer what they were get other names: this process knows the old ones.
    """
    library = {function.signature.name: function for function in graph_def.library.function}
    if not library:
        return
    gradients = {g.function_name: g.gradient_func for g in graph_def.library.gradient}
    for nodes in (graph_def.node, *(function.node_def for function in library.values())):
        for node in nodes:
            _take_own_gradient(node, gradients)
    # A function that has a gradient of its own is not what its nodes are, once differentiated.
    inlined = inline_calls(library, kept=gradients)
    for node in graph_def.node:
        _call(node, library)
    changed = {
        name: function
        for name, function in library.items()
        if _calls_in(function, library) or name in inlined
    }
    while callers := [n for n, f in library.items() if n not in changed and _refers(f, changed)]:
        changed.update((name, library[name]) for name in callers)
    for name, function in changed.items():
        function.signature.name = f"{name}_partitioned"
    for nodes in (graph_def.node, *(function.node_def for function in changed.values())):
        for node in nodes:
            for called in _called(node):
                if called.name in changed:
                    called.name = changed[called.name].signature.name
    if gradients:
        now = {name: function.signature.name for name, function in library.items()}
        _differentiate(graph_def, {now[f]: now[own] for f, own in gradients.items()})


def _differentiate(graph_def: graph_pb2.GraphDef, own: Mapping[str, str]) -> None:
    """Makes gradients of functions that call those of `own` calls of functions, too.

    Args:
        own: Function -> function that is its gradient.
    """
    library = {function.signature.name: function for function in graph_def.library.function}
    made: dict[str, Any] = {}
    for node in graph_def.node:
        function = library.get(node.attr["f"].func.name) if node.op == "SymbolicGradient" else None
        if function is None or not calls_own(function, own):
            continue
        name = function.signature.name
        if name not in made:
            for called in library.values():
                _tf_private.register_function(called)
            made[name] = gradient_of(function, own)
            graph_def.library.function.add().CopyFrom(made[name])
        gradient = made[name]
        node.op = gradient.signature.name
        node.attr.clear()
        _call(node, {node.op: gradient})


def _take_own_gradient(node: Any, gradients: Mapping[str, str]) -> None:
    """Makes the gradient of a function with a `grad_func` a call of that.

    The runtime knows functions, and not which is the gradient of which.
    """
    own = gradients.get(node.attr["f"].func.name) if node.op == "SymbolicGradient" else None
    if own:
        node.op = own
        node.attr.clear()


def _calls_in(function: Any, library: Mapping[str, Any]) -> bool:
    """Changes the calls in a function; whether there are any."""
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
    for node in function.node_def:
        node.input[:] = [renamed.get(edge, edge) for edge in node.input]
    for result, edge in function.ret.items():
        function.ret[result] = renamed.get(edge, edge)
