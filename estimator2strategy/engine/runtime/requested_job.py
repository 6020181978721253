"""Options of `e2s run`: the runtime, the precision, a job of several processes, TPU cores.

    e2s run --runtime=jax --precision=highest train.py
    e2s run --runtime=jax --coordinator=host0:2222 --processes=2 --process=1 train.py

The environment's E2S_RUNTIME, E2S_PRECISION, E2S_COORDINATOR, E2S_PROCESSES and E2S_PROCESS do the
same: they tell the processes that a program starts. So does a `TF_CONFIG` with several tasks that
train, for the job, whose processes run a program together under JAX, one on each host.
Nothing here needs TensorFlow or JAX.
"""

from __future__ import annotations

import dataclasses
import enum
import os
import re
from typing import TypeVar

from estimator2strategy.engine.replay.xla.target import Precision
from estimator2strategy.engine.runtime import tf_config_form

COORDINATOR_VARIABLE = "E2S_COORDINATOR"
PROCESSES_VARIABLE = "E2S_PROCESSES"
PROCESS_VARIABLE = "E2S_PROCESS"
_VARIABLES = (COORDINATOR_VARIABLE, PROCESSES_VARIABLE, PROCESS_VARIABLE)
_ADDRESS = re.compile(r".+:\d+", re.ASCII)
_EXAMPLE = (
    "Give all processes the coordinator's HOST:PORT and their number N, and each its own I from 0 "
    "to N-1: e2s run --coordinator=host0:2222 --processes=2 --process=0 ..."
)
RUNTIME_VARIABLE = "E2S_RUNTIME"
PRECISION_VARIABLE = "E2S_PRECISION"
OLDEST_JAX = (0, 10)
E = TypeVar("E", bound=enum.Enum)
_CORES = re.compile(r"(?:(\d+)x)?(\d+)")


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


class Runtime(enum.Enum):
    """The runtime that executes the steps of a model.

    TENSORFLOW: TensorFlow: CPUs, GPUs, and TPUs that it knows.
    JAX: JAX, on the devices of its default platform: CPUs, GPUs, TPUs of today.
    AUTO: JAX where it has a GPU or a TPU, and XLA takes the steps; TensorFlow otherwise.
    """

    TENSORFLOW = "tensorflow"
    JAX = "jax"
    AUTO = "auto"


def requested_runtime() -> Runtime:
    """The runtime that the environment asks for.

    Raises:
        ValueError: There is no such runtime.
    """
    return _requested(RUNTIME_VARIABLE, Runtime.TENSORFLOW)


def requested_precision() -> Precision:
    """The precision that the environment asks for.

    Raises:
        ValueError: There is no such precision.
    """
    return _requested(PRECISION_VARIABLE, Precision.DEFAULT)


def _requested(variable: str, default: E) -> E:
    name = os.environ.get(variable) or default.value
    known = {member.value: member for member in type(default)}
    if name not in known:
        raise ValueError(f"{variable} must be one of {', '.join(known)}, got {name!r}.")
    return known[name]


def hosts_and_cores(text: str) -> tuple[int, int] | None:
    """The number of hosts and that of the cores of each, which `8` or `2x4` asks to emulate.

    E2S_EMULATE_TPU_CORES and `e2s run --emulate-tpu-cores` take it. None if it is neither.

    Either may be zero.
    """
    match = _CORES.fullmatch(text)
    return (int(match[1] or 1), int(match[2])) if match else None
