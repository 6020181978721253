"""Records training in one of the processes of a MultiWorkerMirroredStrategy.

Each process records the same model_fn on its own input, as one replica, or as the replicas of its
devices. The sums over the replicas stay in the graph. A replay makes collectives between all of
them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.record import feeding
from estimator2strategy.engine.record.input_fn import features_and_labels, refuse_queue_runners
from estimator2strategy.engine.record.model_program import ModelProgram
from estimator2strategy.engine.record.recording import Placement, Recording
from estimator2strategy.engine.record.recording_strategy import (
    all_replicas_of,
    one_replica_of,
    reports_mean_loss,
)
from estimator2strategy.engine.record.replicated import RecordedReplicas

tf1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class Worker(Placement):
    """One of several processes that train a model together.

    Attributes:
        number: The number of this process; 0 is the chief.
        count: The number of processes.
        strategy: The strategy of this process's devices, if it has several; each process has as
            many.
    """

    number: int
    count: int
    strategy: tf.distribute.Strategy | None = None

    @property
    def devices(self) -> int:
        """The number of replicas in each process."""
        return self.strategy.num_replicas_in_sync if self.strategy else 1

    @property
    def replicas(self) -> int:
        """The number of replicas in all processes."""
        return self.count * self.devices

    @property
    def input_context(self) -> tf.distribute.InputContext:
        """The `input_context` for an input_fn that takes one."""
        return tf.distribute.InputContext(self.count, self.number, self.replicas)

    def record_input(self, program: ModelProgram, mode: str, input_fn: Callable[..., Any]) -> Any:
        with all_replicas_of(self.replicas):
            result = program.start(input_fn, mode, input_context=self.input_context)
        refuse_queue_runners(input_fn)
        several = self.strategy is not None
        return feeding.per_replica(result, self.devices) if several else features_and_labels(result)

    def record_model(self, program: ModelProgram, mode: str, inputs: Any) -> Recording:
        graph = tf1.get_default_graph()

        def call(features: Any, labels: Any) -> Any:
            spec = program.call_model_fn(features, labels, mode)
            return spec._replace(loss=tf1.tpu.cross_replica_sum(spec.loss))

        def reported(loss: tf.Tensor) -> tf.Tensor:
            return loss / self.replicas if reports_mean_loss(graph) else loss

        if self.strategy is None:
            with one_replica_of(self.replicas):
                spec = call(inputs.features, inputs.labels)
            return Recording(
                graph, spec._replace(loss=reported(spec.loss)), inputs.hooks, worker=self
            )

        replicas = RecordedReplicas(
            inputs, self.strategy, call, inside=lambda _: one_replica_of(self.replicas)
        )
        spec = replicas.spec
        # All have the same loss. It is asked of each, because each must take part in its sum.
        loss = reported(replicas.mean(spec.loss))
        train_op = replicas.runs(spec.train_op)
        return replicas.recording(spec._replace(loss=loss, train_op=train_op), worker=self)
