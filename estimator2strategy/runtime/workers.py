"""Several processes that train one model in step, each with a copy of its variables."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator2strategy.plan import rewrites
from estimator2strategy.plan.graph import RecordedGraph
from estimator2strategy.record.legacy import modern_world
from estimator2strategy.record.workers import Worker

tf1 = tf.compat.v1

# What collectives can add.
_SUMMABLE = frozenset({tf.float16, tf.float32, tf.float64, tf.int32, tf.int64})


def rewrite_for(worker: Worker, recorded: RecordedGraph) -> rewrites.Rewrite:
    """Sums over the replicas become collectives between the processes.

    They are numbered in the order of the graph up to the model, which all processes have in common.
    """
    inside = rewrites.inner_nodes(recorded.library, recorded.functions_behind(recorded.position))
    sums = rewrites.numbered_sums([*recorded.nodes, *inside])
    return rewrites.for_replica(worker.number, worker.count, sums)


class SameStartHook(tf1.train.SessionRunHook):
    """Gives all processes the chief's variables, before the first step.

    A worker may have initialised its own, or have found another checkpoint than the chief.
    """

    def __init__(self, worker: Worker):
        self._worker = worker

    def begin(self) -> None:
        variables = tf1.global_variables()
        self._variables = [v.handle.op.name for v in variables if v.dtype in _SUMMABLE]

    def after_create_session(self, session: Any, coord: Any) -> None:
        del coord
        variables = [session.state.variable(name) for name in self._variables]

        @tf.function(autograph=False)
        def share() -> None:
            for number, variable in enumerate(variables):
                value = variable.read_value()
                mine = value if self._worker.number == 0 else tf.zeros_like(value)
                total = tf.raw_ops.CollectiveReduce(
                    input=mine,
                    group_size=self._worker.count,
                    group_key=rewrites.group_key(self._worker.count),
                    instance_key=rewrites.FIRST_START_KEY + number,
                    merge_op="Add",
                    final_op="Id",
                    subdiv_offsets=[0],
                )
                variable.assign(total, read_value=False)

        with modern_world():
            share()
