"""Finds the part of a recorded graph that belongs to some variables: a metric's own arithmetic."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence

from estimator2strategy.engine.plan.edges import input_node, tensor_name
from estimator2strategy.engine.plan.graph import RecordedGraph


@dataclasses.dataclass(frozen=True)
class Part:
    """The part of a graph to replay when its variables are kept elsewhere.

    Attributes:
        state: The variables (VarHandleOps).
        inputs: Names of the tensors that come in from the rest of the graph.
        outside: Ops of the rest that the part only waits for.
    """

    state: tuple[str, ...]
    inputs: tuple[str, ...]
    outside: tuple[str, ...]


def part_of(recorded: RecordedGraph, roots: Sequence[str], state: Collection[str]) -> Part:
    """The nodes behind `roots` that depend on the variables `state`, and what enters them.

    Args:
        roots: Nodes that are to run.
        state: The part's own variables; those that `roots` do not need are left out.
    """
    behind = recorded.ancestors(roots)
    own = [name for name in behind if name in state]
    inside = set(own)
    inputs: dict[str, None] = {}
    outside: dict[str, None] = {}
    for name in behind:  # creation order: what a node needs comes before it
        edges = recorded[name].input
        if name in roots or any(input_node(edge) in inside for edge in edges):
            inside.add(name)
    for name in behind:
        if name not in inside:
            continue
        for edge in recorded[name].input:
            source = input_node(edge)
            if source in inside or recorded[source].op == "Const":
                continue
            if edge.startswith("^"):
                outside[source] = None
            else:
                inputs[tensor_name(edge)] = None
    return Part(tuple(own), tuple(inputs), tuple(outside))
