"""`MultiWorkerMirroredStrategy` as programs of TF 1.15 make it: in graph mode.

TF 1.15's Estimator started the servers through which such processes meet when it trained. Today's
strategy does so in its constructor, but not in graph mode: the processes would then wait for each
other for ever. So these are made outside of it. In an evaluator or a parameter server, which train
nothing, they are strategies of one process.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator2strategy.engine.worlds import modern_world

_AUTO = tf.distribute.experimental.CollectiveCommunication.AUTO
_ALONE = tf.distribute.cluster_resolver.SimpleClusterResolver(tf.train.ClusterSpec({}))


def _resolver(cluster_resolver: Any) -> Any:
    """Returns the resolver of the other processes; None if `TF_CONFIG` names them."""
    resolver = cluster_resolver or tf.distribute.cluster_resolver.TFConfigClusterResolver()
    return _ALONE if resolver.task_type in ("evaluator", "ps") else cluster_resolver


class MultiWorkerMirroredStrategyV1(
    tf.compat.v1.distribute.experimental.MultiWorkerMirroredStrategy
):
    """`tf.distribute.experimental.MultiWorkerMirroredStrategy` of TF 1.15.

    Args:
        communication: A `tf.distribute.experimental.CollectiveCommunication`.
        cluster_resolver: Where the other processes are; None: where `TF_CONFIG` says.

    Raises:
        RuntimeError: TensorFlow has started its devices already.
    """

    def __init__(self, communication: Any = _AUTO, cluster_resolver: Any = None):
        with modern_world():
            super().__init__(communication, _resolver(cluster_resolver))


class MultiWorkerMirroredStrategy(tf.distribute.experimental.MultiWorkerMirroredStrategy):
    """`tf.compat.v2.distribute.experimental.MultiWorkerMirroredStrategy`; see that of V1."""

    def __init__(self, communication: Any = _AUTO, cluster_resolver: Any = None):
        with modern_world():
            super().__init__(communication, _resolver(cluster_resolver))
