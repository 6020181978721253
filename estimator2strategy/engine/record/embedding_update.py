"""The updates of embedding tables: a row of `_UPDATES` for each optimizer.

Source: `optimization_parameters.proto` of TensorFlow 2.15, python/tpu/tpu_embedding.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import tensorflow as tf

Slots: TypeAlias = "Mapping[str, tf.Tensor]"

# Class of parameters -> slot -> (suffix of its variable's name, its value at the start).
SLOTS: Mapping[str, Mapping[str, tuple[str, Callable[[Any], float]]]] = {
    "StochasticGradientDescentParameters": {},
    "AdagradParameters": {"accumulator": ("Adagrad", lambda p: p.initial_accumulator)},
    "AdamParameters": {
        "m": ("Adam/m", lambda p: 0.0),
        "v": ("Adam/v", lambda p: 0.0),
    },
}


def updated(
    parameters: Any,
    rate: Any,
    table: tf.Tensor,
    gradient: tf.Tensor,
    touched: tf.Tensor,
    slots: Slots,
) -> dict[str, tf.Tensor]:
    """The table and its slots after one step.

    Args:
        parameters: OptimizationParameters, of a class in `SLOTS`.
        rate: The learning rate of this step.
        table: [vocabulary, dimension].
        gradient: Likewise; 0 where a row was not looked up.
        touched: [vocabulary], bool: the rows that were looked up.
        slots: Slot -> [vocabulary, dimension].
    """
    low, high = parameters.clip_gradient_min, parameters.clip_gradient_max
    gradient = _clipped(gradient, low, high)
    step, after = _UPDATES[type(parameters).__name__](parameters, rate, gradient, slots)
    changed = {"table": table - step, **after}
    if not getattr(parameters, "lazy_adam", True):
        touched = tf.ones_like(touched)
    before = {"table": table, **slots}
    changed = {key: tf.where(touched[:, None], changed[key], before[key]) for key in changed}
    low, high = parameters.clip_weight_min, parameters.clip_weight_max
    return {**changed, "table": _clipped(changed["table"], low, high)}


def _clipped(values: tf.Tensor, low: float | None, high: float | None) -> tf.Tensor:
    values = values if low is None else tf.maximum(values, low)
    return values if high is None else tf.minimum(values, high)


def _sgd(parameters: Any, rate: Any, gradient: tf.Tensor, slots: Slots):
    return rate * gradient, {}


def _adagrad(parameters: Any, rate: Any, gradient: tf.Tensor, slots: Slots):
    accumulator = slots["accumulator"] + tf.square(gradient)
    return rate * gradient * tf.math.rsqrt(accumulator), {"accumulator": accumulator}


def _adam(parameters: Any, rate: Any, gradient: tf.Tensor, slots: Slots):
    """No correction of the moments' bias: the hardware had none."""
    beta1, beta2, epsilon = parameters.beta1, parameters.beta2, parameters.epsilon
    m = beta1 * slots["m"] + (1 - beta1) * gradient
    v = beta2 * slots["v"] + (1 - beta2) * tf.square(gradient)
    if parameters.sum_inside_sqrt:
        step = rate * m * tf.math.rsqrt(v + epsilon**2)
    else:
        step = rate * m / (tf.sqrt(v) + epsilon)
    return step, {"m": m, "v": v}


_UPDATES: Mapping[str, Callable[..., tuple[tf.Tensor, dict[str, tf.Tensor]]]] = {
    "StochasticGradientDescentParameters": _sgd,
    "AdagradParameters": _adagrad,
    "AdamParameters": _adam,
}
