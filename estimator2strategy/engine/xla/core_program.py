"""The program of one core in a step, as a function of its part of the batch; ops that XLA lacks.

Example:

    program = core_program(recording, tensors=[loss], ops=[train_op])
    program.nodes           # the recorded nodes that a core runs
    for op in unsupported(program):
        op.node, op.reason

TensorFlow names only the first op that XLA cannot compile. `unsupported` asks its registry of
kernels about every op that a core runs, also in the branches of conds and the bodies of loops.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.plan.effects import calls_python
from estimator2strategy.engine.plan.graph import NodeDef, RecordedGraph
from estimator2strategy.engine.plan.xla_kernels import why_not_compiled
from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.replay.replicas import ReplicatedModel
from estimator2strategy.engine.replay.xla.core import CoreProgram
from estimator2strategy.engine.replay.xla.diagnoses import fix_of_op
from estimator2strategy.errors import UnsupportedError

_TAKERS = frozenset({"IteratorGetNext", "IteratorGetNextSync", "IteratorGetNextAsOptional"})


def core_program(
    recording: Recording, tensors: Sequence[tf.Tensor] = (), ops: Sequence[tf.Operation] = ()
) -> CoreProgram:
    """The program of a core in a recording, or of the host if the model was recorded for one.

    Args:
        tensors: The tensors that a step returns, if the model was recorded for the host.
        ops: Likewise, what it runs.

    Raises:
        UnsupportedError: A replica is spread over several cores (model parallelism).
    """
    recorded = RecordedGraph(recording.graph)
    for splice in recording.splices:
        model = splice.model
        if model is not None:
            return _of_model(recorded, model)
    roots = [*(t.op.name for t in tensors), *(op.name for op in ops)]
    takers = [name for name in recorded.ancestors(roots) if recorded[name].op in _TAKERS]
    batch = [
        t.name for taker in takers for t in recording.graph.get_operation_by_name(taker).outputs
    ]
    return CoreProgram(
        recorded, tuple(batch), tuple(t.name for t in tensors), tuple(op.name for op in ops)
    )


def _of_model(recorded: RecordedGraph, model: ReplicatedModel) -> CoreProgram:
    if model.partitions:
        raise UnsupportedError(
            "TPUConfig.num_cores_per_replica spreads one replica over several cores.\n"
            "  How a TPU partitions such a step is decided on its worker, and cannot be compiled "
            "here.\n"
            "  Leave num_cores_per_replica out for this check."
        )
    replicas = model.strategy.num_replicas_in_sync
    return CoreProgram(recorded, model.feeds, model.outputs, model.ops, replicas)


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
