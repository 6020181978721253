"""The cluster that `TF_CONFIG` and `train_distribute` describe, and its checks."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator2strategy.engine.record.multi_worker import Worker
from estimator2strategy.engine.runtime.devices import mirrored_here
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


def worker_of(config: RunConfig, strategy: Any) -> Worker | None:
    """The place of this process among those that train in step; None if it trains alone.

    Args:
        strategy: The strategy that spans them.
    """
    if config.num_worker_replicas <= 1:
        return None
    jobs = config.cluster_spec.as_dict()
    # Not its number in the cluster, which may have other jobs, an evaluator for one.
    before = 0 if config.task_type != TaskType.WORKER else len(jobs.get(TaskType.CHIEF, ()))
    number = before + config.task_id
    devices = strategy.extended.worker_devices if isinstance(strategy, _IN_STEP) else ()
    here = mirrored_here(tuple(devices)) if len(devices) > 1 else None
    return Worker(number, config.num_worker_replicas, here)


def check_cluster(config: RunConfig, strategy: Any) -> None:
    """Refuses clusters in which several processes would train, each a model by itself.

    Raises:
        ValueError: `TF_CONFIG` names several that train, and not which of them this process is.
        UnsupportedError: The cluster has several workers and neither parameter servers nor a
            strategy that spans them, or is a `remote_cluster`.
    """
    distribute = getattr(config, "_experimental_distribute", None)
    remote = getattr(distribute, "remote_cluster", None)
    if remote:
        raise UnsupportedError(
            f"experimental_distribute.remote_cluster is {remote}: this process was to drive the "
            "servers of a whole cluster by itself.\n"
            "  Start the program as each task of the cluster, with TF_CONFIG, and leave "
            "remote_cluster out. See migration_guide/cluster.md."
        )
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
    devices = len(strategy.extended.worker_devices)
    if strategy.num_replicas_in_sync != devices * config.num_worker_replicas:
        raise UnsupportedError(
            f"{cluster}, but the {type(strategy).__name__} spans {strategy.num_replicas_in_sync} "
            f"replicas, {devices} of them in this process.\n"
            "  Make it once TF_CONFIG is set, and of the same cluster."
        )


def check_evaluation(strategy: Any) -> None:
    """Refuses to evaluate on several processes, as the original did.

    Raises:
        UnsupportedError: The strategy spans several processes.

    Source: `estimator_evaluate`, tensorflow 2.15 distribute/estimator_training.py.
    """
    if not isinstance(strategy, _IN_STEP):
        return
    devices = len(strategy.extended.worker_devices)
    if strategy.num_replicas_in_sync != devices:
        raise UnsupportedError(
            f"RunConfig.eval_distribute is a {type(strategy).__name__} of "
            f"{strategy.num_replicas_in_sync} replicas, {devices} of them in this process. One "
            "process evaluates.\n"
            "  Give it all of its devices with eval_distribute=tf.distribute.MirroredStrategy(), "
            "and leave evaluation to a task of its own, an `evaluator` in TF_CONFIG. See "
            "migration_guide/cluster.md."
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
