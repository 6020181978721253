"""The place of a process in its cluster, as the environment's `TF_CONFIG` tells it.

Nothing here starts a server or touches a device.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, cast

import tensorflow as tf

from estimator2strategy.engine.runtime.tf_config_form import TASK, parsed, wrong
from estimator2strategy.engine.wrong_argument import wrong_argument


class TaskType:
    """Names of the jobs of a cluster. MASTER is what CHIEF was called before TF 1.4."""

    MASTER: Final = "master"
    PS: Final = "ps"
    WORKER: Final = "worker"
    CHIEF: Final = "chief"
    EVALUATOR: Final = "evaluator"


@dataclasses.dataclass(frozen=True)
class Task:
    """The place of this process in its cluster; the fields are properties of `RunConfig`."""

    task_type: str
    task_id: int
    is_chief: bool
    global_id_in_cluster: int | None
    service: dict[str, Any] | None
    cluster_spec: Any = dataclasses.field(default_factory=lambda: tf.train.ClusterSpec({}))
    master: str = ""
    evaluation_master: str = ""
    num_ps_replicas: int = 0
    num_worker_replicas: int = 0
    device_filters: tuple[str, ...] | None = None


@contextlib.contextmanager
def _naming_tf_config() -> Iterator[None]:
    """Gives what is wrong with `TF_CONFIG` the form of a wrong argument."""
    try:
        yield
    except (TypeError, ValueError) as error:
        instead = 'Set it to {"cluster": {job: [address, ...]}, "task": {"type": job, "index": 0}}.'
        text = os.environ.get("TF_CONFIG", "")
        raise wrong_argument(str(error), text, instead, type(error)) from error.__cause__


@_naming_tf_config()
def read_tf_config() -> dict[str, Any]:
    """The environment's `TF_CONFIG`, {} if it is not set.

    Raises:
        ValueError: It is not a JSON object, or a field of it has another form.
    """
    tf_config = parsed()
    if tf_config:
        tf.compat.v1.logging.info("TF_CONFIG environment variable: %s", tf_config)
    return tf_config


def warn_of_form() -> None:
    """Logs what is wrong with the form of `TF_CONFIG`, if something is.

    A strategy that the program makes before any RunConfig reads it too, and may wait for processes
    that are not there.
    """
    try:
        parsed()
    except ValueError as error:
        tf.compat.v1.logging.error(str(error))


@_naming_tf_config()
def read_task(
    tf_config: Mapping[str, Any], *, under_strategy: bool, over_servers: bool = False
) -> Task:
    """This process as `TF_CONFIG` describes it.

    Args:
        tf_config: Content of `TF_CONFIG`.
        under_strategy: True if a strategy trains. Such a cluster may do without a chief, then its
            first worker is the chief, and its workers talk to each other, not only to ps. If it
            names no task, this process passes for one that is alone, until it trains.
        over_servers: True if that strategy is one of parameter servers.
    """
    cluster_spec = tf.train.ClusterSpec(tf_config.get("cluster", {}))
    service = tf_config.get("service")
    if service is not None and not isinstance(service, dict):
        raise TypeError(f'If "service" is set in TF_CONFIG, it must be a dict. Given {service!r}')
    if not cluster_spec:
        return _local_task(tf_config, service)
    chief = _chief_job(cluster_spec, worker_may_be_chief=under_strategy)
    if under_strategy and chief != TaskType.MASTER and not tf_config.get("task"):
        return dataclasses.replace(_local_task({}, service), cluster_spec=cluster_spec)
    task_type, task_id = _checked_task(cluster_spec, tf_config.get("task", {}), chief)
    if task_type == TaskType.EVALUATOR:
        # It is no part of the training cluster, so it does not get to see it.
        return Task(
            task_type=task_type,
            task_id=task_id,
            is_chief=False,
            global_id_in_cluster=None,
            service=service,
            evaluation_master=tf_config.get("eval_session_master", ""),
        )
    between_graph = not under_strategy or over_servers or chief == TaskType.MASTER
    return Task(
        task_type=task_type,
        task_id=task_id,
        is_chief=task_type == chief and task_id == 0,
        global_id_in_cluster=_global_id(cluster_spec, task_type, task_id, chief),
        service=service,
        cluster_spec=cluster_spec,
        master=_session_master(cluster_spec, task_type, task_id, tf_config),
        num_ps_replicas=_count(cluster_spec, {TaskType.PS}),
        num_worker_replicas=_count(cluster_spec, {TaskType.WORKER, chief}),
        device_filters=_device_filters(task_type, task_id) if between_graph else None,
    )


def _local_task(tf_config: Mapping[str, Any], service: dict[str, Any] | None) -> Task:
    task = tf_config.get("task", {})
    job, index = task.get("type", TaskType.WORKER), int(task.get("index", 0))
    if job != TaskType.WORKER:
        raise ValueError(
            f'If "cluster" is not set in TF_CONFIG, task type must be WORKER. Given: {job}. '
            'Add to TF_CONFIG: "cluster": {"chief": ["host0:2222"], ...}, or leave the task out.'
        )
    if index != 0:
        raise ValueError(
            f'If "cluster" is not set in TF_CONFIG, task index must be 0. Given: {index}. '
            'Add to TF_CONFIG: "cluster": {"chief": ["host0:2222"], ...}, or leave the task out.'
        )
    return Task(
        task_type=TaskType.WORKER,
        task_id=0,
        is_chief=True,
        global_id_in_cluster=0,
        service=service,
        master=tf_config.get("session_master", ""),
        evaluation_master=tf_config.get("eval_session_master", ""),
        num_worker_replicas=1,
    )


def _chief_job(cluster_spec: Any, *, worker_may_be_chief: bool) -> str:
    """The job that leads the cluster."""
    if TaskType.MASTER in cluster_spec.jobs:
        if TaskType.CHIEF in cluster_spec.jobs:
            raise ValueError(
                "If `master` node exists in `cluster`, job `chief` is not supported. "
                "They are two names for the same job: keep `chief`."
            )
        return TaskType.MASTER
    if worker_may_be_chief and TaskType.CHIEF not in cluster_spec.jobs:
        return TaskType.WORKER
    return TaskType.CHIEF


def _checked_task(cluster_spec: Any, task: Mapping[str, Any], chief: str) -> tuple[str, int]:
    """Job and index of this process, which exist in the cluster."""
    nodes, jobs = _count(cluster_spec, {chief}), cluster_spec.as_dict()
    if not nodes:
        form = f'one with a "{chief}", as {{"{chief}": ["host0:2222"], ...}}'
        raise ValueError(
            f'If "cluster" is set in TF_CONFIG, it must have one "{chief}" node. '
            + wrong("cluster", jobs, form)
        )
    if nodes > 1 and chief != TaskType.WORKER:
        raise ValueError(
            f'The "cluster" in TF_CONFIG must have only one "{chief}" node. '
            + wrong(f"cluster.{chief}", jobs[chief], "a list of one address; the rest are workers")
        )
    if not task.get("type"):
        raise ValueError(
            'If "cluster" is set in TF_CONFIG, task type must be set. ' + wrong("task", task, TASK)
        )
    if task.get("index") is None:
        raise ValueError(
            'If "cluster" is set in TF_CONFIG, task index must be set. ' + wrong("task", task, TASK)
        )
    task_type, task_id = task["type"], int(task["index"])
    if task_id < 0:
        raise ValueError(
            f"Task index must be non-negative number. Given: {task_id}. "
            + wrong("task.index", task_id, "a whole number, from 0 on")
        )
    if task_type == TaskType.EVALUATOR:
        if chief == TaskType.MASTER:
            raise ValueError(
                "If `master` node exists in `cluster`, task_type `evaluator` is not supported. "
                "Rename the job `master` to `chief`."
            )
        return task_type, task_id  # Outside of the cluster, so any index will do.
    where = f"in the cluster_spec {jobs}, which comes from TF_CONFIG. "
    if task_type not in cluster_spec.jobs:
        form = "one of " + ", ".join([*jobs, TaskType.EVALUATOR])
        raise ValueError(
            f"{task_type} is not a valid task_type {where}" + wrong("task.type", task_type, form)
        )
    if task_id >= _count(cluster_spec, {task_type}):
        form = f"less than {_count(cluster_spec, {task_type})}, as many as the job has tasks"
        raise ValueError(
            f"{task_id} is not a valid task_id for task_type {task_type} {where}"
            + wrong("task.index", task_id, form)
        )
    return task_type, task_id


def _session_master(
    cluster_spec: Any, task_type: str, task_id: int, tf_config: Mapping[str, Any]
) -> str:
    if "session_master" in tf_config:
        return cast(str, tf_config["session_master"])
    # The only node of its cluster has nobody to talk to.
    if _count(cluster_spec, cluster_spec.jobs) == 1:
        return ""
    return cast(str, "grpc://" + cluster_spec.job_tasks(task_type)[task_id])


def _count(cluster_spec: Any, jobs: Iterable[str]) -> int:
    tasks = cluster_spec.as_dict()
    return sum(len(tasks.get(job, ())) for job in jobs)


def _global_id(cluster_spec: Any, task_type: str, task_id: int, chief: str) -> int:
    def rank(job: str) -> tuple[bool, bool, str]:
        return job != chief, job == TaskType.PS, job

    before = [job for job in cluster_spec.jobs if rank(job) < rank(task_type)]
    return _count(cluster_spec, before) + task_id


def _device_filters(task_type: str, task_id: int) -> tuple[str, ...] | None:
    """Devices that a task of a parameter server cluster sees: chief and workers only the ps."""
    return {
        TaskType.MASTER: ("/job:ps", "/job:master"),
        TaskType.CHIEF: ("/job:ps", "/job:chief"),
        TaskType.WORKER: ("/job:ps", f"/job:worker/task:{task_id}"),
        TaskType.PS: ("/job:ps", "/job:worker", "/job:chief", "/job:master"),
    }.get(task_type)
