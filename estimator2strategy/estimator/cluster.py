"""The cluster that `TF_CONFIG` and `train_distribute` describe, and its checks."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator2strategy.engine.record.multi_worker import Worker
from estimator2strategy.errors import UnsupportedError
from estimator2strategy.estimator.run_config import RunConfig, means_parameter_servers
from estimator2strategy.estimator.tf_config import TaskType

tf1 = tf.compat.v1

_IN_STEP = (
    tf.distribute.MultiWorkerMirroredStrategy,
    tf1.distribute.experimental.MultiWorkerMirroredStrategy,
)
_WAY_OUT = (
    "  Train in step over the same processes, with RunConfig(train_distribute=tf.distribute."
    "MultiWorkerMirroredStrategy()), or\n"
    "  give the cluster parameter servers, which train it asynchronously, or\n"
    "  start one process with all the devices of its machine and leave the workers out of "
    "`cluster` in TF_CONFIG; an evaluator may stay. See migration_guide/unsupported.md."
)


def training_strategy(estimator: Any) -> Any:
    """The strategy that an Estimator was given, or that of its config (look-alikes have that)."""
    return getattr(estimator, "_strategy", None) or estimator.config.train_distribute


def over_parameter_servers(config: RunConfig, strategy: Any) -> bool:
    """True if the processes of the cluster train asynchronously, over parameter servers."""
    asynchronous = strategy is None or means_parameter_servers(strategy)
    return asynchronous and config.num_ps_replicas > 0


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
        ValueError: `TF_CONFIG` names several that train, and not which of them this process is.
        UnsupportedError: The cluster has several workers and neither parameter servers nor a
            strategy that spans them, or several devices in each.
    """
    if over_parameter_servers(config, strategy):
        return
    if config.num_worker_replicas <= 1:
        if strategy is not None:
            _check_task(config)
        return
    cluster = f"TF_CONFIG names {config.num_worker_replicas} workers, the chief included"
    if strategy is None or means_parameter_servers(strategy):
        raise UnsupportedError(
            f"{cluster}, but no parameter servers (`ps`), and RunConfig.train_distribute is "
            f"{type(strategy).__name__ if strategy else None}: each worker would train a model "
            "of its own.\n" + _WAY_OUT
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


def _check_task(config: RunConfig) -> None:
    """Refuses a `TF_CONFIG` with a cluster and without a task, which a RunConfig may come with."""
    jobs = config.cluster_spec.as_dict()
    trainers = sum(len(jobs.get(job, ())) for job in (TaskType.CHIEF, TaskType.WORKER))
    if trainers > max(config.num_worker_replicas, 1):
        raise ValueError(
            f"TF_CONFIG names {trainers} processes that train, and not which of them this one is.\n"
            '  Add a task to it: {"cluster": {...}, "task": {"type": "worker", "index": 0}}.'
        )
