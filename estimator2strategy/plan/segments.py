"""Cuts a replica's graph at its cross-replica sums.

Between two levels of sums every replica works on its own; a level's sums, which do not depend on
one another, are reduced together.
"""

from __future__ import annotations

from collections.abc import Iterable

from estimator2strategy.plan.graph import RecordedGraph, input_node
from estimator2strategy.plan.rewrites import CROSS_REPLICA_SUM


def levels(recorded: RecordedGraph, names: Iterable[str]) -> list[list[str]]:
    """The cross-replica sums among and behind the nodes `names`, by level.

    A sum of level k needs the results of sums of level k - 1, and of no higher ones.
    """
    depth: dict[str, int] = {}
    found: dict[int, list[str]] = {}
    for name in recorded.ancestors(names):  # creation order: almost always inputs first
        level = _depth(recorded, name, depth)
        if recorded[name].op == CROSS_REPLICA_SUM:
            found.setdefault(level, []).append(name)
    return [found[level] for level in sorted(found)]


def _depth(recorded: RecordedGraph, name: str, depth: dict[str, int]) -> int:
    """How many sums lie on the longest way to `name` (not counting itself); fills `depth`."""
    stack = [name]
    while stack:
        node = recorded[stack[-1]]
        if node.name in depth:
            stack.pop()
            continue
        sources = [input_node(edge) for edge in node.input]
        waiting = [source for source in sources if source not in depth]
        if waiting:
            stack.extend(waiting)
            continue
        depth[node.name] = max(
            (depth[s] + (recorded[s].op == CROSS_REPLICA_SUM) for s in sources), default=0
        )
        stack.pop()
    return depth[name]
