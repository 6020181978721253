"""The TPUs that programs can be compiled for (a table, `tpus.csv`), and strategies without them."""

from __future__ import annotations

import csv
import dataclasses
import functools
from importlib import resources

import tensorflow as tf

GIB = 2**30


@dataclasses.dataclass(frozen=True)
class Tpu:
    """A kind and size of TPU.

    Attributes:
        name: Google Cloud's accelerator type: "v3-8".
        topology: The compiler's name: "v3:2x2", four chips.
        chip_config: How it is to see the two cores of a chip; "" for its default, "megacore" for
            one device.
        devices: The number of replicas: cores, or chips whose cores work as one.
        hbm_gib: Memory that a program on one of them can have, as the compiler of libtpu 0.0.52
            says it.
        chip_gib: Memory of a chip, as Google's documentation says it; part of it is reserved.
    """

    name: str
    topology: str
    chip_config: str
    devices: int
    hbm_gib: float
    chip_gib: int

    @property
    def hbm_bytes(self) -> int:
        return int(self.hbm_gib * GIB)


@functools.cache
def table() -> dict[str, Tpu]:
    """All of them, by name, oldest first."""
    text = resources.files(__package__).joinpath("tpus.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    return {
        row["name"]: Tpu(
            row["name"],
            row["topology"],
            row["chip_config"],
            int(row["devices"]),
            float(row["hbm_gib"]),
            int(row["chip_gib"]),
        )
        for row in rows
    }


def parse(names: str) -> tuple[list[Tpu], list[str]]:
    """The TPUs in `v3-8,v5e-4`, each once, and the names that are none of them.

    Google Cloud also calls a v5e-4 "v5litepod-4".
    """
    given = (name.strip().replace("v5litepod-", "v5e-") for name in names.split(","))
    asked = dict.fromkeys(name for name in given if name)
    chips = [table()[name] for name in asked if name in table()]
    return chips, [name for name in asked if name not in table()]


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
    """A genuine TPUStrategy of `num_hosts * cores_per_host` replicas, to be traced and not run.

    It asks its cluster resolver for the TPU's metadata and for nothing else.
    """
    return tf.distribute.TPUStrategy(MetadataResolver(num_hosts, cores_per_host))
