"""Sums of so many float32 numbers that XLA's program for a CPU or a GPU would lose digits.

TensorFlow's kernel adds in pairs. A compiled program adds one after the other, in a few rows, and
the sum of ten million 0.1 is off by 0.6 %. Such sums are taken in float64;
`migration_guide/compiled.md` has the measurements. Not on a TPU, which has no float64 of its own.
"""

from __future__ import annotations

import tensorflow as tf

from estimator2strategy.engine.plan.graph import NodeDef, RecordedGraph

# Numbers that make one sum. Of a hundred thousand 0.1 the compiled sum is off by 9e-6.
LONG = 2**16

_SUMS = frozenset({"Sum", "Mean"})
_FLOAT, _DOUBLE = tf.float32.as_datatype_enum, tf.float64.as_datatype_enum


def long_sums(recorded: RecordedGraph) -> frozenset[str]:
    """The nodes that sum more than `LONG` float32 numbers, as far as shapes are known."""
    return frozenset(
        node.name
        for node in recorded.nodes
        if node.op in _SUMS and node.attr["T"].type == _FLOAT and _is_long(recorded, node.name)
    )


def _is_long(recorded: RecordedGraph, name: str) -> bool:
    op = recorded.graph.get_operation_by_name(name)
    summed, sums = (tensor.shape.num_elements() for tensor in (op.inputs[0], op.outputs[0]))
    return bool(summed and sums) and summed > LONG * sums


def sum_in_double(graph_def: tf.compat.v1.GraphDef, node: NodeDef) -> None:
    """Makes a sum one of float64 numbers, whose result is a float32 again.

    Args:
        graph_def: The nodes that `node` is among; those that cast are added to them.
        node: Changed in place. The node that casts its result gets its name.
    """
    wide, narrow = node.name + "/wide", graph_def.node.add(name=node.name)
    _make_cast(narrow, node.name + "/in_double", _DOUBLE, _FLOAT)
    _make_cast(graph_def.node.add(name=wide), node.input[0], _FLOAT, _DOUBLE)
    node.name += "/in_double"
    node.input[0] = wide
    node.attr["T"].type = _DOUBLE


def _make_cast(node: NodeDef, source: str, given: int, made: int) -> None:
    node.op = "Cast"
    node.input.append(source)
    node.attr["SrcT"].type, node.attr["DstT"].type = given, made
