"""Says when the next batch may be taken: before a step has ended, or only then."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.graph import RecordedGraph

_STARTS = frozenset({"MakeIterator"})


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
