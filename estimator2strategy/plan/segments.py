"""Cuts a replica's graph at its cross-replica sums.

Between two levels of sums every replica works on its own; a level's sums, which do not depend on
one another, are reduced together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from estimator2strategy.plan.graph import RecordedGraph, input_node, tensor_name
from estimator2strategy.plan.rewrites import CROSS_REPLICA_SUM


@dataclasses.dataclass(frozen=True)
class Segment:
    """What a replica runs by itself, between two levels of sums.

    Attributes:
        takes: Names of the tensors that it needs from outside: of the batch, of earlier segments,
            and sums.
        gives: Names of the tensors of its own that others need.
        ops: Names of the ops that it runs beside.
        done: Names of the nodes that have run before, or need not.
        sums: The cross-replica sums that follow it; none after the last segment.
    """

    takes: tuple[str, ...]
    gives: tuple[str, ...]
    ops: tuple[str, ...]
    done: frozenset[str]
    sums: tuple[str, ...]


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


def summand(recorded: RecordedGraph, name: str) -> str:
    """The tensor that the cross-replica sum `name` adds up."""
    return tensor_name(recorded[name].input[0])


def cut(
    recorded: RecordedGraph,
    feeds: Iterable[str],
    outputs: Sequence[str],
    ops: Sequence[str],
    sums: Iterable[Sequence[str]],
) -> list[Segment]:
    """The segments that compute the tensors `outputs` and run `ops`, in order.

    Args:
        feeds: Names of the tensors that have a value before the first segment.
        sums: See `levels`.
    """
    supplied = set(feeds)
    fed = frozenset(supplied)
    placed: set[str] = set()
    segments: list[tuple[list[str], Sequence[str], Segment]] = []
    for level in (*sums, ()):
        done = placed | set(map(input_node, supplied))
        wanted = outputs if not level else [summand(recorded, name) for name in level]
        targets = () if level else tuple(op for op in ops if op not in done)
        roots = [*(input_node(name) for name in wanted if name not in supplied), *targets]
        nodes = _missing(recorded, roots, placed, supplied)
        takes = _taken(recorded, nodes, supplied)
        segment = Segment(takes, (), targets, frozenset(done), tuple(level))
        segments.append((nodes, wanted, segment))
        placed.update(nodes)
        supplied.update(f"{name}:0" for name in level)
    return _with_gifts(segments, fed)


def _missing(
    recorded: RecordedGraph, roots: Sequence[str], placed: set[str], supplied: set[str]
) -> list[str]:
    """The nodes among and behind `roots` that have not run yet, but for resources."""
    done = placed | set(map(input_node, supplied))

    def is_there(edge: str) -> bool:
        if edge[0] == "^":
            return edge[1:] in done
        return input_node(edge) in placed or tensor_name(edge) in supplied

    behind = recorded.ancestors(roots, is_there)
    return [n for n in behind if n not in placed and not recorded.creates_resource(n)]


def _taken(recorded: RecordedGraph, nodes: Sequence[str], supplied: set[str]) -> tuple[str, ...]:
    """The tensors that `nodes` read and do not compute themselves, but for resources."""
    inside = set(nodes)
    taken: dict[str, None] = {}
    for node in nodes:
        for edge in recorded[node].input:
            name, source = tensor_name(edge), input_node(edge)
            if edge[0] == "^" or (source in inside and name not in supplied):
                continue
            if name in supplied or not recorded.creates_resource(source):
                taken[name] = None
    return tuple(taken)


def _with_gifts(
    segments: Sequence[tuple[list[str], Sequence[str], Segment]], fed: frozenset[str]
) -> list[Segment]:
    """Fills in what each segment gives: to later ones, to its sums, or as an output."""
    needed: dict[str, None] = {}
    found = []
    for nodes, wanted, segment in reversed(segments):
        needed.update(dict.fromkeys(wanted))
        inside = set(nodes)
        gives = tuple(n for n in needed if input_node(n) in inside and n not in fed)
        found.append(dataclasses.replace(segment, gives=gives))
        needed.update(dict.fromkeys(segment.takes))
    return found[::-1]


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
