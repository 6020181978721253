"""A place in a recorded graph where replay goes on in TF2 code.

The host graph of a recording is ordinary: it takes batches, calls metric_fn, counts steps. Where
the legacy program handed work to a TPU, the recording holds only stand-ins: an op to run, and
placeholders for its results. A `Splice` says how to trace the work itself. So hooks, savers and
scaffolds see one graph, as they always did.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay.state import State
from estimator2strategy.engine.replay.step_context import StepContext

Trace: TypeAlias = Callable[[RecordedGraph, State, Sequence[tf.Tensor], StepContext], Sequence[Any]]


@dataclasses.dataclass(frozen=True)
class Splice:
    """The work that runs in place of `op`.

    Attributes:
        op: Name of the op in the recorded graph that stands for the whole.
        inputs: Names of recorded tensors whose values `trace` needs.
        outputs: Names of the placeholders that stand for what `trace` returns.
        trace: `trace(recorded, state, values, context)`, called once per traced function, in the
            function's graph, with a value per input. Returns, per output, what `merge` makes a
            tensor of: the tensor itself, or its parts on all replicas.
        inner: Names of placeholders that only have values inside `trace`: the input of a replica.
        expose: `expose(names)` gives the splice that also returns those tensors of its inside;
            of several replicas, the first's.
        ops: Names of the recorded ops that `trace` runs on the host.
        model: The ReplicatedModel that `trace` runs, if that is what it does.
        merge: Makes a tensor per output of what `trace` returns, or a function that makes it when
            something needs it. It has no effects.
    """

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    trace: Trace
    inner: tuple[str, ...] = ()
    expose: Callable[[Sequence[str]], Splice] | None = None
    ops: tuple[str, ...] = ()
    model: Any = None
    merge: Callable[[Sequence[Any]], list[Any]] = list

    @property
    def nodes(self) -> set[str]:
        return {self.op, *map(input_node, self.outputs)}


def exposing(
    splices: Sequence[Splice], recorded: RecordedGraph, tensors: Sequence[str], ops: Sequence[str]
) -> list[Splice]:
    """The splices, changed to return also the inside tensors that `tensors` and `ops` need.

    A hook may log a tensor of model_fn, or a summary may hold one, where model_fn runs on replicas.
    """
    exposed = []
    for splice in splices:
        if splice.expose:
            inside = recorded.frontier(tensors, ops, splice.inner, splice.outputs)
            splice = splice.expose(inside) if inside else splice
        exposed.append(splice)
    return exposed


def leaving(splices: Sequence[Splice], recorded: RecordedGraph, names: Sequence[str]) -> set[str]:
    """The nodes inside of `splices` whose values `names` (tensors or ops) need outside of them."""
    return {
        input_node(tensor)
        for splice in splices
        if splice.expose
        for tensor in recorded.frontier(names, (), splice.inner, splice.outputs)
    }


def inside(splices: Sequence[Splice]) -> list[str]:
    """The nodes that must run on each replica, where one of `splices` is the step of replicas."""
    return [name for splice in splices if splice.model for name in splice.model.roots]


def needed(
    splices: Sequence[Splice], recorded: RecordedGraph, roots: set[str], fed: set[str]
) -> list[Splice]:
    """The splices behind the nodes `roots`, in the order in which they must run.

    Args:
        splices: In an order in which each depends only on earlier ones.
        fed: Nodes whose values the caller supplies.
    """
    chosen = []
    for splice in reversed(splices):
        behind = recorded.ancestors(roots, lambda edge: input_node(edge) in fed)
        if splice.nodes.intersection(behind):
            chosen.append(splice)
            roots = roots | set(map(input_node, splice.inputs))
    return chosen[::-1]


def used_beside(splices: Sequence[Splice], recorded: RecordedGraph, roots: set[str]) -> set[str]:
    """The variables that the host uses, where the nodes `roots` and the `splices` run."""
    supplied = {node for splice in splices for node in splice.nodes}
    inputs = (input_node(name) for splice in splices for name in splice.inputs)
    names = {*roots, *inputs, *(op for splice in splices for op in splice.ops)} - supplied
    return recorded.variables_behind(names, lambda edge: input_node(edge) in supplied)
