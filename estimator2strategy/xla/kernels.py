"""Which recorded ops XLA cannot compile: all of them at once, before anything is compiled.

TensorFlow names only the first such op. This asks its registry of kernels about every op that a
core runs, also in the branches of conds and the bodies of loops.

    for op in unsupported(program):
        op.node, op.reason
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping

import tensorflow as tf

from estimator2strategy import _tf_private
from estimator2strategy.plan.graph import NodeDef
from estimator2strategy.plan.rewrites import CROSS_REPLICA_SUM
from estimator2strategy.xla.core_program import CoreProgram
from estimator2strategy.xla.diagnoses import fix_of_op

# A TPU has kernels for these, a CPU has none.
_TPU_ONLY = frozenset({CROSS_REPLICA_SUM, "AllToAll", "CollectivePermute"})
# Not compiled: the replay gives values for them.
_SUPPLIED = frozenset({"Placeholder", "VarHandleOp"})


@dataclasses.dataclass(frozen=True)
class UnsupportedOp:
    """A recorded op that XLA has no kernel for.

    Attributes:
        node: Its name; of an op in a function, the name of the recorded node that calls that.
        op: Its type.
        reason: Why not, as the end of "X ...".
        inside: The function that it is in, "" if in none.
    """

    node: str
    op: str
    reason: str
    inside: str = ""


def unsupported(program: CoreProgram) -> list[UnsupportedOp]:
    """The ops of `program` that XLA has no kernel for, in creation order."""
    recorded = program.recorded
    found = []
    seen: set[str] = set()
    for name in program.nodes:
        found += _judged(name, [recorded[name]])
        for function in recorded.functions_behind([name]):
            if function not in seen:
                seen.add(function)
                found += _judged(name, recorded.library[function].node_def, inside=function)
    return found


def described(op: UnsupportedOp) -> tuple[str, str | None]:
    """What to say of it: the message, and what to do if the table of fixes says."""
    inside = " (in a branch or a loop)" if op.inside else ""
    return f"{op.op} {op.reason}{inside}", fix_of_op(op.op) or None


def _judged(name: str, nodes: Iterable[NodeDef], inside: str = "") -> list[UnsupportedOp]:
    reasons = ((node.op, _reason(node)) for node in nodes)
    return [UnsupportedOp(name, op, reason, inside) for op, reason in reasons if reason]


def _reason(node: NodeDef) -> str:
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
                return tf.as_dtype(dtype).name
    return ""


@functools.cache
def _kernels() -> dict[str, list[dict[str, frozenset[int]]]]:
    """Op -> for each of its kernels, attribute -> the dtypes that it may have."""
    kernels: dict[str, list[dict[str, frozenset[int]]]] = {}
    for kernel in _tf_private.xla_kernels():
        constraints = {c.name: frozenset(c.allowed_values.list.type) for c in kernel.constraint}
        kernels.setdefault(kernel.op, []).append(constraints)
    return kernels
