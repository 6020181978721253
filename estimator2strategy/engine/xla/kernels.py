"""The recorded ops that XLA cannot compile: all at once, before anything is compiled.

TensorFlow names only the first such op. This asks its registry of kernels about every op that a
core runs, also in the branches of conds and the bodies of loops.

    for op in unsupported(program):
        op.node, op.reason
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.plan.effects import calls_python
from estimator2strategy.engine.plan.graph import NodeDef
from estimator2strategy.engine.plan.xla_kernels import why_not_compiled
from estimator2strategy.engine.replay.xla.core import CoreProgram
from estimator2strategy.engine.replay.xla.diagnoses import fix_of_op


@dataclasses.dataclass(frozen=True)
class UnsupportedOp:
    """A recorded op that XLA has no kernel for.

    Attributes:
        node: Its name; of an op in a function, the name of the recorded node that calls that.
        op: Its type.
        reason: The reason, as the end of "X ...".
        inside: The function that it is in, "" if in none.
        host_only: True if no TPU can have a kernel for it: it takes or makes strings (other than to
            print), or is a call of Python, or makes a resource of the host.
    """

    node: str
    op: str
    reason: str
    inside: str = ""
    host_only: bool = False


def unsupported(program: CoreProgram) -> list[UnsupportedOp]:
    """The ops of `program` that XLA has no kernel for, in creation order."""
    recorded = program.recorded
    problems = []
    seen: set[str] = set()
    for name in program.nodes:
        problems += _judged(name, [recorded[name]])
        for function in recorded.functions_behind([name]):
            if function not in seen:
                seen.add(function)
                problems += _judged(name, recorded.library[function].node_def, inside=function)
    return problems


def described(op: UnsupportedOp) -> tuple[str, str | None]:
    """The message, and the remedy if the table of fixes has one."""
    inside = " (in a branch or a loop)" if op.inside else ""
    return f"{op.op} {op.reason}{inside}", fix_of_op(op.op) or None


def _judged(name: str, nodes: Iterable[NodeDef], inside: str = "") -> list[UnsupportedOp]:
    return [
        UnsupportedOp(name, node.op, reason, inside, _is_host_only(node))
        for node in nodes
        if (reason := why_not_compiled(node))
    ]


# TPUEstimator warned of a print.
_PRINTS = frozenset({"Print", "PrintV2", "StringFormat"})


def _is_host_only(node: NodeDef) -> bool:
    has_strings = tf.string in _tf_private.types_of(node)
    return calls_python(node) or (has_strings and node.op not in _PRINTS)
