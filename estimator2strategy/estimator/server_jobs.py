"""The tasks of a cluster with parameter servers: the seam to `engine/parameter_servers`."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.parameter_servers.servers import (
    has_server,
    servers_of,
    start_server,
)
from estimator2strategy.engine.parameter_servers.session_loop import session_graph
from estimator2strategy.engine.parameter_servers.worker_training import train
from estimator2strategy.engine.record.on_host import OnHost
from estimator2strategy.engine.record.recording import record
from estimator2strategy.engine.runtime.model_dir import held_for_training
from estimator2strategy.estimator.estimator_parts import EstimatorParts
from estimator2strategy.estimator.run_config import RunConfig, means_parameter_servers
from estimator2strategy.estimator.tf_config import TaskType
from estimator2strategy.estimator.warm_start import warm_start

tf1 = tf.compat.v1

_STRATEGIES = (tf.distribute.Strategy, tf1.distribute.Strategy)
# Workers start one after the other, which helps asynchronous training to converge.
_SECS_PER_WORKER, _MOST_SECS = 5, 60


def train_over_parameter_servers(
    parts: EstimatorParts,
    latest_checkpoint: Callable[[], str | None],
    input_fn: Callable[..., Any],
    hooks: Sequence[Any],
    saving_listeners: Sequence[Any],
) -> Any:
    """`Estimator.train` of a task that trains over parameter servers; returns the last loss.

    The task's server is started, unless the program has started one.

    Raises:
        tf.errors.InternalError: A server did not come, or has ended.
    """
    config = parts.program.config
    if not has_server(config):
        start_server(config)
    program = dataclasses.replace(parts.program, in_session=True)
    alone = held_for_training(config.model_dir) if config.is_chief else nullcontext()
    with alone, session_graph(config, parts.is_tf115):
        recording = record(program, OnHost(), ModeKeys.TRAIN, input_fn)
        warm_start(parts.warm_start_from, latest_checkpoint())
        return train(recording, config, hooks, saving_listeners, servers_of(config))


def check_server(config: RunConfig, strategy: Any) -> None:
    """Refuses a cluster whose task cannot start its server, unless its processes train in step.

    Raises:
        RuntimeError: The config has no cluster, no task, or no `master`: a session would not reach
            the server.

    Source: `_TrainingExecutor._start_std_server`, tensorflow_estimator 2.15 training.py.
    """
    if isinstance(strategy, _STRATEGIES) and not means_parameter_servers(strategy):
        return
    lacking = None
    if not config.cluster_spec or not config.task_type or config.task_id is None:
        lacking = "cluster_spec, task_type, and task"
    elif not config.master and not _is_alone(config):
        lacking = "master"
    if lacking:
        raise RuntimeError(
            f"Could not start server; be sure to specify {lacking} in RunConfig or set the "
            "TF_CONFIG environment variable."
        )


def _is_alone(config: RunConfig) -> bool:
    """True if the cluster is one process that trains: it needs no server."""
    nodes = sum(map(len, config.cluster_spec.as_dict().values()))
    return nodes == 1 and config.task_type != TaskType.PS


def serve(config: RunConfig) -> None:
    """The work of a parameter server: holds variables until its process is ended."""
    start_server(config).join()


def start_as_worker(config: RunConfig) -> None:
    """Starts the server of a task that trains, then waits as long as the task has to.

    Source: `_TrainingExecutor._start_distributed_training`, tensorflow_estimator 2.15 training.py.
    """
    start_server(config)
    if config.task_type != TaskType.WORKER:
        return
    most = config.experimental_max_worker_delay_secs
    delay = min(_MOST_SECS if most is None else int(most), (config.task_id + 1) * _SECS_PER_WORKER)
    if delay > 0:
        tf1.logging.info("Waiting %d secs before starting training.", delay)
        time.sleep(delay)
