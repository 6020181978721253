"""The strategies under which a legacy model cannot run in a TF2 loop."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator2strategy.engine.replay.tpu_variables import is_tpu
from estimator2strategy.engine.replay.xla.precision import Precision
from estimator2strategy.engine.replay.xla.target import JaxTarget
from estimator2strategy.engine.runtime.requested_runtime import Runtime
from estimator2strategy.engine.runtime.training_options import TrainingOptions, jax_target_of
from estimator2strategy.errors import UnsupportedError


def check_strategy(what: str, strategy: Any) -> None:
    """Refuses TensorFlow 2's parameter servers.

    Their steps are functions that a ClusterCoordinator sends to workers. Keras 3 has no such loop,
    and a replay's variables would have to be sharded. TF 1's strategy of that name is Estimator's.

    Args:
        what: What would run under the strategy.
        strategy: A tf.distribute.Strategy, or None.

    Raises:
        UnsupportedError: It is one of parameter servers.
    """
    asynchronous = (
        tf.distribute.ParameterServerStrategy,
        tf.compat.v1.distribute.experimental.ParameterServerStrategy,
    )
    if isinstance(strategy, asynchronous):
        raise UnsupportedError(
            f"{what} is to run under a ParameterServerStrategy, whose workers Keras 3 does not "
            "reach: all would run in this process.\n"
            "  Leave the model to Estimator, which trains over the parameter servers of TF_CONFIG, "
            "or\n"
            "  train in step, under tf.distribute.MirroredStrategy(), or\n"
            "  write the model in TF2 and give its step to a ClusterCoordinator. "
            "See migration_guide/servers.md."
        )


def target_beside(
    strategy: tf.distribute.Strategy, runtime: Runtime | None, precision: Precision | None
) -> JaxTarget | None:
    """The device of JAX that runs a LegacyModel; None: TensorFlow runs it.

    Raises:
        DeviceError, ValueError: See `jax_target_of`.
        UnsupportedError: JAX runs it, and it is made in the scope of several replicas.
    """
    target = jax_target_of(TrainingOptions(runtime=runtime, precision=precision), most=1)
    if target is not None and (strategy.num_replicas_in_sync > 1 or is_tpu(strategy)):
        raise UnsupportedError(
            f"LegacyModel is made under a {type(strategy).__name__}, and runs under JAX, where it "
            "has one device: make it outside of strategy.scope(). A TPUEstimator with use_tpu=True "
            "trains on all devices of JAX."
        )
    return target


def check_one_process(strategy: tf.distribute.Strategy) -> None:
    """Refuses a strategy whose replicas are in several processes, for a LegacyModel.

    Raises:
        UnsupportedError: It spans several.
    """
    replicas = strategy.num_replicas_in_sync
    if replicas > 1 and replicas > (here := len(strategy.extended.worker_devices)):
        raise UnsupportedError(
            f"LegacyModel is made under a {type(strategy).__name__} of {replicas} replicas, "
            f"{here} of them in this process: its variables are those of one process.\n"
            "  Train in several processes with Estimator: RunConfig(train_distribute="
            "tf.distribute.MultiWorkerMirroredStrategy()), or\n"
            "  take one process with all devices of its machine: tf.distribute.MirroredStrategy()."
        )
