"""Records training in one of the processes of a MultiWorkerMirroredStrategy.

Each process is one replica, and records the same model_fn on its own input. The sums over the
replicas stay in the graph. A replay makes collectives between the processes of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import tensorflow as tf

from estimator2strategy.engine.record.input_fn import Inputs, features_and_labels
from estimator2strategy.engine.record.model_program import ModelProgram
from estimator2strategy.engine.record.placement import Placement
from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.record.recording_strategy import one_replica_of, reports_mean_loss

tf1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class Worker(Placement):
    """One of several processes that train a model together.

    Attributes:
        number: The number of this process; 0 is the chief.
        count: The number of processes.
    """

    number: int
    count: int

    @property
    def input_context(self) -> tf.distribute.InputContext:
        """The `input_context` for an input_fn that takes one."""
        return tf.distribute.InputContext(self.count, self.number, self.count)

    def record_input(self, program: ModelProgram, mode: str, input_fn: Callable) -> Inputs:
        result = program.start(input_fn, mode, input_context=self.input_context)
        return features_and_labels(result)

    def record_model(self, program: ModelProgram, mode: str, inputs: Inputs) -> Recording:
        graph = tf1.get_default_graph()
        with one_replica_of(self.count):
            spec = program.call_model_fn(inputs.features, inputs.labels, mode)
            loss = tf1.tpu.cross_replica_sum(spec.loss)
        if reports_mean_loss(graph):
            loss /= self.count
        return Recording(graph, spec._replace(loss=loss), inputs.hooks, worker=self)
