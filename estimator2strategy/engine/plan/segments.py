"""Cuts a replica's graph at its cross-replica sums, or a step where the host has to act.

Between two levels of sums every replica works on its own. The sums of one level do not depend on
one another, so they are reduced together.

A compiled step alternates between the host and XLA: the host's work that XLA waits for, a part that
XLA compiles, the host's work on its results, and so on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence

from estimator2strategy.engine.plan.edges import input_node, tensor_name
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.plan.rewrites import CROSS_REPLICA_SUM


@dataclasses.dataclass(frozen=True)
class Segment:
    """The nodes that a replica runs by itself, between two levels of sums.

    Attributes:
        takes: Names of the tensors that it needs from outside: of the batch, of earlier segments,
            and sums.
        resources: Names of the nodes that make the variables, tables, ... that it uses.
        gives: Names of the tensors of its own that others need.
        ops: Names of the ops that it runs beside.
        done: Names of the nodes that have run before, or need not.
        sums: The cross-replica sums that follow it; none after the last segment.
    """

    takes: tuple[str, ...]
    resources: tuple[str, ...]
    gives: tuple[str, ...]
    ops: tuple[str, ...]
    done: frozenset[str]
    sums: tuple[str, ...]


def levels(recorded: RecordedGraph, names: Iterable[str]) -> list[list[str]]:
    """The cross-replica sums among and behind the nodes `names`, by level.

    A sum of level k needs the results of sums of level k - 1, and of no higher ones.
    """
    depth: dict[str, int] = {}
    by_level: dict[int, list[str]] = {}
    for name in recorded.ancestors(names):  # creation order: almost always inputs first
        level = _depth(recorded, name, depth)
        if recorded[name].op == CROSS_REPLICA_SUM:
            by_level.setdefault(level, []).append(name)
    return [by_level[level] for level in sorted(by_level)]


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
        takes, resources = _taken(recorded, nodes, supplied)
        segment = Segment(takes, resources, (), targets, frozenset(done), tuple(level))
        segments.append((nodes, wanted, segment))
        placed.update(nodes)
        supplied.update(f"{name}:0" for name in level)
    return _with_outputs(segments, fed)


def compiled(
    recorded: RecordedGraph,
    outputs: Sequence[str],
    ops: Sequence[str],
    on_host: Callable[[str], bool],
    fed: Sequence[str] = (),
) -> list[Segment]:
    """The parts of a step between the host's ops, in order.

    Ops on one resource keep their order. Constants, and ops on constants alone, belong to each part
    that uses them: a shape, for example, must be known to XLA.

    Args:
        outputs, ops: The tensors that the step returns and the ops that it runs.
        on_host: True if the host runs a node.
        fed: The tensors that are given a value.
    """
    given = set(map(input_node, fed))
    roots = [name for name in [*map(input_node, outputs), *ops] if name not in given]
    names = _missing(recorded, roots, set(), set(fed))
    names.sort(key=lambda name: not recorded.comes_first(name))  # as a GraphImporter does
    constants = _constants(recorded, names, on_host)
    parts = _alternating(recorded, [n for n in names if n not in constants], on_host)
    placed = set(given)
    segments: list[tuple[list[str], Sequence[str], Segment]] = []
    for number, nodes in enumerate(parts):
        inside = constants.union(nodes)
        whole = [name for name in names if name in inside]
        takes, resources = _taken(recorded, whole, set())
        segment = Segment(takes, resources, (), tuple(nodes), frozenset(placed), ())
        segments.append((nodes, outputs if number == len(parts) - 1 else (), segment))
        placed.update(nodes)
    return [s for n, s in enumerate(_with_outputs(segments, frozenset())) if n % 2 and s.ops]


def _alternating(
    recorded: RecordedGraph, names: Sequence[str], on_host: Callable[[str], bool]
) -> list[list[str]]:
    """The nodes of the host, those that follow and are compiled, the host's after those, ..."""
    part: dict[str, int] = {}
    parts: list[list[str]] = [[]]
    for name in names:
        sources = [input_node(edge) for edge in recorded[name].input]
        earliest = max((part.get(source, 0) for source in sources), default=0)
        part[name] = earliest + (earliest % 2 == on_host(name))
        # The next op on the same variable, table, ... comes after this one.
        part.update((s, part[name]) for s in sources if recorded.creates_resource(s))
        parts.extend([] for _ in range(part[name] + 1 - len(parts)))
        parts[part[name]].append(name)
    return parts


def _constants(
    recorded: RecordedGraph, names: Sequence[str], on_host: Callable[[str], bool]
) -> set[str]:
    """The nodes of `names` that compute the same whenever they run."""
    found: set[str] = set()
    for name in names:
        constant = found.issuperset(map(input_node, recorded[name].input))
        if constant and not on_host(name) and not recorded.have_effects([name]):
            found.add(name)
    return found


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


def _taken(
    recorded: RecordedGraph, nodes: Sequence[str], supplied: set[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(tensors that `nodes` read and do not compute themselves, nodes that make their resources)"""
    inside = set(nodes)
    taken: dict[str, None] = {}
    resources: dict[str, None] = {}
    for node in nodes:
        for edge in recorded[node].input:
            name, source = tensor_name(edge), input_node(edge)
            if edge[0] == "^" or (source in inside and name not in supplied):
                continue
            if name in supplied or not recorded.creates_resource(source):
                taken[name] = None
            else:
                resources[source] = None
    return tuple(taken), tuple(resources)


def _with_outputs(
    segments: Sequence[tuple[list[str], Sequence[str], Segment]], fed: frozenset[str]
) -> list[Segment]:
    """Fills in the tensors that each segment gives: to later ones, to its sums, or as output."""
    needed: dict[str, None] = {}
    parts = []
    for nodes, wanted, segment in reversed(segments):
        needed.update(dict.fromkeys(wanted))
        inside = set(nodes)
        gives = tuple(n for n in needed if input_node(n) in inside and n not in fed)
        parts.append(dataclasses.replace(segment, gives=gives))
        needed.update(dict.fromkeys(segment.takes))
    return parts[::-1]


def _depth(recorded: RecordedGraph, name: str, depth: dict[str, int]) -> int:
    """The number of sums on the longest way to `name`, without itself; fills `depth`."""
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
