"""Metrics that are a (weighted) mean over all elements of all batches.

v1 adds up elements and weights and divides once, so neither the split into batches nor the size
of the last one matters. Values are computed in the dtype of the inputs and summed in float32.

Source: tensorflow/python/ops/metrics_impl.py, the function of the same name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.metrics import shapes
from estimator2strategy.engine.metrics.shapes import StreamingMetric, Sums

Weighted = tuple[Any, Any]


def mean_of(
    values_of: Callable[..., Weighted],
    finish: Callable[[tf.Tensor], tf.Tensor] = tf.identity,
) -> Callable[..., StreamingMetric]:
    """The metric `finish(mean of values_of(tensors))`, as a function of the options.

    Args:
        values_of: `values_of(**tensors, **options) -> (values, weights or None)`.
        finish: Applied to the float32 scalar mean; the mean of no elements is 0.0.
    """

    def metric(**options: Any) -> StreamingMetric:
        def batch(**tensors: Any) -> Sums:
            return _total_and_count(*values_of(**tensors, **options))

        return StreamingMetric({"total": ((), "float32"), "count": ((), "float32")}, batch, result)

    def result(sums: Sums) -> tf.Tensor:
        return finish(_ratio(sums))

    return metric


def _total_and_count(values: Any, weights: Any) -> Sums:
    values, weights = _float_values_and_weights(values, weights)
    if weights is None:
        return {"total": tf.reduce_sum(values), "count": tf.cast(tf.size(values), tf.float32)}
    return {"total": tf.reduce_sum(values * weights), "count": tf.reduce_sum(weights)}


def _float_values_and_weights(values: Any, weights: Any) -> tuple[tf.Tensor, tf.Tensor | None]:
    values = tf.cast(values, tf.float32)
    if weights is None:
        return values, None
    values, _, weights = shapes.match(values, None, weights)
    return values, shapes.broadcast_weights(weights, values)


def _ratio(sums: Sums) -> tf.Tensor:
    return tf.math.divide_no_nan(sums["total"], tf.maximum(sums["count"], 0.0))


def mean_tensor(shape: tuple[int, ...]) -> StreamingMetric:
    """The mean over batches, for each element of `values` of the given shape."""

    def batch(values: Any, weights: Any) -> Sums:
        values, weights = _float_values_and_weights(values, weights)
        if weights is None:
            return {"total": values, "count": tf.ones_like(values)}
        return {"total": values * weights, "count": weights}

    state = tuple(int(size) for size in shape)
    return StreamingMetric(
        {"total": (state, "float32"), "count": (state, "float32")}, batch, _ratio
    )


def values(values: Any, weights: Any) -> Weighted:
    """`mean`: the values themselves."""
    return values, weights


def correct(labels: Any, predictions: Any, weights: Any) -> Weighted:
    """`accuracy`: 1.0 where the prediction, cast to the dtype of the label, is the label."""
    predictions, labels, weights = shapes.match(predictions, labels, weights)
    # The cast goes this way round, also from float to int: 3.7 counts as label 3.
    if labels.dtype != predictions.dtype:
        predictions = tf.cast(predictions, labels.dtype)
    return tf.cast(tf.equal(predictions, labels), tf.float32), weights


def absolute_error(labels: Any, predictions: Any, weights: Any) -> Weighted:
    """`mean_absolute_error`."""
    predictions, labels, weights = shapes.match(predictions, labels, weights)
    return tf.abs(predictions - labels), weights


def squared_error(labels: Any, predictions: Any, weights: Any) -> Weighted:
    """`mean_squared_error`, `root_mean_squared_error`."""
    predictions, labels, weights = shapes.match(predictions, labels, weights)
    return tf.math.squared_difference(labels, predictions), weights


def relative_error(labels: Any, predictions: Any, normalizer: Any, weights: Any) -> Weighted:
    """`mean_relative_error`: |labels - predictions| / normalizer, 0 where the normalizer is 0."""
    predictions, labels, weights = shapes.match(predictions, labels, weights)
    predictions, normalizer = shapes.squeeze_to_same_rank(predictions, normalizer)
    errors = tf.divide(tf.abs(labels - predictions), normalizer)
    # v1's `where`: no broadcasting between its arguments.
    no_error = tf.zeros_like(labels)
    return tf.compat.v1.where(tf.equal(normalizer, 0.0), no_error, errors), weights


def cosine_similarity(labels: Any, predictions: Any, weights: Any, *, dim: int) -> Weighted:
    """`mean_cosine_distance` is 1 minus the mean of this; inputs are taken as normalized."""
    predictions, labels, weights = shapes.match(predictions, labels, weights)
    return tf.reduce_sum(predictions * labels, axis=[dim], keepdims=True), weights


def below(values: Any, threshold: Any, weights: Any) -> Weighted:
    """`percentage_below`: 1.0 where a value is below the threshold (a fraction, no percentage)."""
    return tf.cast(tf.less(values, threshold), tf.float32), weights
