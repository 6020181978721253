"""Gradients of functions that call functions with a gradient of their own.

The runtime differentiates a function of `Defun` op by op (`SymbolicGradient`), and has no gradient
of a call. Most calls are inlined (`inlining.py`), but a call of a function with its own gradient
must stay. This module differentiates its caller with `tf.gradients`; the result is a function too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2

from estimator2strategy.engine import _tf_private, patches

tf1 = tf.compat.v1

_OWN = "_estimator2strategy_own_gradient"


def calls_own(function: Any, own: Mapping[str, str]) -> bool:
    """True if `function` calls one of `own`, which have gradients of their own."""
    return any(own.get(_called(node)) for node in function.node_def)


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
        if gradient := own.get(_called(node)):
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


def _called(node: Any) -> str:
    return node.attr["f"].func.name if "f" in node.attr else ""
