"""`sign_decay` of `tf.contrib.opt` of TF 1.15: factors that fall as training goes on.

Each function returns a function of the global step, which returns a float32 scalar.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf


def get_linear_decay_fn(decay_steps: int) -> Callable[[Any], tf.Tensor]:
    """From 1 down to 0 at `decay_steps`."""

    def linear_decay_fn(global_step: Any) -> tf.Tensor:
        return 1.0 - _done(global_step, decay_steps, "linear_decay") / decay_steps

    return linear_decay_fn


def get_cosine_decay_fn(
    decay_steps: int, num_periods: float = 0.5, zero_after: float | None = None
) -> Callable[[Any], tf.Tensor]:
    """`0.5 (1 + cos(2 pi num_periods step / decay_steps))`; 0 after `zero_after` periods."""

    def cosine_decay_fn(global_step: Any) -> tf.Tensor:
        periods = num_periods * (_done(global_step, decay_steps, "cosine_decay") / decay_steps)
        decayed = 0.5 * (1.0 + tf.cos(2.0 * math.pi * periods))
        return decayed if zero_after is None else tf.where(periods >= zero_after, 0.0, decayed)

    return cosine_decay_fn


def get_restart_decay_fn(
    decay_steps: int, num_periods: float = 1, zero_after: float | None = None
) -> Callable[[Any], tf.Tensor]:
    """`num_periods` falls from 1 to 0, each half a cosine; 0 after `zero_after` of them."""

    def restart_decay_fn(global_step: Any) -> tf.Tensor:
        steps = num_periods * _done(global_step, decay_steps, "cosine_decay")
        # The remainder of the steps: that of a quotient may be of the period before.
        fraction = tf.math.floormod(steps, decay_steps) / decay_steps
        decayed = 0.5 * (1.0 + tf.cos(math.pi * fraction))
        if zero_after is None:
            return decayed
        return tf.where(steps / decay_steps >= zero_after, 0.0, decayed)

    return restart_decay_fn


def _done(global_step: Any, decay_steps: int, name: str) -> tf.Tensor:
    """The steps that are done, at most all."""
    if global_step is None:
        raise ValueError(f"global_step is required for {name}.")
    return tf.cast(tf.minimum(global_step, decay_steps), tf.float32)
