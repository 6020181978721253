"""The strategies under which no TF2 loop can run a legacy model."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

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
