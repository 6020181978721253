"""Records a model_fn that was written for `RunConfig(train_distribute=...)`, as one replica.

Under a strategy TF1's optimizers summed gradients over the replicas and scaled the loss. While
model_fn is recorded, it sees a strategy with the number of replicas. Reductions of that strategy
leave cross-replica sums in the graph, so the result is a model for several replicas like any other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from estimator2strategy.engine import _tf_private

tf1 = tf.compat.v1


class _RecordingExtended(_tf_private.OneDeviceExtended):
    """One replica of several, in a graph."""

    def __init__(self, container: tf1.distribute.Strategy, num_replicas: int):
        self._replicas = num_replicas
        super().__init__(container, "/device:CPU:0")

    @property
    def _num_replicas_in_sync(self) -> int:
        return self._replicas

    def _reduce_to(
        self, reduce_op: tf.distribute.ReduceOp, value: Any, destinations: Any, options: Any
    ) -> Any:
        del destinations, options
        if self._replicas == 1:
            return value
        value = tf.convert_to_tensor(value)  # IndexedSlices become dense, as in CrossShardOptimizer
        total = tf1.tpu.cross_replica_sum(value)
        return total / self._replicas if reduce_op == tf.distribute.ReduceOp.MEAN else total


class RecordingStrategy(tf1.distribute.Strategy):
    """The strategy that input_fn and model_fn see while they are recorded."""

    def __init__(self, num_replicas: int):
        super().__init__(_RecordingExtended(self, num_replicas))


def all_replicas_of(num_replicas: int) -> contextlib.AbstractContextManager[None]:
    """The context in which Estimator called input_fn under a strategy: for all of its replicas."""
    scope: contextlib.AbstractContextManager[None] = RecordingStrategy(num_replicas).scope()
    return scope


@contextlib.contextmanager
def one_replica_of(num_replicas: int) -> Iterator[None]:
    """The context in which Estimator called model_fn under a strategy: one of its replicas.

    Source: `Estimator._actual_train_model_distributed`, tensorflow_estimator 2.15.
    """
    strategy = RecordingStrategy(num_replicas)
    with (
        _tf_private.tpu_shard_context(num_replicas),
        strategy.scope(),
        strategy._scale_loss_for_estimator_enabled(),
        _tf_private.replica_context(strategy),
    ):
        yield


def reports_mean_loss(graph: tf.Graph) -> bool:
    """True if the loss to report is the replicas' mean, and not their sum.

    It is the sum where the program itself scaled each replica's loss to the global batch.

    Source: `_get_loss_reduce_op_for_reporting`, tensorflow_estimator 2.15.
    """
    scaled = getattr(graph, "_is_loss_scaled_by_optimizer", False)
    return scaled and getattr(graph, "_last_loss_reduction", None) not in ("sum",)
