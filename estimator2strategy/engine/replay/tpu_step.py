"""One step of all replicas of a TPUStrategy: the recorded graph, imported once, as one TPU program.

    variables ─ TPUReplicatedInput ┐                            ┌ TPUReplicatedOutput ─ loss, ...
    batch     ─ TPUReplicatedInput ┴ recorded graph, untouched ─┴ variables, updated in place

Nothing is cut or rewritten: a CrossReplicaSum is native there. Every replica runs the same program,
so replicas differ by their variables and their part of the batch only. The TPU decides which
numbers a random op draws on each core, as it always did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.plan.rewrites import ON_TPU
from estimator2strategy.engine.replay.importer import GraphImporter
from estimator2strategy.engine.replay.state import State
from estimator2strategy.engine.user_code import user_line
from estimator2strategy.errors import UnsupportedError


def trace(
    model: Any,
    recorded: RecordedGraph,
    state: State,
    batches: Sequence[Sequence[tf.Tensor]],
    watched: str | None = None,
) -> list[Any]:
    """Traces one step of all replicas.

    Args:
        model: The ReplicatedModel to run.
        recorded, state: Its graph, and the variables of all cores.
        batches: Per replica, a tensor for each of `model.feeds`, of fully defined shape.
        watched: One of `model.outputs`, which a gauge watches for NaN; see `Gauges`.

    Returns:
        For each of `model.outputs`, its values on all replicas (a PerReplica).

    Raises:
        UnsupportedError: model_fn uses a resource that a TPU core cannot have, a table for example.
    """
    strategy = model.strategy
    make_variables(recorded, state, model.roots)

    def per_replica(feed: int) -> Any:
        # TF 1's strategy lacks the method, and has what the method asks.
        return tf.distribute.Strategy.experimental_distribute_values_from_function(
            strategy, lambda context: batches[context.replica_id_in_sync_group][feed]
        )

    def partitioned(tensor: tf.Tensor, parts: Any) -> tf.Tensor:
        if parts is None:
            return tensor
        return strategy.experimental_split_to_logical_devices(tensor, parts)

    # A function of its own: imported into the replicated graph itself, nodes would get control
    # inputs from ops of `strategy.run`, which `import_graph_def` cannot map.
    @tf.function(autograph=False)
    def step(*batch: tf.Tensor) -> list[tf.Tensor]:
        if model.partitions:
            batch = tuple(map(partitioned, batch, model.partitions))
        feeds = dict(zip(model.feeds, batch, strict=True))
        values = _importer(recorded, state, feeds).fetch(model.outputs, model.ops)
        if watched:
            state.gauges.note_nan(values[model.outputs.index(watched)])
        return values

    args = tuple(map(per_replica, range(len(model.feeds))))
    outputs: list[Any] = strategy.run(step, args=args)
    return outputs


def trace_replica(
    recorded: RecordedGraph,
    state: State,
    outputs: Sequence[str],
    ops: Sequence[str],
    feeds: Mapping[str, tf.Tensor],
) -> list[tf.Tensor]:
    """Traces one step of the replica in whose program this is called.

    Args:
        recorded, state: The graph, and the variables of all cores, which `make_variables` has made.
        outputs, ops: Names of the tensors to return, and of the ops to run.
        feeds: Name of a recorded tensor -> its value on this replica.
    """

    @tf.function(autograph=False)
    def step(*values: tf.Tensor) -> list[tf.Tensor]:
        given = dict(zip(feeds, values, strict=True))
        return _importer(recorded, state, given).fetch(outputs, ops)

    results: list[tf.Tensor] = step(*feeds.values())
    return results


def make_variables(recorded: RecordedGraph, state: State, roots: Sequence[str]) -> None:
    """Makes the variables behind nodes, because no replica's program can make them for all.

    Raises:
        UnsupportedError: There is a resource that a TPU core cannot have.
    """
    for node in recorded.ancestors(roots):
        if recorded.creates_resource(node):
            _variable(recorded, state, node)


def _importer(
    recorded: RecordedGraph, state: State, feeds: Mapping[str, tf.Tensor]
) -> GraphImporter:
    """A replay of the replica in whose program this is called."""

    def handle_of(node: str) -> tf.Tensor:
        return _variable(recorded, state, node).handle

    return GraphImporter(recorded, handle_of, feeds=feeds, rewrite=ON_TPU)


def _variable(recorded: RecordedGraph, state: State, node: str) -> tf.Variable:
    is_variable = recorded[node].op == "VarHandleOp"
    variable = state.tpu_variable(node) if is_variable else None
    if variable is None:
        line = user_line(recorded.graph.get_operation_by_name(node).traceback)
        raise UnsupportedError(
            f"model_fn uses {node!r} ({recorded[node].op}), made at {line}\n"
            "  It lives on the host, and TPU cores cannot reach it.\n"
            "  Use it in input_fn, or in a host_call, instead."
        )
    return variable
