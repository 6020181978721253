"""Strategies for tests, which share a process with all others."""

from __future__ import annotations

import pytest
import tensorflow as tf
from tensorflow.python.distribute.collective_all_reduce_strategy import CollectiveAllReduceExtended


def mirrored(num_replicas: int) -> tf.distribute.MirroredStrategy:
    """On the first logical CPUs.

    Sums go through one device: TensorFlow's collectives would keep the number of replicas of the
    first strategy of the process, and refuse all others from then on.
    """
    devices = [f"/cpu:{number}" for number in range(num_replicas)]
    return tf.distribute.MirroredStrategy(devices, tf.distribute.ReductionToOneDevice())


def over_processes(num_devices: int) -> tf.distribute.MultiWorkerMirroredStrategy:
    """Of the processes of `TF_CONFIG`, with so many logical CPUs in each.

    By itself TensorFlow takes the GPUs of a process, or its first CPU only.
    """
    cpu = tf.config.list_physical_devices("CPU")[0]
    split = [tf.config.LogicalDeviceConfiguration()] * num_devices
    tf.config.set_logical_device_configuration(cpu, split)

    def local_devices(extended: object, resolver: object, worker_device: str):
        return tuple(f"{worker_device}/device:CPU:{i}" for i in range(num_devices)), "CPU"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CollectiveAllReduceExtended, "_initialize_local_devices", local_devices)
        return tf.distribute.MultiWorkerMirroredStrategy()
