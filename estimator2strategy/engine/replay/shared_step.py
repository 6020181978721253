"""One step of all replicas, of which each part is traced once and called by every replica.

    ┌ replica 0: segment 0 ┐            ┌ segment 1 ┐
    ├ replica 1: segment 0 ┼ all_reduce ┼ segment 1 ┼ ...
    └ replica 2: segment 0 ┘            └ segment 1 ┘

Replicas differ by their variables, their part of the batch, and the seeds of their random ops,
which are kept beside the variables. So a segment is a function that is traced with the variables of
replica 0, and given those of replica k in their place.

TensorFlow puts it in the place of each call as the program starts. (A function that it keeps could
be optimised once too; but what fails in one of several such functions is reported as a mere
cancellation of another.)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.plan import random_ops, rewrites, segments
from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.plan.segments import Segment
from estimator2strategy.engine.replay import handle_packing
from estimator2strategy.engine.replay.importer import GraphImporter
from estimator2strategy.engine.replay.state import State


def can_share(recorded: RecordedGraph, roots: Sequence[str]) -> bool:
    """True if the nodes behind `roots` are the same ones on all replicas.

    False where a seed is part of a node, of a random op inside a function, or one without a
    stateless twin; nor where the program asks which replica it is.
    """
    names = recorded.ancestors(roots)
    inner = rewrites.inner_nodes(recorded.library, recorded.functions_behind(names))
    outer = (recorded[name] for name in names)
    return not any(
        [
            *map(rewrites.differs_by_replica, inner),
            *(rewrites.differs_by_replica(n) and not random_ops.is_seeded(n) for n in outer),
        ]
    )


class SharedStep:
    """The step of all replicas, whose segments are traced once.

    Args:
        recorded: The recorded graph.
        state: The `State` that has the replicas' variables.
        feeds: Names of the tensors that a replica's part of the batch replaces.
        outputs: Names of the tensors that a replica returns.
        ops: Names of the ops that it runs.
        levels: The sums at which all replicas meet; see `plan.segments`.
        of_host: The variables that the host uses too, in the function that is being traced. Their
            handles are not packed: they tell TensorFlow what must wait for what.
    """

    def __init__(
        self,
        recorded: RecordedGraph,
        state: State,
        feeds: Sequence[str],
        outputs: Sequence[str],
        ops: Sequence[str],
        levels: Sequence[Sequence[str]],
        of_host: Collection[str] = (),
    ):
        self._recorded = recorded
        self._state = state
        self._feeds = feeds
        self._outputs = outputs
        self._segments = [
            _Traced(recorded, state, segment, of_host)
            for segment in segments.cut(recorded, feeds, outputs, ops, levels)
        ]

    def trace(
        self, strategy: tf.distribute.Strategy, batches: Sequence[Sequence[tf.Tensor]]
    ) -> list[list[tf.Tensor]]:
        """Traces one step of all replicas; returns for each its outputs.

        Args:
            strategy: The strategy whose replicas they are.
            batches: Per replica, a tensor for each feed.
        """
        values = [dict(zip(self._feeds, batch, strict=True)) for batch in batches]
        # A segment begins when all the batch is there: a step that finds none changes nothing.
        done = [list(batch) for batch in batches]
        for traced in self._segments:
            for replica, device in enumerate(strategy.extended.worker_devices):
                with tf.device(device), tf.control_dependencies(done[replica]):
                    given, finished = traced.call(values[replica], replica)
                values[replica].update(given)
                done[replica] = [finished]
            if sums := traced.segment.sums:
                self._add_up(strategy, sums, values)
        return [
            [self._value(name, of_replica, replica) for name in self._outputs]
            for replica, of_replica in enumerate(values)
        ]

    def _add_up(
        self,
        strategy: tf.distribute.Strategy,
        sums: Sequence[str],
        values: Sequence[dict[str, tf.Tensor]],
    ) -> None:
        """Adds the cross-replica `sums` to the values that each replica has."""
        summands = [segments.summand(self._recorded, name) for name in sums]
        parts = [[of_replica[name] for name in summands] for of_replica in values]
        names = [f"{name}:0" for name in sums]
        for of_replica, totals in zip(values, handle_packing.totals(strategy, parts), strict=True):
            of_replica.update(zip(names, totals, strict=True))

    def _value(self, name: str, values: Mapping[str, tf.Tensor], replica: int) -> tf.Tensor:
        if name in values:
            return values[name]
        return _tf_private.capture(self._state.handle(input_node(name), replica))


class _Traced:
    """A segment, traced once.

    Args:
        recorded: The recorded graph.
        state: The `State` that has the replicas' variables.
        segment: The segment to trace.
        of_host: See `SharedStep`.
    """

    def __init__(
        self, recorded: RecordedGraph, state: State, segment: Segment, of_host: Collection[str]
    ):
        self.segment = segment
        self._state = state
        self._packed = state.packable(n for n in segment.resources if n not in of_host)
        self._single = [n for n in segment.resources if n not in self._packed]
        specs = [_spec(recorded, name) for name in segment.takes]

        @tf.function(autograph=False, input_signature=specs)
        def run(*taken: tf.Tensor) -> list[tf.Tensor]:
            importer = GraphImporter(
                recorded,
                self._handles().__getitem__,
                feeds=dict(zip(segment.takes, taken, strict=True)),
                rewrite=rewrites.for_replica(0, state.num_replicas, {}),
                streams=state.random_streams(),
                found=state.found,
                packed=self._packed,
            )
            importer.supply({}, segment.done, [])
            return [*importer.fetch(segment.gives, segment.ops), tf.constant(0)]

        self._function = run.get_concrete_function()
        self._captured = self._function.captured_inputs

    def _handles(self) -> dict[str, tf.Tensor]:
        """The handle of each of the segment's resources in the function that is being traced."""
        handles = {node: self._state.handle(node) for node in self.segment.resources}
        if self._packed:
            packed = self._state.pack(self._packed)
            unpacked = handle_packing.unpack(packed, [handles[node] for node in self._packed])
            handles.update(zip(self._packed, unpacked, strict=True))
        return handles

    def call(
        self, values: Mapping[str, tf.Tensor], replica: int
    ) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        """Runs the segment as `replica`, in the function that is being traced.

        Args:
            values: The replica's tensors so far, by name.

        Returns:
            The segment's results, by name, and a tensor that is there once all of it has run.
        """
        own = self._state.counterparts(self._captured, self._single, replica)
        if self._packed:
            own[id(self._state.pack(self._packed))] = self._state.pack(self._packed, replica)
        captured = [own.get(id(tensor), tensor) for tensor in self._captured]
        _tf_private.set_captured(self._function, captured)
        *given, finished = self._function(*(values[name] for name in self.segment.takes))
        return dict(zip(self.segment.gives, given, strict=True)), finished


def _spec(recorded: RecordedGraph, name: str) -> tf.TensorSpec:
    tensor = recorded.graph.get_tensor_by_name(name)
    return tf.TensorSpec(tf.TensorShape(tensor.shape.as_proto()), tensor.dtype)
