"""Replays a model on every replica of a `tf.distribute` strategy.

    ┌ replica 0: import level 0 ┐            ┌ import level 1 ┐
    ├ replica 1: import level 0 ┼ all_reduce ┼ import level 1 ┼ ...
    └ replica 2: import level 0 ┘            └ import level 1 ┘

Each replica imports the recorded graph on its own variables and its slice of the batch. Where the
program summed over cores, the replicas meet in `ReplicaContext.all_reduce`; nothing is
communicated that the program did not ask for. Where several processes train in step, each sum is a
collective over the replicas of all of them, and nothing is cut.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.plan import rewrites, segments
from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay import tpu_step
from estimator2strategy.engine.replay.importer import GraphImporter
from estimator2strategy.engine.replay.shared_step import SharedStep, can_share
from estimator2strategy.engine.replay.state import State
from estimator2strategy.engine.replay.step_context import Peers
from estimator2strategy.engine.replay.tpu_variables import is_tpu


@dataclasses.dataclass(frozen=True)
class ReplicatedModel:
    """A recorded model_fn that runs on every replica.

    Attributes:
        strategy: The strategy whose replicas run it.
        feeds: Names of the placeholders that a replica's part of the batch replaces.
        outputs: Names of the tensors that each replica returns.
        ops: Names of the ops that each replica runs.
        partitions: For each of `feeds`, into how many parts each axis is cut, for the cores of one
            replica; None: every core gets the whole. Empty: a replica is one core.
    """

    strategy: tf.distribute.Strategy
    feeds: tuple[str, ...]
    outputs: tuple[str, ...]
    ops: tuple[str, ...] = ()
    partitions: tuple[Any, ...] = ()

    @property
    def roots(self) -> list[str]:
        """Names of the nodes that must run."""
        return [*map(input_node, self.outputs), *self.ops]

    def trace(
        self,
        recorded: RecordedGraph,
        state: State,
        values: Sequence[tf.Tensor],
        host_uses: Collection[str] = (),
        watched: str | None = None,
    ) -> list[tuple[tf.Tensor, ...]]:
        """Traces one step of all replicas.

        Args:
            recorded, state: The graph, and the variables of all replicas.
            values: The feeds of replica 0, then those of replica 1, and so on.
            host_uses: The variables that the host's part of the step uses.
            watched: One of `outputs`; each core of a TPU notes since which step its own is NaN.

        Returns:
            For each output, its value on every replica.

        Raises:
            UnsupportedError: model_fn uses what replicas of this strategy cannot have.
        """
        recorded.refresh()
        size = len(self.feeds)
        replicas = range(self.strategy.num_replicas_in_sync)
        batches = [values[replica * size : (replica + 1) * size] for replica in replicas]
        if is_tpu(self.strategy):
            return self._of_each(tpu_step.trace(self, recorded, state, batches, watched))
        part = ReplicatedPart.of_outputs(recorded, self.outputs, self.ops, state.peers)
        if not part.collectives and can_share(recorded, self.roots):
            step = SharedStep(
                recorded, state, self.feeds, part.outputs, part.ops, part.levels, host_uses
            )
            return list(zip(*step.trace(self.strategy, batches), strict=True))

        def replica_step() -> list[tf.Tensor]:
            context = tf.distribute.get_replica_context()
            replica = int(tf.get_static_value(context.replica_id_in_sync_group))
            feeds = dict(zip(self.feeds, batches[replica], strict=True))
            return part.replay(recorded, state, feeds)

        return self._of_each(self.strategy.run(replica_step))

    def _of_each(self, outputs: Sequence[Any]) -> list[tuple[tf.Tensor, ...]]:
        return [self.strategy.experimental_local_results(output) for output in outputs]


@dataclasses.dataclass(frozen=True)
class ReplicatedPart:
    """The part of a recorded graph that each replica runs, cut at the cross-replica sums.

    Attributes:
        outputs, ops: Names of the tensors that a replica returns, and of the ops that it runs.
        collectives: Numbers of the sums that become collectives; see `_inner_sums` and `Peers`.
        levels: The sums at which all replicas meet, level by level.
    """

    outputs: tuple[str, ...]
    ops: tuple[str, ...]
    collectives: Mapping[str, int]
    levels: Sequence[Sequence[str]]

    @classmethod
    def of_outputs(
        cls,
        recorded: RecordedGraph,
        outputs: Sequence[str],
        ops: Sequence[str],
        peers: Peers | None = None,
    ) -> ReplicatedPart:
        roots = [*map(input_node, outputs), *ops]
        collectives = peers.sums if peers else _inner_sums(recorded, roots)
        levels = [] if collectives else segments.levels(recorded, roots)
        return cls(tuple(outputs), tuple(ops), collectives, levels)

    def replay(
        self, recorded: RecordedGraph, state: State, feeds: Mapping[str, tf.Tensor]
    ) -> list[tf.Tensor]:
        """Traces one step of the replica in whose context this is called; returns its outputs.

        Args:
            state: The `State` that has the replicas' variables.
            feeds: Values that replace tensors of the recorded graph, by tensor name.
        """
        context = tf.distribute.get_replica_context()
        replica = int(tf.get_static_value(context.replica_id_in_sync_group))
        peers = state.peers or Peers(0, context.num_replicas_in_sync, self.collectives)
        importer = GraphImporter(
            recorded,
            lambda node: state.handle(node, replica),
            feeds=feeds,
            rewrite=peers.rewrite(replica),
            streams=state.random_streams(replica),
            found=state.found,
        )
        for sums in self.levels:
            _reduce(recorded, importer, sums)
        return importer.fetch(self.outputs, self.ops)


def _reduce(recorded: RecordedGraph, importer: GraphImporter, sums: Sequence[str]) -> None:
    """Replaces the cross-replica sums of one level by their values."""
    parts = importer.fetch([segments.summand(recorded, name) for name in sums])
    context = tf.distribute.get_replica_context()
    values = context.all_reduce(tf.distribute.ReduceOp.SUM, parts)
    importer.supply(
        {f"{name}:0": total for name, total in zip(sums, values, strict=True)}, [], values
    )


def _inner_sums(recorded: RecordedGraph, roots: Sequence[str]) -> dict[str, int]:
    """Numbers all sums if one stands inside a function (a branch of a cond); else none.

    The cut cannot reach into functions. Collectives can; but they add in an order of their own.
    """
    names = recorded.ancestors(roots)
    inside = rewrites.inner_nodes(recorded.library, recorded.functions_behind(names))
    if not any(node.op == rewrites.CROSS_REPLICA_SUM for node in inside):
        return {}
    return rewrites.numbered_sums([*(recorded[name] for name in names), *inside])
