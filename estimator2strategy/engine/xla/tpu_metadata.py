"""A TPUStrategy where there is no TPU: it can be built and traced, but not run.

`tf.distribute.TPUStrategy` asks its cluster resolver for the TPU's metadata and for nothing else.
"""

from __future__ import annotations

import tensorflow as tf


class MetadataResolver:
    """Knows which cores there would be.

    Args:
        num_hosts: One host is this process, as on a TPU VM; several are tasks of a job "worker".
        cores_per_host: TPU cores of each.
    """

    def __init__(self, num_hosts: int, cores_per_host: int):
        job = "localhost" if num_hosts == 1 else "worker"
        self._metadata = tf.tpu.experimental.TPUSystemMetadata(
            num_cores=num_hosts * cores_per_host,
            num_hosts=num_hosts,
            num_of_cores_per_host=cores_per_host,
            topology=None,
            devices=tuple(
                tf.config.LogicalDevice(
                    f"/job:{job}/replica:0/task:{host}/device:TPU:{core}", "TPU"
                )
                for host in range(num_hosts)
                for core in range(cores_per_host)
            ),
        )

    def get_tpu_system_metadata(self) -> tf.tpu.experimental.TPUSystemMetadata:
        return self._metadata


def tpu_strategy(num_hosts: int = 1, cores_per_host: int = 8) -> tf.distribute.TPUStrategy:
    """A genuine TPUStrategy of `num_hosts * cores_per_host` replicas."""
    return tf.distribute.TPUStrategy(MetadataResolver(num_hosts, cores_per_host))
