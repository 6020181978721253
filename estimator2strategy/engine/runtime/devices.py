"""Finds the cores of a program: real ones, or emulated ones for tests without a TPU.

Example:

    emulate_tpu(num_cores=8)      # once, before TensorFlow starts its devices
    cores = tpu_cores(config.cluster, config.master, config.tpu_config)
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from estimator2strategy.engine import patches
from estimator2strategy.engine.replay.tpu_variables import is_tpu
from estimator2strategy.engine.runtime import tpu_system
from estimator2strategy.engine.runtime.jax_devices import JaxReplicas
from estimator2strategy.engine.runtime.requested_job import hosts_and_cores
from estimator2strategy.engine.runtime.tpu_system import EMULATE_VARIABLE
from estimator2strategy.engine.worlds import modern_world
from estimator2strategy.engine.wrong_argument import ArgumentRule, checked, wrong_argument
from estimator2strategy.errors import DeviceError

_emulated_cores = 0
_emulated_hosts = 1

# Each core is a logical device of the CPU. TPU pods have up to so many; memory does not.
MOST_CORES = 1024


def _is_count(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


_RULES = {
    "num_cores": ArgumentRule(_is_count, "must be an int", "Pass the number of cores, such as 8."),
    "num_hosts": ArgumentRule(_is_count, "must be an int", "Pass the number of hosts, such as 1."),
}


@checked(_RULES)
def emulate_tpu(num_cores: int = 8, num_hosts: int = 1) -> None:
    """Lets this process behave as if a TPU with `num_cores` cores were attached.

    `use_tpu=True` then trains with TPU semantics (per-core batches, real all-reduces, batch norm
    per core, padding rules) on logical CPU devices, one per core. It shows what a program does on
    several cores, not how fast. With several `num_hosts` the cores are dealt out to as many hosts,
    each with an input pipeline of its own; all of them are this process.

    Call it before anything touches TensorFlow's devices. The environment variable
    E2S_EMULATE_TPU_CORES does the same without a change to the program: `8`, or `2x4` for two hosts
    of four cores.

    TensorFlow's own TPUClusterResolver and TPUStrategy know nothing of it, and go on to look for a
    TPU. A program that makes a TPUStrategy gets the emulated cores where its `tf` is
    `estimator2strategy.tf1`, or under `e2s run`.

    Args:
        num_cores: The number of cores, of all hosts together.
        num_hosts: The number of hosts; it must divide the number of cores.

    Raises:
        DeviceError: TensorFlow has started its devices already, with another number.
        ValueError: `num_cores` is not positive, or cannot be dealt out to `num_hosts`.
    """
    emulated = _emulated_cores, _emulated_hosts
    if _emulated_cores and emulated != (num_cores, num_hosts):
        raise wrong_argument(
            f"num_cores, num_hosts: a TPU of {_emulated_cores} cores and {_emulated_hosts} hosts "
            "is emulated already",
            (num_cores, num_hosts),
            "Call emulate_tpu once in a process, right after the imports.",
            DeviceError,
        )
    emulate(num_cores, num_hosts)


def emulate(num_cores: int, num_hosts: int = 1) -> None:
    """Emulates cores as `emulate_tpu` does, in the place of those that are emulated already.

    For tools that look at one model after another: each brings its number of cores.
    """
    global _emulated_cores, _emulated_hosts
    if num_cores < 1:
        raise ValueError(f"num_cores must be at least 1, got {num_cores}")
    if num_cores > MOST_CORES:
        raise ValueError(f"num_cores must be at most {MOST_CORES}, got {num_cores}")
    if num_hosts < 1 or num_cores % num_hosts:
        what = f"{num_cores} cores cannot be dealt out to {num_hosts} hosts: num_hosts must divide"
        raise wrong_argument(what, num_hosts, f"Pass a divisor of {num_cores}.")
    if num_cores != _emulated_cores:
        split_cpu(num_cores, f"emulate_tpu(num_cores={num_cores})")
    _emulated_cores, _emulated_hosts = num_cores, num_hosts


def split_cpu(num_cores: int, asked: str) -> None:
    """Makes the CPU `num_cores` logical devices.

    Args:
        num_cores: The number of logical CPUs.
        asked: Who wants them, for the error.

    Raises:
        DeviceError: TensorFlow has started its devices already, and there are fewer.
    """
    cpu = tf.config.list_physical_devices("CPU")[0]
    configuration = [tf.config.LogicalDeviceConfiguration()] * num_cores
    try:
        patches.noted("logical CPUs")
        tf.config.set_logical_device_configuration(cpu, configuration)
    except RuntimeError as error:
        # Somebody else may have split the CPU already, a test suite for example.
        if len(tf.config.list_logical_devices("CPU")) < num_cores:
            raise wrong_argument(
                f"{asked} came too late: TensorFlow has started with "
                f"{len(tf.config.list_logical_devices('CPU'))} CPU device(s)",
                num_cores,
                "Call it right after the imports, or set "
                f"{EMULATE_VARIABLE}={num_cores} in the environment.",
                DeviceError,
            ) from error


def emulate_tpu_if_asked() -> None:
    """Applies E2S_EMULATE_TPU_CORES, unless `emulate_tpu` was called."""
    asked = os.environ.get(EMULATE_VARIABLE, "")
    if asked and not _emulated_cores:
        counts = hosts_and_cores(asked)
        if not counts:
            raise ValueError(
                f"{EMULATE_VARIABLE} must be a number of cores, or hosts x cores of each as in "
                f"'2x4', got {asked!r}."
            )
        num_hosts, cores_of_each = counts
        emulate_tpu(num_hosts * cores_of_each, num_hosts)


def emulated_cores() -> int:
    """The number of TPU cores that this process emulates; 0 if none."""
    return _emulated_cores


def emulated_strategy(
    num_cores: int | None = None, cores_per_replica: int = 1
) -> tf.distribute.Strategy:
    """A strategy over the emulated cores; a replica of several runs on the first of them."""
    cores = [f"/CPU:{i}" for i in range(0, num_cores or _emulated_cores, cores_per_replica)]
    if len(cores) == 1:
        return tf.distribute.OneDeviceStrategy(cores[0])
    # One process, one host: reducing on one device is exact in any order that is fixed.
    return tf.distribute.MirroredStrategy(
        cores, cross_device_ops=tf.distribute.ReductionToOneDevice()
    )


@functools.cache  # one for all trainings: a strategy belongs to its variables
def mirrored_here(names: tuple[str, ...]) -> tf.distribute.Strategy:
    """A strategy of several devices of this process, which is one of many that train in step.

    It takes no part in their sums, and must not: its collectives would have the keys of others.
    """
    with modern_world():
        return tf.distribute.MirroredStrategy(names, tf.distribute.ReductionToOneDevice())


def emulated_metadata() -> tf.tpu.experimental.TPUSystemMetadata:
    """The metadata of a TPU of as many cores and hosts."""
    each = _emulated_cores // _emulated_hosts
    names = [
        f"/job:worker/replica:0/task:{host}/device:TPU:{core}"
        for host in range(_emulated_hosts)
        for core in range(each)
    ]
    return tf.tpu.experimental.TPUSystemMetadata(
        num_cores=_emulated_cores,
        num_hosts=_emulated_hosts,
        num_of_cores_per_host=each,
        topology=None,
        devices=tuple(tf.config.LogicalDevice(name, "TPU") for name in names),
    )


def emulated_topology(cores_per_replica: int) -> tf.tpu.experimental.Topology:
    """The topology of a TPU of as many cores and hosts: the replicas' blocks of cores in a row."""
    x, *others = _COMPUTATION_SHAPES[cores_per_replica]
    mesh_shape = [x * (_emulated_cores // cores_per_replica), *others]
    coordinates = np.array([*np.ndindex(*mesh_shape)]).reshape(_emulated_hosts, -1, 4)
    return tf.tpu.experimental.Topology(mesh_shape=mesh_shape, device_coordinates=coordinates)


# The axes of a topology, with those first along which cores are nearest: core, y, x, z.
_NEAREST_FIRST = (3, 1, 0, 2)

# Cores of a replica -> how many of them lie along each axis of the TPU's topology (x, y, z, core).
# Source: tensorflow_estimator 2.15 tpu_context.py.
_COMPUTATION_SHAPES = {
    1: (1, 1, 1, 1),
    2: (1, 1, 1, 2),
    4: (1, 2, 1, 2),
    8: (2, 2, 1, 2),
    16: (4, 2, 1, 2),
    32: (4, 4, 1, 2),
    64: (8, 4, 1, 2),
    128: (8, 8, 1, 2),
}


class TpuCores(NamedTuple):
    """The cores that a program runs on.

    Attributes:
        strategy: The strategy whose replicas they are.
        device_assignment: Which cores each replica has; None: one each.
    """

    strategy: tf.distribute.Strategy
    device_assignment: tf.tpu.experimental.DeviceAssignment | None = None


class CoreLayout(NamedTuple):
    """The settings of a TPUConfig that deal out cores; by default each core is a replica."""

    num_shards: int | None = None
    num_cores_per_replica: int | None = None
    tpu_job_name: str | None = None


def tpu_cores(cluster: Any, master: str | None, tpu_config: Any) -> TpuCores:
    """The cores for `use_tpu=True`: of the TPU that the RunConfig names, or emulated.

    Args:
        cluster: `RunConfig.cluster`, a TPUClusterResolver or None.
        master: `RunConfig.master`, where there is no `cluster`. Where there is neither, it is the
            TPU of this machine.
        tpu_config: A TPUConfig, or a CoreLayout.

    Raises:
        tf.errors.OpError: The TPU cannot be started; see `tpu_system.start`.
        DeviceError: There is no TPU, and none is emulated.
        ValueError: A replica is to have more cores than there are, or the cores cannot be dealt out
            to replicas of as many.
    """
    emulate_tpu_if_asked()
    if _emulated_cores:
        return _emulated(tpu_config)
    resolver = _resolver(cluster, master, tpu_config)
    if resolver is None:
        raise DeviceError(
            "use_tpu=True, but this machine has no TPU.\n"
            f"{_named_elsewhere()}{tpu_system.WITHOUT_A_TPU}"
        )
    return assigned(resolver, tpu_system.start(resolver), tpu_config)


def cores_of(strategy: tf.distribute.Strategy) -> TpuCores:
    """The cores of a strategy that the program made; its TPU is started if it was not.

    Raises:
        tf.errors.OpError: The TPU cannot be started; see `tpu_system.start`.
    """
    tpu_system.start_for(strategy)
    return TpuCores(strategy)


def _resolver(cluster: Any, master: str | None, tpu_config: Any) -> Any:
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver
    if isinstance(cluster, resolver):
        return cluster
    if not master and not tf.config.list_physical_devices("TPU"):
        return None
    name = master or "local"
    with tpu_system.looking_up(name):
        return resolver(name, job_name=tpu_config.tpu_job_name or "worker")


def _named_elsewhere() -> str:
    """A line on a TPU that the environment names, and the program does not."""
    named = {name: os.environ.get(name) for name in tpu_system.NAMING_VARIABLES}
    variable = next((name for name, tpu in named.items() if tpu not in (None, "", "local")), None)
    if variable is None:
        return ""
    return (
        f"  The program's RunConfig names no other one; {variable} in the environment does: "
        f"{named[variable]!r}. Give it to RunConfig: cluster=TPUClusterResolver(...), or "
        "master='grpc://10.0.0.2:8470'.\n"
    )


@functools.cache
def _say_that_cores_are_emulated(num_cores: int) -> None:
    """Says so in the log, once in a process: nobody shall take it for a TPU."""
    tf.compat.v1.logging.warn(
        f"No TPU is used here: {num_cores} cores are emulated on the CPU (by emulate_tpu, "
        f"{EMULATE_VARIABLE} or e2s run --emulate-tpu-cores)."
    )


def _emulated(tpu_config: Any) -> TpuCores:
    _say_that_cores_are_emulated(_emulated_cores)
    per_replica = tpu_config.num_cores_per_replica
    if per_replica is None:
        return TpuCores(emulated_strategy(1 if _one_core(tpu_config) else None))
    _check_dealt_out(per_replica, _emulated_cores)
    if per_replica > 1:
        tf.compat.v1.logging.warn(
            f"TPUConfig.num_cores_per_replica is {per_replica}, but the cores are emulated: each "
            "replica runs on one of them. It computes the same; only a TPU divides its work."
        )
    replicas = _emulated_cores // per_replica
    assignment = _assignment(emulated_topology(per_replica), per_replica, replicas)
    return TpuCores(emulated_strategy(cores_per_replica=per_replica), assignment)


def assigned(resolver: Any, topology: tf.tpu.experimental.Topology, tpu_config: Any) -> TpuCores:
    """The cores of a TPU system that was started, dealt out to replicas.

    Args:
        resolver: A TPUClusterResolver.
        topology: The topology that starting the system returned.
        tpu_config: A TPUConfig.

    Raises:
        ValueError: A replica is to have more cores than there are, or the cores cannot be dealt out
            to replicas of as many.
    """
    per_replica = tpu_config.num_cores_per_replica
    one_core = _one_core(tpu_config)
    with modern_world():  # in graph mode they would ask a Session for the devices
        if per_replica is None and not one_core:
            return TpuCores(tf.distribute.TPUStrategy(resolver))
        cores = resolver.get_tpu_system_metadata().num_cores
        _check_dealt_out(per_replica or 1, cores)
        assignment = _assignment(
            topology, per_replica or 1, 1 if one_core else cores // per_replica
        )
        strategy = tf.distribute.TPUStrategy(resolver, experimental_device_assignment=assignment)
    return TpuCores(strategy, None if one_core else assignment)


def _assignment(
    topology: tf.tpu.experimental.Topology, per_replica: int, replicas: int
) -> tf.tpu.experimental.DeviceAssignment:
    shape = _computation_shape(per_replica, [int(extent) for extent in topology.mesh_shape])
    return tf.tpu.experimental.DeviceAssignment.build(
        topology, computation_shape=shape, num_replicas=replicas
    )


def _computation_shape(cores: int, mesh_shape: Sequence[int]) -> Sequence[int]:
    """The block of a replica's `cores`: their number along each axis of the TPU's topology.

    That of the original if it fits. Its TPUs had two cores on each chip; from v4 on a chip is one.

    Raises:
        ValueError: No block of so many cores fits.
    """
    shape = _COMPUTATION_SHAPES[cores]
    if all(part <= whole for part, whole in zip(shape, mesh_shape, strict=True)):
        return shape
    grown = [1] * len(mesh_shape)
    while math.prod(grown) < cores:
        axes = [axis for axis in _NEAREST_FIRST if mesh_shape[axis] % (2 * grown[axis]) == 0]
        if not axes:
            raise wrong_argument(
                "TPUConfig.num_cores_per_replica: no block of so many cores fits into the TPU, "
                f"whose topology is {mesh_shape} (x, y, z, core)",
                cores,
                "Pass a smaller power of 2, or None.",
            )
        grown[min(axes, key=grown.__getitem__)] *= 2
    return grown


def asks_for_one_core(tpu_config: Any) -> bool:
    """True if the program asks for one core, whatever the TPU has.

    Source: `_OneCoreTPUContext`, tensorflow_estimator 2.15 tpu_context.py.
    """
    return tpu_config.num_shards == 1 and tpu_config.num_cores_per_replica is None


def _one_core(tpu_config: Any) -> bool:
    """As `asks_for_one_core`, with a word in the log."""
    if not asks_for_one_core(tpu_config):
        return False
    tf.compat.v1.logging.warn(
        "TPUConfig.num_shards is 1, so that one core is used, whatever the TPU has. Leave it as "
        "None to use them all."
    )
    return True


def _check_dealt_out(per_replica: int, cores: int) -> None:
    if per_replica > cores:
        raise ValueError(
            "The num of cores required by the model parallelism, specified by "
            "TPUConfig.num_cores_per_replica, is larger than the total num of TPU cores in the "
            f"system. num_cores_per_replica: {per_replica}, num cores in the system: {cores}"
        )
    if cores % per_replica:
        raise ValueError(
            f"The num of cores in the system ({cores}) is not divisible by the num of cores "
            f"({per_replica}) required by the model parallelism, specified by "
            "TPUConfig.num_cores_per_replica."
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
    """The hosts of a TPUStrategy's cores, or of JAX's devices; of others this process."""
    if strategy is None:
        return (Host("", (0,)),)
    if isinstance(strategy, JaxReplicas):
        return tuple(Host("", numbers) for numbers in strategy.of_hosts)
    if not is_tpu(strategy):
        return _hosts_here(strategy)
    replicas: dict[str, list[int]] = {}
    for replica, core in enumerate(strategy.extended.worker_devices):
        spec = tf.DeviceSpec.from_string(core)
        cpu = tf.DeviceSpec(job=spec.job, task=spec.task, device_type="CPU", device_index=0)
        replicas.setdefault(cpu.to_string(), []).append(replica)
    return tuple(Host(device, tuple(numbers)) for device, numbers in replicas.items())


def _hosts_here(strategy: tf.distribute.Strategy) -> tuple[Host, ...]:
    """The emulated hosts, if all of their cores are used; otherwise this process as one host."""
    count = strategy.num_replicas_in_sync
    devices = strategy.extended.worker_devices
    cores = [tf.DeviceSpec.from_string(device).device_index for device in devices]
    if cores != [*range(0, _emulated_cores, _emulated_cores // count or 1)]:
        return (Host("", tuple(range(count))),)
    replicas: dict[int, list[int]] = {}
    for replica, core in enumerate(cores):
        replicas.setdefault(core * _emulated_hosts // _emulated_cores, []).append(replica)
    return tuple(Host("", tuple(numbers)) for numbers in replicas.values())
