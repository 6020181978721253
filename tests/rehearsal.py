"""A stand-in for TensorFlow's TPU runtime: what a TPU does, on the logical CPUs of this process.

    with rehearsal(num_hosts=1, cores_per_host=8) as tpu:
        estimator.train(...)          # use_tpu=True, and a TPUClusterResolver
        assert tpu.started == 1

    tpu.lose(after=[7, 12])           # the TPU is lost twice, after so many steps each
    tpu.lost = True                   # it is lost now: no step, and no read of its variables

It stands at TensorFlow's boundary. Above it all is genuine: this package, TPUClusterResolver,
TPUStrategy and its variables. `migration_guide/tpu.md` has the table of what it replaces.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import tensorflow as tf
from tensorflow.python.distribute import tpu_strategy
from tensorflow.python.eager import context as tf_context
from tensorflow.python.eager import remote
from tensorflow.python.eager.polymorphic_function import atomic_function
from tensorflow.python.tpu import tpu as tf_tpu
from tensorflow.python.tpu import tpu_strategy_util

from estimator2strategy.engine.runtime import tpu_system
from tests.rehearsed_program import CopiesOfVariables, Program

Resolver = tf.distribute.cluster_resolver.TPUClusterResolver


class Runtime:
    """A TPU of `num_hosts * cores_per_host` cores.

    Attributes:
        connected: How often a program connected to it.
        started: How often its system was started.
        lost: True from when it was lost until its system is started.
        refusals: How often it is yet to refuse to be started.
    """

    def __init__(self, num_hosts: int, cores_per_host: int):
        self.num_hosts, self.cores_per_host = num_hosts, cores_per_host
        self.connected = self.started = 0
        self.lost, self.refusals = False, 0
        self._losses: Iterator[int] | None = None
        self._left: int | None = None

    def lose(self, after: Iterable[int]) -> None:
        """From now on, loses the TPU again and again, each time after so many more steps.

        Must be called before a program is traced.
        """
        self._losses = iter(after)
        self._left = next(self._losses, None)

    @property
    def may_be_lost(self) -> bool:
        return self._losses is not None

    def launch(self) -> np.ndarray:
        """Called as a step is launched; fails if the TPU is lost."""
        if self._left == 0:
            self.lost = True
            self._left = next(self._losses, None)
        if self.lost:
            raise ConnectionError("Socket closed")
        if self._left is not None:
            self._left -= 1
        return np.int32(0)

    def start(self) -> bytes:
        """Starts its system; returns its topology."""
        if self.refusals:
            self.refusals -= 1
            raise tf.errors.UnavailableError(None, None, "failed to connect to all addresses")
        self.started += 1
        self.lost = False
        return self.topology()

    @property
    def name(self) -> str:
        """What a program calls it: one host is this machine, several have addresses."""
        if self.num_hosts == 1:
            return "local"
        return ",".join(f"grpc://10.0.0.{host}:8470" for host in range(1, self.num_hosts + 1))

    @property
    def job(self) -> str:
        return "localhost" if self.num_hosts == 1 else "worker"

    def resolver(self) -> Resolver:
        """TensorFlow's own resolver for it."""
        return Resolver(self.name)

    def core(self, number: int) -> str:
        """The device of a core."""
        host, core = divmod(number, self.cores_per_host)
        return f"/job:{self.job}/replica:0/task:{host}/device:TPU:{core}"

    @property
    def cores(self) -> list[str]:
        return [self.core(number) for number in range(self.num_hosts * self.cores_per_host)]

    def real(self, device: str) -> str:
        """The device of this process that stands for `device`: a core's CPU, or a host's first."""
        spec = tf.DeviceSpec.from_string(device)
        if spec.device_type != "TPU" and spec.job in (None, "localhost"):
            return device
        first = (spec.task or 0) * self.cores_per_host
        core = spec.device_index or 0 if spec.device_type == "TPU" else 0
        return f"/job:localhost/replica:0/task:0/device:CPU:{first + core}"

    def topology(self) -> bytes:
        """What starting the system returns: two cores on each chip, the hosts' chips in a row."""
        chips = range(self.cores_per_host // 2)
        coordinates = [
            [[chip, host, 0, core] for chip in chips for core in (0, 1)]
            for host in range(self.num_hosts)
        ]
        shape = [len(chips), self.num_hosts, 1, 2]
        topology = tf.tpu.experimental.Topology(
            mesh_shape=shape, device_coordinates=np.array(coordinates)
        )
        return topology.serialized()


@contextlib.contextmanager
def rehearsal(
    num_hosts: int = 1, cores_per_host: int = 8, *, runs: bool = True
) -> Iterator[Runtime]:
    """This process has a TPU while the body runs.

    Args:
        runs: False to leave steps as they are for a TPU: traced, but no CPU runs them.
    """
    runtime = Runtime(num_hosts, cores_per_host)
    running = (_running, _losing) if runs else ()
    with contextlib.ExitStack() as stack:
        for part in (_devices, _connecting, _starting, _placing, *running):
            for patch in part(runtime):
                stack.enter_context(patch)
        yield runtime


def _devices(runtime: Runtime) -> Iterator[Any]:
    """A TPU's devices are listed, those of other hosts once they are connected to."""
    context = tf_context.Context
    physical, logical = context.list_physical_devices, context.list_logical_devices

    def list_physical_devices(self, device_type=None):
        found = physical(self, device_type)
        if device_type in (None, "TPU") and runtime.num_hosts == 1:
            names = [f"/physical_device:TPU:{i}" for i in range(runtime.cores_per_host)]
            found = [*found, *(tf.config.PhysicalDevice(name, "TPU") for name in names)]
        return found

    def list_logical_devices(self, device_type=None):
        found = logical(self, device_type)
        if device_type in (None, "TPU") and (runtime.num_hosts == 1 or runtime.connected):
            found = [*found, *(tf.config.LogicalDevice(name, "TPU") for name in runtime.cores)]
        return found

    yield mock.patch.object(context, "list_physical_devices", list_physical_devices)
    yield mock.patch.object(context, "list_logical_devices", list_logical_devices)


def _connecting(runtime: Runtime) -> Iterator[Any]:
    """The servers of other hosts answer."""
    connect = remote.connect_to_cluster

    def counted(*args, **kwargs):
        connect(*args, **kwargs)
        runtime.connected += 1

    yield mock.patch.object(remote, "connect_to_cluster", counted)
    yield mock.patch.object(tf.config, "experimental_connect_to_cluster", counted)
    yield mock.patch.object(tpu_system.socket, "create_connection")
    for name in ("set_server_def", "update_server_def"):
        yield mock.patch.object(tf_context, name)
    yield mock.patch.object(tf_context.Context, "configure_coordination_service")


def _starting(runtime: Runtime) -> Iterator[Any]:
    """The op that starts a TPU system gives its topology; `initialize_tpu_system` is genuine."""

    def initialize_system(*unused, **unused_options):
        return tf.constant(runtime.start())  # traced once for each start

    yield mock.patch.object(tf_tpu, "initialize_system", initialize_system)
    yield mock.patch.object(tf_tpu, "shutdown_system")
    yield mock.patch.object(tf_tpu, "_tpu_system_device_name", return_value="/device:CPU:0")
    yield mock.patch.dict(tpu_strategy_util._INITIALIZED_TPU_SYSTEMS, clear=True)


def _placing(runtime: Runtime) -> Iterator[Any]:
    """What is placed on a core, or on another host, is on the CPU that stands for it."""
    set_device, to_function = tf_context.Context._set_device, atomic_function.from_func_graph

    def set_real_device(self, name, spec):
        set_device(self, name and runtime.real(name), spec)

    def from_func_graph(name, graph, *args, **kwargs):
        for op in graph.get_operations():
            if op.device:
                op._set_device_from_string(runtime.real(op.device))
        return to_function(name, graph, *args, **kwargs)

    yield mock.patch.dict(tf_context._device_parsing_cache, clear=True)
    yield mock.patch.object(tf_context.Context, "_set_device", set_real_device)
    yield mock.patch.object(atomic_function, "from_func_graph", from_func_graph)


def _running(runtime: Runtime) -> Iterator[Any]:
    """A replicated computation runs on the CPUs, and not as one program of a TPU."""
    variables = CopiesOfVariables()

    def replicate(computation, inputs, device_assignment=None, **unused):
        program = Program(computation, inputs, variables)
        if runtime.may_be_lost:
            with tf.control_dependencies([tf.numpy_function(runtime.launch, [], tf.int32)]):
                inputs = tf.nest.map_structure(tf.identity, inputs)
        if device_assignment is None:
            cores = runtime.cores
        else:
            replicas = range(device_assignment.num_replicas)
            cores = [device_assignment.tpu_device(replica, job=runtime.job) for replica in replicas]
        return [
            program.on_core(number, runtime.real(core), of_core)
            for number, (core, of_core) in enumerate(zip(cores, inputs, strict=True))
        ]

    yield mock.patch.object(tf_tpu, "replicate", replicate)


def _losing(runtime: Runtime) -> Iterator[Any]:
    """What is to run on a TPU that is lost ends with Unavailable, or with Aborted."""
    call, create = tf_context.Context.call_function, tpu_strategy.TPUExtended._create_variable
    handles: dict[int, Any] = {}  # of copies on cores, by their ids

    def create_variable(self, *args, **kwargs):
        variable = create(self, *args, **kwargs)
        made = [
            copy.handle for copy in self._container_strategy().experimental_local_results(variable)
        ]
        handles.update((id(handle), handle) for handle in made)
        return variable

    def call_function(self, name, tensor_inputs, *args, **kwargs):
        try:
            if runtime.lost and any(id(tensor) in handles for tensor in tensor_inputs):
                raise tf.errors.UnavailableError(None, None, "A variable of the TPU is read.")
            return call(self, name, tensor_inputs, *args, **kwargs)
        except tf.errors.OpError as error:
            if not runtime.lost:
                raise
            kinds = (tf.errors.UnavailableError, tf.errors.AbortedError)
            raise kinds[runtime.started % 2](None, None, "Socket closed") from error

    yield mock.patch.object(tpu_strategy.TPUExtended, "_create_variable", create_variable)
    yield mock.patch.object(tf_context.Context, "call_function", call_function)
