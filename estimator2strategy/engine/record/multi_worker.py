"""Records training in one of the processes of a MultiWorkerMirroredStrategy.

Each process is one replica, and records the same model_fn on its own input. The sums over the
replicas stay in the graph. A replay makes collectives between the processes of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.record import input_fn as inputs_lib
from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.record.recording_strategy import one_replica_of, reports_mean_loss

tf1 = tf.compat.v1


@dataclasses.dataclass(frozen=True)
class Worker:
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


def record_training(
    graph: tf.Graph, result: Any, worker: Worker, call_model_fn: Callable[[Any, Any], Any]
) -> Recording:
    """Records one process's part of a training.

    Args:
        result: The result of input_fn in this process.
        call_model_fn: `call_model_fn(features, labels)` returns the EstimatorSpec.
    """
    inputs = inputs_lib.features_and_labels(result)
    with one_replica_of(worker.count):
        spec = call_model_fn(inputs.features, inputs.labels)
        loss = tf1.tpu.cross_replica_sum(spec.loss)
    if reports_mean_loss(graph):
        loss /= worker.count
    return Recording(graph, spec._replace(loss=loss), inputs.hooks, worker=worker)
