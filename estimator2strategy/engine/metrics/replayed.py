"""A Keras metric out of any recorded `(value, update)` pair, by replaying both.

For the metrics that no Keras class stands for: a user's own streaming metric, `tf.metrics` wrapped
in more maths, `tf.contrib.metrics`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from estimator2strategy.engine.metrics.keras_classes import scope_name
from estimator2strategy.engine.plan.edges import input_node, tensor_name
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.plan.rewrites import SINGLE_REPLICA
from estimator2strategy.engine.replay.importer import GraphImporter


class ReplayedMetric(keras.metrics.Metric):
    """Updates and computes a metric with the nodes that the legacy program recorded for it.

    `update_state` takes the values of the recorded tensors `inputs`, in that order: what the
    metric's own arithmetic is given by the rest of the graph.

    Args:
        recorded: The graph.
        part: The metric's own part of it; see `part_of`.
        value: Name of the value tensor.
        update: Name of the update op.
        initial: Initial value of each variable of `part.state`.
        name: The metric's name.
    """

    def __init__(
        self,
        recorded: RecordedGraph,
        part: Part,
        value: str,
        update: str,
        initial: dict[str, np.ndarray],
        name: str,
    ):
        super().__init__(name=scope_name(name))
        self.inputs = part.inputs
        self._initial = initial
        self._recorded = recorded
        self._part = part
        self._state = {
            node: self.add_variable(
                shape=array.shape,
                dtype=array.dtype.name,
                initializer=_constant(array),
                name=node.rpartition("/")[2],
            )
            for node, array in initial.items()
        }
        self.name = name
        specs = [_spec(recorded, tensor) for tensor in part.inputs]
        self._update = tf.function(
            lambda *values: self._replay(values, [], [update]),
            input_signature=specs,
            autograph=False,
        )
        self._reads = _reads(recorded, value, initial)
        self._result = tf.function(
            lambda *sums: self._replay((), [value], [], dict(zip(self._reads, sums, strict=True)))[
                0
            ],
            autograph=False,
        )

    def update_state(self, *values: Any) -> None:
        self._update(*values)

    def result(self) -> tf.Tensor:
        # Under a strategy these are the sums over all replicas.
        sums = [tf.convert_to_tensor(self._state[node]) for node in self._reads.values()]
        return self._result(*sums)

    def reset_state(self) -> None:
        for node, variable in self._state.items():
            variable.assign(self._initial[node])

    def _replay(
        self,
        values: Sequence[tf.Tensor],
        tensors: Sequence[str],
        ops: Sequence[str],
        reads: dict[str, tf.Tensor] | None = None,
    ) -> list[tf.Tensor]:
        importer = GraphImporter(
            self._recorded,
            lambda node: self._state[node].value.handle,
            feeds=dict(zip(self.inputs, values, strict=True)) if values else reads,
            rewrite=SINGLE_REPLICA,
        )
        importer.supply({}, self._part.outside, [])
        return importer.fetch(tensors, ops)


def replayed_metric(
    name: str, recorded: RecordedGraph, value: tf.Tensor, update: Any
) -> ReplayedMetric | None:
    """A metric that replays the pair, None where that cannot give what the graph itself gives.

    That is where the pair keeps no variables of its own kind (metric or local variables), where
    their shapes change while it is updated, or where the value needs this batch's tensors.
    """
    graph = recorded.graph
    update_op = update if isinstance(update, tf.Operation) else update.op
    variables = {
        variable.op.name: variable
        for key in (tf.compat.v1.GraphKeys.METRIC_VARIABLES, tf.compat.v1.GraphKeys.LOCAL_VARIABLES)
        for variable in graph.get_collection(key)
    }
    part = part_of(recorded, [update_op.name], variables)
    result = part_of(recorded, [value.op.name], variables)
    if not part.state or result.inputs or not set(result.state) <= set(part.state):
        return None
    with graph.as_default():
        initial = {n: tf.get_static_value(variables[n].initial_value) for n in part.state}
    if any(array is None for array in initial.values()) or not _only_own(recorded, part):
        return None
    if any(not variables[node].shape.is_fully_defined() for node in part.state):
        return None
    return ReplayedMetric(recorded, part, value.name, update_op.name, initial, name)


def _only_own(recorded: RecordedGraph, part: Part) -> bool:
    """True if nothing but values comes in: no table, no other variable."""
    return all(_spec(recorded, name).dtype not in (tf.resource, tf.variant) for name in part.inputs)


def _reads(recorded: RecordedGraph, value: str, state: Collection[str]) -> dict[str, str]:
    """Names of the tensors by which `value` reads variables -> the variable (its VarHandleOp)."""
    behind = (recorded[name] for name in recorded.ancestors([input_node(value)]))
    reads = (node for node in behind if node.op == "ReadVariableOp")
    return {f"{n.name}:0": input_node(n.input[0]) for n in reads if input_node(n.input[0]) in state}


def _constant(array: np.ndarray) -> Callable[..., tf.Tensor]:
    return lambda shape, dtype=None: tf.constant(array, dtype=dtype)


def _spec(recorded: RecordedGraph, name: str) -> tf.TensorSpec:
    tensor = recorded.graph.get_tensor_by_name(name)
    return tf.TensorSpec(tf.TensorShape(tensor.shape.as_proto()), tensor.dtype)


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
