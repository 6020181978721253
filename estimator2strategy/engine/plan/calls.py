"""Calls of functions: those of TF 1's `Defun`, and those of today.

A node that calls a function of `Defun` has the function's name as its op. It can be imported only
where that function is known. Calls that TensorFlow 2 makes are a `PartitionedCall`, which names the
function in an attribute. Inside functions most calls are replaced by the body of what they call:
TensorFlow differentiates a function of `Defun` op by op while it runs (`SymbolicGradient`), and has
no gradient of a `PartitionedCall`. A call of a function with a gradient of its own must stay, so
its caller is differentiated here, with `tf.gradients`; the result is a function too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2, graph_pb2

from estimator2strategy.engine import _tf_private, patches

tf1 = tf.compat.v1

_OWN = "_estimator2strategy_own_gradient"


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


def calls_own(function: Any, own: Mapping[str, str]) -> bool:
    """True if `function` calls one of `own`, which have gradients of their own."""
    return any(own.get(_functions_of(node)) for node in function.node_def)


def gradient_of(function: Any, own: Mapping[str, str]) -> Any:
    """The gradient of a function, as a FunctionDef.

    Args:
        function: The FunctionDef; all that it calls is known to the process.
        own: Function -> function that is its gradient.

    Returns:
        A function of the arguments of `function` and of a gradient for each of its results. It
        returns a gradient for each argument; zeros where there is none.
    """
    graph_def, names = _tf_private.graph_of_function(function)
    for node in graph_def.node:
        if gradient := own.get(_functions_of(node)):
            node.attr["_gradient_op_type"].s = _OWN.encode()
            node.attr[_OWN].s = gradient.encode()
    with tf.Graph().as_default() as graph:
        results = [names[function.ret[result.name]] for result in function.signature.output_arg]
        ys = tf.graph_util.import_graph_def(graph_def, return_elements=results, name="")
        xs = [graph.get_tensor_by_name(f"{x.name}:0") for x in function.signature.input_arg]
        dys = [tf1.placeholder(y.dtype, y.shape) for y in ys]
        smooth = [(y, dy) for y, dy in zip(ys, dys, strict=True) if _is_smooth(y)]
        sources = [x for x in xs if _is_smooth(x)]
        gradients = tf.gradients(*([y for y, _ in smooth], sources, [dy for _, dy in smooth]))
        by_source = {x.name: dx for x, dx in zip(sources, gradients, strict=True)}
        dxs = [_or_zeros(by_source.get(x.name), x) for x in xs]
        gradient = _tf_private.function_of_graph(graph, graph.get_operations(), [*xs, *dys], dxs)
    gradient.signature.name = f"{function.signature.name}_gradient"
    gradient.signature.is_stateful = function.signature.is_stateful
    return gradient


def _own_gradient(call: tf.Operation, *dys: tf.Tensor | None) -> list[tf.Tensor]:
    given = [_or_zeros(dy, y) for dy, y in zip(dys, call.outputs, strict=True)]
    function = attr_value_pb2.NameAttrList(name=call.get_attr(_OWN).decode())
    gradients: list[tf.Tensor] = getattr(tf.raw_ops, call.type)(
        args=[*call.inputs, *given], Tout=[x.dtype for x in call.inputs], f=function
    )
    return gradients


patches.noted("own gradient")
tf.RegisterGradient(_OWN)(_own_gradient)


def _or_zeros(gradient: Any, tensor: tf.Tensor) -> tf.Tensor:
    return tf.zeros_like(tensor) if gradient is None else tf.convert_to_tensor(gradient)


def _is_smooth(tensor: tf.Tensor) -> bool:
    return bool(tensor.dtype.is_floating or tensor.dtype.is_complex)


def _functions_of(node: Any) -> str:
    return node.attr["f"].func.name if "f" in node.attr else ""
