"""The updates of embedding tables: a row of `_UPDATES` for each optimizer.

Source: `optimization_parameters.proto` of TensorFlow 2.15, python/tpu/tpu_embedding.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from estimator2strategy.engine import _tf_private

tf1 = tf.compat.v1

Slots: TypeAlias = "Mapping[str, tf.Tensor]"
_Update: TypeAlias = tuple[tf.Tensor, dict[str, tf.Tensor]]  # the step, and the new slots

# Class of parameters -> slot -> (suffix of its variable's name, its value at the start).
SLOTS: Mapping[str, Mapping[str, tuple[str, Callable[[Any], float]]]] = {
    "StochasticGradientDescentParameters": {},
    "AdagradParameters": {"accumulator": ("Adagrad", lambda p: p.initial_accumulator)},
    "AdamParameters": {
        "m": ("Adam/m", lambda p: 0.0),
        "v": ("Adam/v", lambda p: 0.0),
    },
}


def to_apply(
    parameters: Any, gradient: tf.Tensor, touched: tf.Tensor, num_cores: int
) -> Sequence[tuple[tf.Tensor, tf.Tensor]]:
    """The (gradient, touched) that are applied to a table one after the other.

    They are the sum over the cores, or, without `use_gradient_accumulation`, what each core has,
    first for each row that of the core which had it on a TPU with one host.

    Args:
        gradient: [vocabulary, dimension] of this core.
        touched: [vocabulary], float: the number of this core's lookups of each row.
    """
    if parameters.use_gradient_accumulation:
        sums = tf1.tpu.cross_replica_sum(gradient), tf1.tpu.cross_replica_sum(touched)
        return [(sums[0], sums[1] > 0)]
    gradients = _core_by_core(gradient, num_cores)
    counts = _core_by_core(touched[:, None], num_cores)
    return [(g, count[:, 0] > 0) for g, count in zip(gradients, counts, strict=True)]


def _core_by_core(values: tf.Tensor, num_cores: int) -> list[tf.Tensor]:
    """[rows, n] of each core; the k-th has of row r what core (r + k) % num_cores has."""
    own = tf.reshape(tf.one_hot(_tf_private.replica_id(), num_cores), [num_cores, 1, 1])
    of_all = tf1.tpu.cross_replica_sum(own * values)
    rows = tf.range(values.shape[0])
    return [
        tf.gather_nd(of_all, tf.stack([(rows + k) % num_cores, rows], 1)) for k in range(num_cores)
    ]


def updated(
    parameters: Any,
    rate: Any,
    table: tf.Tensor,
    gradient: tf.Tensor,
    touched: tf.Tensor,
    slots: Slots,
) -> dict[str, tf.Tensor]:
    """The table and its slots after a gradient was applied.

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


def _sgd(parameters: Any, rate: Any, gradient: tf.Tensor, slots: Slots) -> _Update:
    return rate * gradient, {}


def _adagrad(parameters: Any, rate: Any, gradient: tf.Tensor, slots: Slots) -> _Update:
    accumulator = slots["accumulator"] + tf.square(gradient)
    return rate * gradient * tf.math.rsqrt(accumulator), {"accumulator": accumulator}


def _adam(parameters: Any, rate: Any, gradient: tf.Tensor, slots: Slots) -> _Update:
    """No correction of the moments' bias: the hardware had none."""
    beta1, beta2, epsilon = parameters.beta1, parameters.beta2, parameters.epsilon
    m = beta1 * slots["m"] + (1 - beta1) * gradient
    v = beta2 * slots["v"] + (1 - beta2) * tf.square(gradient)
    if parameters.sum_inside_sqrt:
        step = rate * m * tf.math.rsqrt(v + epsilon**2)
    else:
        step = rate * m / (tf.sqrt(v) + epsilon)
    return step, {"m": m, "v": v}


_UPDATES: Mapping[str, Callable[..., _Update]] = {
    "StochasticGradientDescentParameters": _sgd,
    "AdagradParameters": _adagrad,
    "AdamParameters": _adam,
}
