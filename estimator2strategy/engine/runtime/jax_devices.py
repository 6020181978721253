"""Devices of JAX as the cores of a program.

    target = jax_target(precision)               # all devices of JAX's default platform
    strategy = replicas_on(target.devices)       # of as many replicas, to record a model for

JAX is imported here, when a program asks for its runtime.
"""

from __future__ import annotations

import functools
import os
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.replay.state import State
from estimator2strategy.engine.replay.xla.precision import Precision
from estimator2strategy.engine.replay.xla.target import JaxTarget
from estimator2strategy.engine.runtime.requested_runtime import OLDEST_JAX
from estimator2strategy.errors import DeviceError

_INSTALL = "pip install 'estimator2strategy[jax]'"


def jax_target(precision: Precision, most: int | None = None) -> JaxTarget:
    """All devices of JAX's default platform, or the first `most` of them.

    Raises:
        DeviceError: JAX is not installed, is too old, or has no device.
    """
    devices = _devices()
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
    try:
        return tuple(jax.local_devices())
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


class JaxReplicas(tf.distribute.OneDeviceStrategy):
    """A strategy by whose number of replicas a model is recorded. JAX runs them, nobody else."""

    def __init__(self, count: int):
        super().__init__("/CPU:0")
        self._count = count

    @property
    def num_replicas_in_sync(self) -> int:
        return self._count


@functools.cache  # one for all recordings: functions that were traced for it serve them all
def replicas_on(devices: tuple[Any, ...]) -> JaxReplicas:
    """The strategy of as many replicas as there are devices."""
    return JaxReplicas(len(devices))


def values_on(target: JaxTarget, state: State) -> Any:
    """The DeviceValues of a state."""
    from estimator2strategy.engine.replay.xla.device_values import DeviceValues

    return DeviceValues(state, target.devices, target.precision)
