"""A step cut in two: what it computes of its batch alone, and the rest, which has effects.

    batch ─▶ first half: layers, loss ─▶ second half: metrics add up, a step is counted

The first half depends on no step before it, so that it may run before those have ended.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable

from estimator2strategy.engine.plan.edges import input_node, tensor_name
from estimator2strategy.engine.plan.graph import RecordedGraph

_STARTS = frozenset({"MakeIterator"})


@dataclasses.dataclass(frozen=True)
class PipelineCut:
    """The place where a step is cut in two.

    Attributes:
        handed_on: Names of the tensors that the second half takes from the first, or of the batch.
        waited_for: Names of the ops of the first half that the second waits for besides.
    """

    handed_on: tuple[str, ...]
    waited_for: tuple[str, ...]


def pipeline_cut(
    recorded: RecordedGraph,
    tensors: Collection[str],
    ops: Iterable[str],
    taker: str,
    elsewhere: Collection[str] = (),
) -> PipelineCut | None:
    """The cut of the step that `tensors` and `ops` make.

    Args:
        tensors: Names of the tensors that the second half returns or needs.
        taker: The one node that takes a batch.
        elsewhere: Nodes of the second half that something else replaces.

    Returns:
        None if no part of the step depends on the batch alone, or if a loop of TF 1 hides which
        part does.
    """
    names = recorded.ancestors(
        {*map(input_node, tensors), *ops}, lambda edge: input_node(edge) in elsewhere
    )
    effects = {name for name in names if name != taker and recorded.have_effects([name])}
    written = _resources_of(recorded, effects)
    first, second = {taker}, set(elsewhere)
    for name in names:
        sources = set(map(input_node, recorded[name].input))
        if any(recorded.position[source] > recorded.position[name] for source in sources):
            return None
        if name == taker or name in second:
            continue
        if name in effects or not sources.isdisjoint(second | written):
            second.add(name)
        elif not sources.isdisjoint(first):
            first.add(name)
    if first == {taker}:
        return None
    handed_on = dict.fromkeys(name for name in tensors if input_node(name) in first)
    waited_for: dict[str, None] = {}
    for name in filter(second.__contains__, names):
        for edge in recorded[name].input:
            if input_node(edge) in first and edge[0] == "^":
                waited_for[input_node(edge)] = None
            elif input_node(edge) in first:
                handed_on[tensor_name(edge)] = None
    return PipelineCut(tuple(handed_on), tuple(waited_for))


def _resources_of(recorded: RecordedGraph, names: Iterable[str]) -> set[str]:
    """The variables, tables... that the nodes `names` are given."""
    sources = {input_node(edge) for name in names for edge in recorded[name].input}
    return set(filter(recorded.creates_resource, sources))


def may_prefetch(recorded: RecordedGraph, names: Iterable[str], taker: str) -> bool:
    """True if the batch of the next step may be taken while a step runs.

    It may where nothing can tell the difference: the input does not use what the step uses (a
    variable, a table), and not both of them call Python, which may know of the other.

    Args:
        names: The nodes that the step runs.
        taker: The one node behind them that takes a batch.
    """
    step = recorded.ancestors(names, lambda edge: input_node(edge) == taker)
    iterator = input_node(recorded[taker].input[0])
    source = _behind_iterator(recorded, iterator)
    used = {name for name in source if recorded.creates_resource(name)} - {iterator}
    both_call_python = recorded.call_python(step) and recorded.call_python(source)
    return not both_call_python and used.isdisjoint(step)


def _behind_iterator(recorded: RecordedGraph, iterator: str) -> Collection[str]:
    """The nodes that make the datasets of an iterator, and itself."""
    starts = (node for node in recorded.nodes if node.op in _STARTS)
    datasets = [input_node(n.input[0]) for n in starts if input_node(n.input[1]) == iterator]
    return recorded.ancestors([iterator, *datasets])
