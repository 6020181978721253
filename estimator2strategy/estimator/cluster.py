"""The cluster that `TF_CONFIG` and `train_distribute` describe, and its checks."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator2strategy.engine.record.multi_worker import Worker
from estimator2strategy.errors import UnsupportedError
from estimator2strategy.estimator.run_config import RunConfig

tf1 = tf.compat.v1

_PARAMETER_SERVERS = (
    tf1.distribute.experimental.ParameterServerStrategy,
    tf.distribute.ParameterServerStrategy,
)
_IN_STEP = (
    tf.distribute.MultiWorkerMirroredStrategy,
    tf1.distribute.experimental.MultiWorkerMirroredStrategy,
)
_WAY_OUT = (
    "  Train in step over the same processes, with RunConfig(train_distribute=tf.distribute."
    "MultiWorkerMirroredStrategy()), or\n"
    "  start one process with all the devices of its machine and leave the workers out of "
    "`cluster` in TF_CONFIG; an evaluator may stay. See migration_guide/unsupported.md."
)


def worker_of(config: RunConfig) -> Worker | None:
    """The place of this process among those that train in step; None if it trains alone."""
    if config.num_worker_replicas <= 1:
        return None
    number = config.global_id_in_cluster
    assert number is not None  # it is in the cluster, or `check_cluster` refused it
    return Worker(number, config.num_worker_replicas)


def check_cluster(config: RunConfig, strategy: Any) -> None:
    """Refuses clusters in which several processes would train, each a model by itself.

    Raises:
        UnsupportedError: The cluster trains asynchronously, over parameter servers; or it has
            several workers, and a strategy that does not span them, or several devices in each.
    """
    if isinstance(strategy, _PARAMETER_SERVERS):
        raise UnsupportedError(
            f"train_distribute={type(strategy).__name__}: parameter servers are not supported. "
            "Their workers update shared variables whenever they please, which a Session did.\n"
            + _WAY_OUT
        )
    if config.num_worker_replicas <= 1:
        return
    cluster = f"TF_CONFIG names {config.num_worker_replicas} workers, the chief included"
    if strategy is None:
        raise UnsupportedError(
            f"{cluster}, and RunConfig.train_distribute is None: that is asynchronous training "
            "over parameter servers, which is not supported.\n" + _WAY_OUT
        )
    if not isinstance(strategy, _IN_STEP):
        raise UnsupportedError(
            f"{cluster}, but train_distribute is a {type(strategy).__name__}, which spans the "
            "devices of one process.\n" + _WAY_OUT
        )
    if strategy.num_replicas_in_sync != config.num_worker_replicas:
        raise UnsupportedError(
            f"{cluster}, and {strategy.num_replicas_in_sync} replicas: more than one device in a "
            "process is not supported in a cluster.\n"
            "  Start one process per device: CUDA_VISIBLE_DEVICES gives each its own."
        )
