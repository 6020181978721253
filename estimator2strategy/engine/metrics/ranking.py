"""Metrics at k, which ask if a label ranks among the first k predictions.

Sums and results are float64, as in v1. Labels are int64, dense or a `tf.SparseTensor`; repeated
labels and predictions of one row count once, since the counting is done on sets.

Source: tensorflow/python/ops/metrics_impl.py, the function of the same name and
`_select_class_id`, `_sparse_*_at_k`, `_sparse_average_precision_at_top_k`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import tensorflow as tf

from estimator2strategy.engine.metrics import shapes
from estimator2strategy.engine.metrics.shapes import StreamingMetric, Sums

Labels: TypeAlias = "tf.Tensor | tf.SparseTensor"


def _labels(labels: Any) -> Labels:
    return labels if isinstance(labels, tf.SparseTensor) else tf.convert_to_tensor(labels)


def _top_k(predictions: Any, k: int) -> tf.Tensor:
    return tf.math.top_k(predictions, k).indices


def share_at_top_k(rest: str) -> Callable[..., StreamingMetric]:
    """`precision_at_top_k` (rest 'fp') and `recall_at_top_k` (rest 'fn'); 0 / 0 is NaN."""

    def metric(class_id: int | None, k: int | None = None) -> StreamingMetric:
        del k  # v1 uses it for names only: predictions_idx has k columns already

        def batch(labels: Any, predictions_idx: Any, weights: Any) -> Sums:
            predictions_idx = tf.convert_to_tensor(predictions_idx)
            labels = shapes.expand_labels(_labels(labels), predictions_idx)
            predicted: Labels = tf.cast(predictions_idx, tf.int64)
            if class_id is not None:
                labels, predicted = _only(class_id, labels), _only(class_id, predicted)
            return {
                "tp": _total(tf.sets.intersection(predicted, labels), weights),
                rest: _total(tf.sets.difference(predicted, labels, aminusb=rest == "fp"), weights),
            }

        def result(sums: Sums) -> tf.Tensor:
            return sums["tp"] / (sums["tp"] + sums[rest])

        return StreamingMetric({"tp": ((), "float64"), rest: ((), "float64")}, batch, result)

    return metric


def share_at_k(rest: str) -> Callable[..., StreamingMetric]:
    """`precision_at_k` (rest 'fp') and `recall_at_k` (rest 'fn')."""

    def metric(k: int, class_id: int | None) -> StreamingMetric:
        of_top_k = share_at_top_k(rest)(class_id=class_id)

        def batch(labels: Any, predictions: Any, weights: Any) -> Sums:
            top = _top_k(predictions, k)
            return of_top_k.batch(labels=labels, predictions_idx=top, weights=weights)

        return StreamingMetric(of_top_k.state, batch, of_top_k.result)

    return metric


def _only(class_id: int, ids: Labels) -> tf.SparseTensor:
    """The ids that are `class_id`, at most one per row."""
    if isinstance(ids, tf.SparseTensor):
        return tf.sparse.retain(ids, tf.equal(ids.values, class_id))
    shape = tf.shape(ids, out_type=tf.int64)
    wanted = tf.fill(tf.concat([shape[:-1], [1]], 0), tf.constant(class_id, tf.int64))
    hits = tf.sets.intersection(wanted, ids)
    return tf.SparseTensor(hits.indices, hits.values, shape)


def _total(ids: tf.SparseTensor, weights: Any) -> tf.Tensor:
    sizes = tf.cast(tf.sets.size(ids), tf.float64)
    if weights is not None:
        sizes *= shapes.broadcast_weights(tf.convert_to_tensor(weights), _with_rank(sizes, ids))
    return tf.reduce_sum(sizes)


def _with_rank(sizes: tf.Tensor, ids: tf.SparseTensor) -> tf.Tensor:
    """`sizes` with the static rank that set operations forget: one below that of `ids`."""
    return tf.ensure_shape(sizes, [None] * (shapes.rank_of(ids) - 1))


def average_precision_at_k(k: int) -> StreamingMetric:
    """Mean over rows of the average precision at k; the mean of no rows is 0.0."""
    if k < 1:
        raise ValueError(f"Invalid k={k}. `k` should be >= 1.")

    def batch(labels: Any, predictions: Any, weights: Any) -> Sums:
        predictions = tf.convert_to_tensor(predictions)
        classes = tf.shape(predictions, out_type=tf.int64)[-1]
        labels = _without_ids_from(classes, _labels(labels))
        precisions = _average_precisions(labels, _top_k(predictions, k), k)
        if weights is None:
            return {
                "total": tf.reduce_sum(precisions),
                "max": tf.cast(tf.size(precisions), tf.float64),
            }
        weights = shapes.broadcast_weights(tf.convert_to_tensor(weights), precisions)
        return {"total": tf.reduce_sum(precisions * weights), "max": tf.reduce_sum(weights)}

    def result(sums: Sums) -> tf.Tensor:
        return tf.math.divide_no_nan(sums["total"], sums["max"])

    return StreamingMetric({"total": ((), "float64"), "max": ((), "float64")}, batch, result)


def _without_ids_from(classes: tf.Tensor, labels: Labels) -> Labels:
    """Labels with every id that is no class replaced by -1, which means "no label"."""
    if isinstance(labels, tf.SparseTensor):
        return labels.with_values(_without_ids_from(classes, labels.values))
    return tf.where(labels >= classes, -tf.ones_like(labels), labels)


def _average_precisions(labels: Labels, predictions_idx: tf.Tensor, k: int) -> tf.Tensor:
    """Average precision of each row, [D1, ... DN]; NaN for a row without labels."""
    predicted = tf.cast(predictions_idx, tf.int64)
    labels = shapes.expand_labels(labels, predicted)
    # One set per rank: predictions [D1, ... DN, k, 1] against labels [D1, ... DN, k, num_labels].
    hits = tf.sets.size(tf.sets.intersection(predicted[..., tf.newaxis], _repeated(labels, k)))
    relevant = tf.ensure_shape(tf.cast(hits, tf.float64), [None] * shapes.rank_of(predicted))
    precision_at = tf.cumsum(relevant, -1) / tf.cumsum(tf.ones_like(relevant), -1)
    num_relevant = tf.cast(tf.minimum(_num_labels(labels), k), tf.float64)
    return tf.reduce_sum(precision_at * relevant, -1) / num_relevant


def _repeated(labels: Labels, k: int) -> Labels:
    if isinstance(labels, tf.SparseTensor):
        # -2: in front of the last axis, which is the last but one of the result.
        return tf.sparse.concat(-2, [tf.sparse.expand_dims(labels, -2)] * k)
    return tf.repeat(tf.expand_dims(labels, -2), k, axis=-2)


def _num_labels(labels: Labels) -> tf.Tensor:
    if isinstance(labels, tf.SparseTensor):
        sizes = tf.sets.size(labels)
        return tf.ensure_shape(sizes, [None] * (shapes.rank_of(labels) - 1))
    return tf.cast(tf.reduce_sum(tf.cast(labels >= 0, labels.dtype), -1), tf.int32)
