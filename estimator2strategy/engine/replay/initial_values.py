"""Initial values that repeat one number: only their shape need be in memory."""

from __future__ import annotations

import math
from collections.abc import Iterable

import tensorflow as tf

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.graph import RecordedGraph

# Values that are smaller are as well held twice.
_LARGE = 2**16


def shapes_to_give(recorded: RecordedGraph, roots: Iterable[str]) -> dict[str, tf.Tensor]:
    """The shapes of large values that `roots` fill variables with, by the name of the constant.

    TensorFlow computes what is made of the constants of a program before it runs. Large values
    would then be there twice, once in the variable, and its allocator gives no memory back. What is
    captured is not taken for such a constant.
    """
    found = {}
    for name in recorded.ancestors(roots):
        node = recorded[name]
        if node.op != "AssignVariableOp":
            continue
        value = recorded[input_node(node.input[1])]
        shape = recorded[input_node(value.input[0])] if value.op == "Fill" else value
        if value.op == "Fill" and shape.op == "Const":
            dims = tf.make_ndarray(shape.attr["value"].tensor)
            if math.prod(dims.tolist()) >= _LARGE:
                with tf.init_scope():
                    found[f"{shape.name}:0"] = tf.constant(dims)
    return found
