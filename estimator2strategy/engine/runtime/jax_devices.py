"""Devices of JAX as the cores of a program.

    target = jax_target(precision)               # all devices of JAX's default platform

JAX is imported here, when a program asks for its runtime.
"""

from __future__ import annotations

import functools
import os
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.replay.state import State
from estimator2strategy.engine.replay.xla.target import JaxTarget, Precision
from estimator2strategy.engine.runtime import jax_hosts
from estimator2strategy.engine.runtime.requested_job import OLDEST_JAX, requested_job
from estimator2strategy.errors import DeviceError

_INSTALL = "pip install 'estimator2strategy[jax]'"


def jax_target(precision: Precision, most: int | None = None, here: bool = False) -> JaxTarget:
    """The devices of JAX's default platform, of all hosts.

    Args:
        precision: Of float32 products.
        most: Take no more than the first so many.
        here: Take only those of this process's host.

    Raises:
        DeviceError: JAX is not installed, is too old, or has no device; or another process of the
            job does not come.
    """
    devices = _devices()
    if here and jax_hosts.joined():
        import jax

        mine = jax.process_index()
        devices = tuple(device for device in devices if device.process_index == mine)
    target = JaxTarget(devices[:most], precision)
    _tell(len(target.devices), devices[0].device_kind, precision)
    return target


def has_accelerator() -> bool:
    """True if JAX is installed, and its default platform is no CPU."""
    try:
        return bool(_devices()[0].platform != "cpu")
    except DeviceError:
        return False


@functools.cache
def _devices() -> tuple[Any, ...]:
    try:
        import jax
        import jax.extend.mlir
    except ImportError as error:
        raise DeviceError(
            f"The runtime of JAX was asked for, and JAX cannot be imported ({error}): {_INSTALL}."
        ) from error
    if tuple(map(int, jax.__version__.split(".")[:2])) < OLDEST_JAX:
        oldest = ".".join(map(str, OLDEST_JAX))
        raise DeviceError(
            f"The runtime of JAX needs JAX {oldest} or newer, and {jax.__version__} is installed: "
            f"{_INSTALL}."
        )
    if job := requested_job():
        jax_hosts.join(job)
    try:
        return tuple(jax.devices())
    except RuntimeError as error:
        platforms = os.environ.get("JAX_PLATFORMS")
        asked = f" (JAX_PLATFORMS={platforms})" if platforms else ""
        raise DeviceError(f"JAX finds no device{asked}: {error}") from error


@functools.cache  # once in a process
def _tell(count: int, kind: str, precision: Precision) -> None:
    tf.compat.v1.logging.info(
        "JAX runs the steps, on %d device(s) of the kind %s; float32 products in their %s "
        "precision.",
        count,
        kind,
        precision.value,
    )


def values_on(target: JaxTarget, state: State) -> Any:
    """The DeviceValues of a state."""
    from estimator2strategy.engine.replay.xla.device_values import DeviceValues

    return DeviceValues(state, target.devices, target.precision, target.checks)


class JaxReplicas(tf.distribute.OneDeviceStrategy):
    """A strategy by whose number of replicas a model is recorded. JAX runs them, nobody else.

    Args:
        of_hosts: The numbers of the replicas of each host.
        here: The number of this process's host.

    Attributes:
        of_hosts, here: As above.
    """

    def __init__(self, of_hosts: tuple[tuple[int, ...], ...], here: int):
        super().__init__("/CPU:0")
        self.of_hosts = of_hosts
        self.here = here

    @property
    def num_replicas_in_sync(self) -> int:
        return sum(map(len, self.of_hosts))


@functools.cache  # one for all recordings: functions that were traced for it serve them all
def replicas_on(devices: tuple[Any, ...]) -> JaxReplicas:
    """The strategy of as many replicas as there are devices."""
    import jax

    processes = sorted({device.process_index for device in devices})
    numbers = {
        process: tuple(i for i, device in enumerate(devices) if device.process_index == process)
        for process in processes
    }
    return JaxReplicas(tuple(numbers.values()), processes.index(jax.process_index()))
