"""Connects to a TPU and starts its system, once in a process.

    resolver = tf.distribute.cluster_resolver.TPUClusterResolver("local")
    topology = start(resolver)
    strategy = tf.distribute.TPUStrategy(resolver)

Starting it again would take the variables of everybody else from the TPU. TensorFlow keeps a list
of the systems that it has started, by the name of the TPU. So a system that the program has started
counts too, and one that was shut down is started again. So is one that was lost; see
`preemption.py`.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.replay.tpu_variables import is_tpu
from estimator2strategy.engine.worlds import modern_world
from estimator2strategy.errors import DeviceError

EMULATE_VARIABLE = "E2S_EMULATE_TPU_CORES"

# The variables in which a TPU's name or address may be; COLAB_TPU_ADDR has no `grpc://`.
NAMING_VARIABLES = ("KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS", "TPU_NAME", "COLAB_TPU_ADDR")

# How to do without a TPU, for errors.
WITHOUT_A_TPU = (
    "  To test the program's TPU behaviour on CPUs, call estimator2strategy.emulate_tpu("
    f"num_cores=8) before TensorFlow starts, set {EMULATE_VARIABLE}=8, or run it with "
    "e2s run --emulate-tpu-cores=8.\n"
    "  To train on CPU or GPU, pass use_tpu=False."
)

# TensorFlow's words where it was built without TPUs.
_NO_KERNEL = "No OpKernel was registered to support Op 'ConfigureDistributedTPU'"
_NO_SUPPORT = (
    "  The TensorFlow that is installed has no support for TPUs. On a TPU VM install "
    "tensorflow-tpu: see migration_guide/tpu.md."
)

_starting = threading.Lock()
_PATIENCE = 5.0  # seconds


@contextlib.contextmanager
def looking_up(
    name: str, zone: str | None = None, project: str | None = None, variable: str | None = None
) -> Iterator[None]:
    """A context in which TensorFlow asks Google's services for a TPU's addresses.

    Args:
        variable: The environment variable that names it; None: the program does.

    Raises:
        DeviceError: The TPU was not found; the message has TensorFlow's.
    """
    try:
        yield
    except TypeError:  # wrong arguments
        raise
    except Exception as error:  # of urllib, of Google's client, or TensorFlow's own
        where = {"zone": zone, "project": project}
        given = "".join(f", {key} {value!r}" for key, value in where.items() if value)
        if variable:
            given += f" (from {variable})"
        raise DeviceError(
            f"The TPU {name!r}{given} was not found. {type(error).__name__}: {error}\n"
            "  The TPU of this very machine is 'local'. An address (grpc://10.0.0.2:8470) needs no "
            "look-up; a name needs its zone and project, unless they are this machine's.\n"
            f"{WITHOUT_A_TPU}"
        ) from error


def start(resolver: Any) -> tf.tpu.experimental.Topology:
    """Connects to a TPU and starts its system, unless this process has done so.

    May be called in graph mode, and while a graph is recorded.

    Args:
        resolver: A `tf.distribute.cluster_resolver.TPUClusterResolver`.

    Returns:
        The topology of the TPU.

    Raises:
        tf.errors.OpError: TensorFlow's own, led by a sentence that names the TPU: there is none,
            or another process uses it.
    """
    with _starting, modern_world():
        topology = _tf_private.started_tpu_system(resolver)
        if topology is None:
            return _start(resolver)
        # Another resolver of the same TPU may have been there when it was started.
        resolver.set_tpu_topology(topology.serialized())
        return topology


def start_for(strategy: tf.distribute.Strategy) -> None:
    """Starts the TPU of a strategy that the program made, as an Estimator did.

    Nothing happens where it is started already, or the strategy is no TPU's.

    Source: `Estimator._actual_train_model_distributed`, tensorflow_estimator 1.15 to 2.15.

    Raises:
        tf.errors.OpError: See `start`.
    """
    if is_tpu(strategy):
        resolver = _tf_private.resolver_of_tpu(strategy)
        if isinstance(resolver, tf.distribute.cluster_resolver.TPUClusterResolver):
            start(resolver)


def start_again(strategy: tf.distribute.Strategy) -> None:
    """Connects to a strategy's TPU, which was lost, and starts its system once more.

    All that was on it is gone.

    Raises:
        tf.errors.OpError: See `start`.
    """
    resolver = _tf_private.resolver_of_tpu(strategy)
    if isinstance(resolver, tf.distribute.cluster_resolver.TPUClusterResolver):
        with _starting, modern_world():
            _start(resolver)


def _start(resolver: Any) -> tf.tpu.experimental.Topology:
    asking = threading.Thread(target=_say_if_nobody_answers, args=[resolver.master()], daemon=True)
    asking.start()
    try:
        # Hooks, savers and what else is the host's stays in this process: no device is entered.
        tf.config.experimental_connect_to_cluster(resolver, make_master_device_default=False)
        return tf.tpu.experimental.initialize_tpu_system(resolver)
    except tf.errors.OpError as error:
        name = _tf_private.tpu_name(resolver)
        lines = [f"The TPU {name!r} could not be started. {error.message}", WITHOUT_A_TPU]
        if name == "local" and _NO_KERNEL in error.message:
            lines.insert(1, _NO_SUPPORT)
        raise type(error)(error.node_def, error.op, "\n".join(lines)) from error


def _say_if_nobody_answers(address: str) -> None:
    """Says why nothing happens: TensorFlow waits for an address without a word, and without end."""
    parts = urlsplit(address if "//" in address else f"//{address}")
    try:
        port = parts.port
    except ValueError:  # no number: TensorFlow refuses it
        return
    if not (parts.hostname and port):  # this machine
        return
    try:
        socket.create_connection((parts.hostname, port), _PATIENCE).close()
    except OSError as error:
        tf.compat.v1.logging.warn(
            f"Nobody answers at {address} ({error}). Is it the address of a TPU, and is that on? "
            "TensorFlow waits for it."
        )
