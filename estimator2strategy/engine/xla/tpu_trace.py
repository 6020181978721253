"""Compares what a TPU would be sent for a step with what was recorded.

Example:

    from estimator2strategy.engine.xla.core_program import core_program
    from estimator2strategy.engine.xla.tpu_program import train_program

    differences(train_program(recording), core_program(recording))      # [] if nothing is otherwise
"""

from __future__ import annotations

import collections
import dataclasses
import re
from collections.abc import Iterator

from estimator2strategy.engine.plan.rewrites import CROSS_REPLICA_SUM, inner_nodes
from estimator2strategy.engine.replay.xla.core import CoreProgram
from estimator2strategy.engine.xla.tpu_program import TpuProgram

_UPDATE = re.compile(r"Resource\w*(Apply|Scatter)|Assign(Add|Sub)")


@dataclasses.dataclass(frozen=True)
class Mismatch:
    """A mismatch with the recording, at a recorded `node` if it is at one."""

    sentence: str
    node: str = ""


def differences(sent: TpuProgram, program: CoreProgram) -> list[Mismatch]:
    """The mismatches of the traced program with the recording."""
    sentences = (*_cores(sent, program), *_variables(sent, program), *_counts(sent, program))
    return [*map(Mismatch, sentences), *_ops_of_hosts(sent, program)]


def _cores(sent: TpuProgram, program: CoreProgram) -> Iterator[str]:
    if sent.replicas != program.replicas:
        yield f"it runs on {sent.replicas} replicas, and was recorded for {program.replicas}"
    everyone = [list(range(program.replicas))]
    for groups in sent.group_assignments():
        if groups != everyone:
            yield f"a sum is over {groups}, and not over all of {program.replicas} cores"


def _variables(sent: TpuProgram, program: CoreProgram) -> Iterator[str]:
    given = len(sent.variables)
    used = len(program.variables)
    if given != used:
        yield f"cores are given {given} variables, and the model uses {used}"


def _counts(sent: TpuProgram, program: CoreProgram) -> Iterator[str]:
    recorded = program.recorded
    inside = inner_nodes(recorded.library, recorded.functions_behind(program.nodes))
    wanted = collections.Counter(
        node.op for node in [*(recorded[name] for name in program.nodes), *inside]
    )
    counts = collections.Counter(node.op for node in sent.nodes)
    for op, count in wanted.items():
        # Sums and updates must be there once and only once; the trace adds ops of other types, and
        # an assignment to a gauge.
        exact = op == CROSS_REPLICA_SUM or _UPDATE.match(op)
        if counts[op] < count or (exact and counts[op] > count):
            yield f"{op}: {counts[op]} times, and {count} times in the recording"


def _ops_of_hosts(sent: TpuProgram, program: CoreProgram) -> Iterator[Mismatch]:
    for node in sent.nodes:
        if "Iterator" in node.op or "PyFunc" in node.op:
            name = node.name.removeprefix("replay/")
            known = name if name in program.recorded.position else ""
            yield Mismatch(f"{node.op} is in it, and no core can run that", known)
