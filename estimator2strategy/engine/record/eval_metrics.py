"""The metrics of an evaluation, as pairs of a value and its update."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

tf1 = tf.compat.v1
LOSS = "loss"
GLOBAL_STEP = tf1.GraphKeys.GLOBAL_STEP


def metric_pairs(spec: Any) -> dict[str, tuple[tf.Tensor, Any]]:
    """Name -> (value tensor, update op or tensor) of all metrics, `loss` among them.

    Raises:
        ValueError: model_fn declares a metric of a reserved name.

    Source: `_verify_and_create_loss_metric`, tensorflow_estimator 2.15.
    """
    declared = dict(spec.eval_metric_ops or {})
    if LOSS in declared:
        raise ValueError(
            f'Metric with name "{LOSS}" is not allowed, because Estimator already defines a '
            "default metric with the same name."
        )
    if GLOBAL_STEP in declared:
        raise ValueError(
            "Metric with name `global_step` is not allowed, because Estimator already defines a "
            "default metric with the same name."
        )
    declared[LOSS] = tf1.metrics.mean(spec.loss)
    return {name: _pair(metric) for name, metric in sorted(declared.items())}


def _pair(metric: Any) -> tuple[Any, Any]:
    """(value, update) of a `tf.metrics` pair or of a tf-keras metric that model_fn has updated."""
    if isinstance(metric, (tuple, list)):
        value, update = metric
        return value, tf.group(*tf.nest.flatten(update)) if _nested(update) else update
    return metric.result(), tf.group(*metric.updates)


def _nested(update: Any) -> bool:
    return isinstance(update, (tuple, list, dict))
