"""The ops and dtypes that XLA has kernels for, from TensorFlow's registry, and sums it is bad at.

TensorFlow's kernel of a sum adds in pairs. A compiled program adds one after the other, in a few
rows, and the sum of ten million float32 0.1 is off by 0.6 %. Such sums are taken in float64 for a
CPU or a GPU; `migration_guide/compiled.md` has the measurements. A TPU has no float64 of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.plan.graph import NodeDef, RecordedGraph
from estimator2strategy.engine.plan.rewrites import CROSS_REPLICA_SUM

# A TPU has kernels for these, a CPU has none.
_TPU_ONLY = frozenset({CROSS_REPLICA_SUM, "AllToAll", "CollectivePermute"})
# Not compiled: the replay gives values for them.
_SUPPLIED = frozenset({"Placeholder", "VarHandleOp"})


# XLA's kernels for these let everything pass.
_CHECKS = frozenset({"Assert", "CheckNumerics", "CheckNumericsV2"})
# Numbers that make one sum. Of a hundred thousand 0.1 the compiled sum is off by 9e-6.
LONG = 2**16

_SUMS = frozenset({"Sum", "Mean"})
_FLOAT, _DOUBLE = tf.float32.as_datatype_enum, tf.float64.as_datatype_enum


def checks(node: NodeDef) -> bool:
    """True if a node is a check of the program's, which XLA would leave out."""
    return node.op in _CHECKS


def why_not_compiled(node: NodeDef) -> str:
    """Returns the reason why XLA cannot compile a node, as the end of "X ..."; "" if it can."""
    if node.op in _TPU_ONLY or node.op in _SUPPLIED:
        return ""
    kernels = _kernels().get(node.op)
    if kernels is None:
        return "has no XLA kernel"
    # Of several kernels of one op one is enough.
    refused = [_refused(node, kernel) for kernel in kernels]
    if not all(refused):
        return ""
    return "has no XLA kernel for " + " or ".join(sorted(set(refused)))


def _refused(node: NodeDef, kernel: Mapping[str, frozenset[int]]) -> str:
    """The first dtype of a node that a kernel is not made for; "" if there is none."""
    for attribute, allowed in kernel.items():
        value = node.attr[attribute]
        for dtype in [value.type] if value.type else value.list.type:
            if dtype not in allowed:
                return str(tf.as_dtype(dtype).name)
    return ""


@functools.cache
def _kernels() -> dict[str, list[dict[str, frozenset[int]]]]:
    """Op -> for each of its kernels, attribute -> the dtypes that it may have."""
    kernels: dict[str, list[dict[str, frozenset[int]]]] = {}
    for kernel in _tf_private.xla_kernels():
        constraints = {c.name: frozenset(c.allowed_values.list.type) for c in kernel.constraint}
        kernels.setdefault(kernel.op, []).append(constraints)
    return kernels


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
