"""Which cores a program runs on: real ones, or emulated ones for tests without a TPU.

emulate_tpu(num_cores=8)      # once, before TensorFlow starts its devices
strategy = tpu_strategy(config.cluster)
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import tensorflow as tf

from estimator2strategy.errors import DeviceError
from estimator2strategy.replay.tpu import is_tpu

EMULATE_VARIABLE = "E2S_EMULATE_TPU_CORES"

_emulated_cores = 0


def emulate_tpu(num_cores: int = 8) -> None:
    """Lets this process behave as if a TPU with `num_cores` cores were attached.

    `use_tpu=True` then trains with TPU semantics (per-core batches, real all-reduces, batch norm
    per core, padding rules) on logical CPU devices, one per core. It shows what a program does on
    several cores, not how fast.

    Call it before anything touches TensorFlow's devices. The environment variable
    E2S_EMULATE_TPU_CORES does the same without a change to the program.

    Raises:
        DeviceError: TensorFlow has started its devices already, with another number.
        ValueError: `num_cores` is not positive.
    """
    global _emulated_cores
    if num_cores < 1:
        raise ValueError(f"num_cores must be at least 1, got {num_cores}.")
    if num_cores == _emulated_cores:
        return
    cpu = tf.config.list_physical_devices("CPU")[0]
    configuration = [tf.config.LogicalDeviceConfiguration()] * num_cores
    try:
        tf.config.set_logical_device_configuration(cpu, configuration)
    except RuntimeError as error:
        # Somebody else may have split the CPU already, a test suite for example.
        if len(tf.config.list_logical_devices("CPU")) < num_cores:
            raise DeviceError(
                f"emulate_tpu(num_cores={num_cores}) came too late: TensorFlow has started with "
                f"{len(tf.config.list_logical_devices('CPU'))} CPU device(s). Call it right after "
                f"the imports, or set {EMULATE_VARIABLE}={num_cores} in the environment."
            ) from error
    _emulated_cores = num_cores


def emulate_tpu_if_asked() -> None:
    """Applies E2S_EMULATE_TPU_CORES, unless `emulate_tpu` was called."""
    asked = os.environ.get(EMULATE_VARIABLE, "")
    if asked and not _emulated_cores:
        if not asked.isdigit():
            raise ValueError(f"{EMULATE_VARIABLE} must be a number of cores, got {asked!r}.")
        emulate_tpu(int(asked))


def emulated_cores() -> int:
    """How many TPU cores this process emulates; 0 if none."""
    return _emulated_cores


def emulated_strategy(num_cores: int | None = None) -> tf.distribute.Strategy:
    """A strategy over the emulated cores."""
    cores = [f"/CPU:{i}" for i in range(num_cores or _emulated_cores)]
    if len(cores) == 1:
        return tf.distribute.OneDeviceStrategy(cores[0])
    # One process, one host: reducing on one device is exact in any order that is fixed.
    return tf.distribute.MirroredStrategy(
        cores, cross_device_ops=tf.distribute.ReductionToOneDevice()
    )


def tpu_strategy(cluster: Any = None, master: str | None = None) -> tf.distribute.Strategy:
    """The strategy for `use_tpu=True`: of the TPU that the RunConfig names, or emulated.

    Args:
        cluster: `RunConfig.cluster`, a TPUClusterResolver.
        master: `RunConfig.master`, where there is no `cluster`.

    Raises:
        DeviceError: There is no TPU, and none is emulated.
    """
    emulate_tpu_if_asked()
    if _emulated_cores:
        return emulated_strategy()
    if isinstance(cluster, tf.distribute.cluster_resolver.TPUClusterResolver):
        return _connected(cluster)
    if tf.config.list_physical_devices("TPU") or master:
        return _connected(tf.distribute.cluster_resolver.TPUClusterResolver(master or ""))
    raise DeviceError(
        "use_tpu=True, but this machine has no TPU.\n"
        "  To test the program's TPU behaviour on CPUs, call estimator2strategy.emulate_tpu("
        f"num_cores=8) before TensorFlow starts, or set {EMULATE_VARIABLE}=8.\n"
        "  To train on CPU or GPU, pass use_tpu=False."
    )


class Host(NamedTuple):
    """A machine with cores.

    Attributes:
        device: Its CPU, as `/job:worker/task:1/device:CPU:0`; "" for this very process.
        replicas: Which of the strategy's replicas run on its cores.
    """

    device: str
    replicas: tuple[int, ...]


def hosts(strategy: tf.distribute.Strategy | None) -> tuple[Host, ...]:
    """The hosts of a TPUStrategy's cores; of any other strategy this process is the only one."""
    if strategy is None:
        return (Host("", (0,)),)
    if not is_tpu(strategy):
        return (Host("", tuple(range(strategy.num_replicas_in_sync))),)
    replicas: dict[str, list[int]] = {}
    for replica, core in enumerate(strategy.extended.worker_devices):
        spec = tf.DeviceSpec.from_string(core)
        cpu = tf.DeviceSpec(job=spec.job, task=spec.task, device_type="CPU", device_index=0)
        replicas.setdefault(cpu.to_string(), []).append(replica)
    return tuple(Host(device, tuple(numbers)) for device, numbers in replicas.items())


def _connected(resolver: Any) -> tf.distribute.Strategy:
    tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    return tf.distribute.TPUStrategy(resolver)
