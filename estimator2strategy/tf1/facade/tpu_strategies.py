"""`TPUStrategy` as programs of TF 1.15 make it: in graph mode, or where TPU cores are emulated.

    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(FLAGS.tpu)
    strategy = tf.distribute.experimental.TPUStrategy(resolver)

TF 1.15's Estimator started the TPU when it trained. Today's strategy needs the TPU's devices in its
constructor. So this one first connects to the TPU and starts it, unless that was done.
"""

from __future__ import annotations

import weakref
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.runtime import devices, tpu_system
from estimator2strategy.engine.worlds import modern_world
from estimator2strategy.tf1.facade.tpu_resolver import TPUClusterResolver

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
