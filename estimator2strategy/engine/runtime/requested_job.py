"""The job whose processes, one on each host, run a program together under JAX.

    e2s run --runtime=jax --coordinator=host0:2222 --processes=2 --process=1 train.py

The environment's E2S_COORDINATOR, E2S_PROCESSES and E2S_PROCESS do the same, and so does a
`TF_CONFIG` with several tasks that train. Nothing here needs TensorFlow or JAX.
"""

from __future__ import annotations

import dataclasses
import os
import re

from estimator2strategy.engine.runtime import tf_config_form
from estimator2strategy.engine.runtime.requested_runtime import Runtime, requested_runtime

COORDINATOR_VARIABLE = "E2S_COORDINATOR"
PROCESSES_VARIABLE = "E2S_PROCESSES"
PROCESS_VARIABLE = "E2S_PROCESS"
_VARIABLES = (COORDINATOR_VARIABLE, PROCESSES_VARIABLE, PROCESS_VARIABLE)
_ADDRESS = re.compile(r".+:\d+", re.ASCII)
_EXAMPLE = (
    "Give all processes the coordinator's HOST:PORT and their number N, and each its own I from 0 "
    "to N-1: e2s run --coordinator=host0:2222 --processes=2 --process=0 ..."
)


@dataclasses.dataclass(frozen=True)
class Job:
    """The processes that run a program together.

    Attributes:
        coordinator: The address, `host:port`, at which the first process finds the others.
        number: The number of this process; 0 is the chief, which writes files for all.
        names: The name of each process in messages.
    """

    coordinator: str
    number: int
    names: tuple[str, ...]

    @property
    def count(self) -> int:
        return len(self.names)

    @property
    def is_chief(self) -> bool:
        return self.number == 0


def job_under_jax() -> Job | None:
    """The job of this process if the environment asks for JAX's runtime; None: it runs alone.

    Raises:
        ValueError: As `requested_job`.
    """
    return requested_job() if requested_runtime() is Runtime.JAX else None


def requested_job() -> Job | None:
    """The job of this process; None: it runs alone.

    Raises:
        ValueError: The settings say no such job.
    """
    given = {name: os.environ[name] for name in _VARIABLES if os.environ.get(name)}
    from_cluster = _of_tf_config()
    if not given:
        return from_cluster
    if from_cluster:
        raise ValueError(
            f"TF_CONFIG names {from_cluster.count} processes that train, and {', '.join(given)} "
            "a job as well. Leave one of them out."
        )
    return _of_variables(given)


def _of_variables(given: dict[str, str]) -> Job | None:
    missing = [name for name in _VARIABLES if name not in given]
    if missing:
        raise ValueError(f"{', '.join(given)} without {', '.join(missing)}. {_EXAMPLE}")
    coordinator, count, number = (given[name] for name in _VARIABLES)
    if not _ADDRESS.fullmatch(coordinator):
        raise ValueError(f"{COORDINATOR_VARIABLE} is {coordinator!r}, no HOST:PORT. {_EXAMPLE}")
    for name in (PROCESSES_VARIABLE, PROCESS_VARIABLE):
        if not re.fullmatch(r"\d+", given[name], re.ASCII):
            raise ValueError(f"{name} is {given[name]!r}, no whole number. {_EXAMPLE}")
    if int(number) >= int(count):
        raise ValueError(f"There is no process {number} of {count}. {_EXAMPLE}")
    if int(count) == 1:
        return None
    return Job(coordinator, int(number), tuple(f"process {i}" for i in range(int(count))))


def _of_tf_config() -> Job | None:
    config = tf_config_form.parsed()
    cluster, task = config.get("cluster") or {}, config.get("task") or {}
    if "ps" in cluster:
        return None
    tasks = {
        (job, index): address
        for job in ("chief", "master", "worker")
        for index, address in sorted(tf_config_form.tasks_of(job, cluster.get(job, [])))
    }
    here = task.get("type"), int(task.get("index") or 0)
    if len(tasks) < 2 or here not in tasks:
        return None
    names = tuple(f"{job} {index} ({address})" for (job, index), address in tasks.items())
    return Job(next(iter(tasks.values())), list(tasks).index(here), names)
