"""`tf.keras.backend.moving_average_update` of TF 1.15, which counts the updates from zero."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator2strategy.tf1.facade.modes import v2_behavior_enabled


def moving_average_update(x: Any, value: Any, momentum: Any) -> Any:
    """Moves the variable `x` towards `value`, without a bias towards its first value.

    Source: `tf.keras.backend.moving_average_update`, TF 1.15; compared with it. tf-keras asks the
    process whether it is TF 2, where the average has a bias, and no variables of its own
    (`x/biased`, `x/local_step`), which checkpoints of TF 1.15 have.
    """
    return tf.__internal__.train.assign_moving_average(
        x, value, momentum, zero_debias=not v2_behavior_enabled()
    )
