"""A strategy that stands for devices of JAX while a model is recorded for them."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf


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
