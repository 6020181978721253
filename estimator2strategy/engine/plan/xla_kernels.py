"""The ops and dtypes that XLA has kernels for, from TensorFlow's registry."""

from __future__ import annotations

import functools
from collections.abc import Mapping

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.plan.graph import NodeDef
from estimator2strategy.engine.plan.rewrites import CROSS_REPLICA_SUM

# A TPU has kernels for these, a CPU has none.
_TPU_ONLY = frozenset({CROSS_REPLICA_SUM, "AllToAll", "CollectivePermute"})
# Not compiled: the replay gives values for them.
_SUPPLIED = frozenset({"Placeholder", "VarHandleOp"})


# XLA's kernels for these let everything pass.
_CHECKS = frozenset({"Assert", "CheckNumerics", "CheckNumericsV2"})


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
