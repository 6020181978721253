"""Strategies for tests, which share a process with all others."""

from __future__ import annotations

import tensorflow as tf


def mirrored(num_replicas: int) -> tf.distribute.MirroredStrategy:
    """On the first logical CPUs.

    Sums go through one device: TensorFlow's collectives would keep the number of replicas of the
    first strategy of the process, and refuse all others from then on.
    """
    devices = [f"/cpu:{number}" for number in range(num_replicas)]
    return tf.distribute.MirroredStrategy(devices, tf.distribute.ReductionToOneDevice())
