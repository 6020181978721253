"""Strategies as programs of TF 1.15 make them: in graph mode, on devices that may not be there.

TF 1.15's Estimator started what a strategy needs when it trained; today's strategies start it in
their constructors, which do not all work in graph mode. So these are made outside of it.

`MirroredStrategy`: collectives that it makes in graph mode cannot be traced in functions, in which
steps run here, and they wait for ever for a GPU that is not there. TF 1.15 placed such a replica on
the CPU, and added up on one device unless all were GPUs; so do these.

`MultiWorkerMirroredStrategy`: in graph mode the processes would wait for each other for ever. In an
evaluator or a parameter server, which train nothing, it is a strategy of one process.

`TPUStrategy` first connects to the TPU and starts it, unless that was done; or its cores are
emulated:

    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(FLAGS.tpu)
    strategy = tf.distribute.experimental.TPUStrategy(resolver)
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.runtime import devices, tpu_system
from estimator2strategy.engine.worlds import modern_world
from estimator2strategy.tf1.facade.tpu_programs import TPUClusterResolver


def _sums(devices: Sequence[str] | None, chosen: Any) -> Any:
    """Returns the object that adds up gradients; None leaves the choice to TensorFlow."""
    if chosen is not None:
        return chosen
    asked = set(map(_device, devices or ()))
    missing = asked - {_device(device.name) for device in tf.config.list_logical_devices()}
    if missing:
        tf.compat.v1.logging.warning(
            "MirroredStrategy: this machine has no %s. The CPU takes the place of each.",
            ", ".join(f"{kind}:{index}" for kind, index in sorted(missing)),
        )
    is_all_gpus = all(kind == "GPU" for kind, _ in asked)
    return None if is_all_gpus and not missing else tf.distribute.ReductionToOneDevice()


def _device(name: str) -> tuple[str, int]:
    spec = tf.DeviceSpec.from_string(name if name.startswith("/") else f"/{name}")
    return spec.device_type, spec.device_index or 0


class MirroredStrategyV1(tf.compat.v1.distribute.MirroredStrategy):
    """`tf.distribute.MirroredStrategy` of TF 1.15.

    Args:
        devices: Names of devices; all GPUs by default, or the CPU.
        cross_device_ops: The object that adds up gradients.
    """

    def __init__(self, devices: Sequence[str] | None = None, cross_device_ops: Any = None):
        with modern_world():
            super().__init__(devices, _sums(devices, cross_device_ops))


class MirroredStrategyV2(tf.distribute.MirroredStrategy):
    """`tf.compat.v2.distribute.MirroredStrategy`; see that of V1."""

    def __init__(self, devices: Sequence[str] | None = None, cross_device_ops: Any = None):
        with modern_world():
            super().__init__(devices, _sums(devices, cross_device_ops))


_AUTO = tf.distribute.experimental.CollectiveCommunication.AUTO
_ALONE = tf.distribute.cluster_resolver.SimpleClusterResolver(tf.train.ClusterSpec({}))


def _resolver(cluster_resolver: Any) -> Any:
    """Returns the resolver of the other processes; None if `TF_CONFIG` names them."""
    resolver = cluster_resolver or tf.distribute.cluster_resolver.TFConfigClusterResolver()
    return _ALONE if resolver.task_type in ("evaluator", "ps") else cluster_resolver


class MultiWorkerMirroredStrategyV1(
    tf.compat.v1.distribute.experimental.MultiWorkerMirroredStrategy
):
    """`tf.distribute.experimental.MultiWorkerMirroredStrategy` of TF 1.15.

    Args:
        communication: A `tf.distribute.experimental.CollectiveCommunication`.
        cluster_resolver: Where the other processes are; None: where `TF_CONFIG` says.

    Raises:
        RuntimeError: TensorFlow has started its devices already.
    """

    def __init__(self, communication: Any = _AUTO, cluster_resolver: Any = None):
        with modern_world():
            super().__init__(communication, _resolver(cluster_resolver))


class MultiWorkerMirroredStrategy(tf.distribute.experimental.MultiWorkerMirroredStrategy):
    """`tf.compat.v2.distribute.experimental.MultiWorkerMirroredStrategy`; see that of V1."""

    def __init__(self, communication: Any = _AUTO, cluster_resolver: Any = None):
        with modern_world():
            super().__init__(communication, _resolver(cluster_resolver))


_emulated: weakref.WeakSet[tf.distribute.Strategy] = weakref.WeakSet()


class _TpuStrategy(type):
    """The type of the classes below: they make another strategy where cores are emulated."""

    def __call__(cls, tpu_cluster_resolver: Any = None, *args: Any, **kwargs: Any) -> Any:
        devices.emulate_tpu_if_asked()
        if devices.emulated_cores():
            strategy = devices.emulated_strategy()
            _emulated.add(strategy)
            return strategy
        resolver = TPUClusterResolver("") if tpu_cluster_resolver is None else tpu_cluster_resolver
        tpu_system.start(resolver)
        with modern_world():
            return super().__call__(resolver, *args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        made = any(instance is strategy for strategy in _emulated)
        return made or super().__instancecheck__(instance)


class TPUStrategyV1(tf.compat.v1.distribute.experimental.TPUStrategy, metaclass=_TpuStrategy):
    """`tf.distribute.experimental.TPUStrategy` of TF 1.15, and that of contrib.

    Args:
        tpu_cluster_resolver: A TPUClusterResolver; None: that of this machine's TPU.
        steps_per_run: Only for Keras.
        device_assignment: The cores of each replica; None: one each.

    Raises:
        tf.errors.OpError: The TPU cannot be started.
    """


class ExperimentalTPUStrategy(tf.distribute.experimental.TPUStrategy, metaclass=_TpuStrategy):
    """`tf.compat.v2.distribute.experimental.TPUStrategy`; see `TPUStrategyV1`."""


class TPUStrategy(tf.distribute.TPUStrategy, metaclass=_TpuStrategy):
    """`tf.compat.v2.distribute.TPUStrategy`; see `TPUStrategyV1`."""
