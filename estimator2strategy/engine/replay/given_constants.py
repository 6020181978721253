"""Large constants that a program is given, where it would hold them otherwise."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

import numpy as np
import tensorflow as tf

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.graph import NodeDef, RecordedGraph

# Bytes, or elements of a filled value, that are as well held twice.
_LARGE = 2**16


def constants_to_give(
    recorded: RecordedGraph, roots: Iterable[str], feeds: Collection[str]
) -> dict[str, tf.Tensor]:
    """Values for constants behind `roots`, by tensor name, so that no program holds them.

    - A large constant, such as the examples of an input_fn: TensorFlow copies a program several
      times before it runs. 12 MB of images took 0.2 s.
    - The shape of a large value that fills a variable: TensorFlow computes what is made of the
      constants of a program before it runs. The value would be there twice, once in the variable,
      and its allocator gives no memory back. What is captured is not taken for such a constant.

    Args:
        feeds: Names of tensors that have a value already.
    """
    given: dict[str, np.ndarray] = {}
    for name in recorded.ancestors(roots):
        node = recorded[name]
        if node.op == "Const" and node.attr["value"].ByteSize() >= _LARGE:
            given[f"{name}:0"] = _value(node)
        elif node.op == "AssignVariableOp":
            value = recorded[input_node(node.input[1])]
            shape = recorded[input_node(value.input[0])] if value.op == "Fill" else value
            if value.op == "Fill" and shape.op == "Const":
                dims = _value(shape)
                if math.prod(dims.tolist()) >= _LARGE:
                    given[f"{shape.name}:0"] = dims
    with tf.init_scope():
        return {name: tf.constant(value) for name, value in given.items() if name not in feeds}


def _value(node: NodeDef) -> np.ndarray:
    value: np.ndarray = tf.make_ndarray(node.attr["value"].tensor)
    return value
