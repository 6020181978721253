"""Metrics that count true and false positives and negatives.

Source: tensorflow/python/ops/metrics_impl.py: `_count_condition`,
`_confusion_matrix_at_thresholds`, `_streaming_confusion_matrix` and the function of the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.metrics import shapes
from estimator2strategy.engine.metrics.shapes import StreamingMetric, Sums

# The case that each count counts: (the label, the prediction) as booleans.
_COUNTED = {"tp": (True, True), "fn": (True, False), "tn": (False, False), "fp": (False, True)}
ALL_COUNTS = tuple(_COUNTED)

# Points just outside of [0, 1], and the same number against division by zero.
_K_EPSILON = 1e-7


def _is(label_or_prediction: tf.Tensor, wanted: bool) -> tf.Tensor:
    return label_or_prediction if wanted else tf.logical_not(label_or_prediction)


def _where_counted(count: str, labels: tf.Tensor, positive: tf.Tensor) -> tf.Tensor:
    label, prediction = _COUNTED[count]
    return tf.cast(tf.logical_and(_is(labels, label), _is(positive, prediction)), tf.float32)


def counts_of(
    *counts: str, result: Callable[[Sums], tf.Tensor] | None = None
) -> Callable[[], StreamingMetric]:
    """A metric on scalar counts of labels and predictions, both cast to bool (NaN is True).

    Args:
        *counts: Of 'tp', 'fn', 'tn', 'fp'.
        result: Function of the counts; the first count itself when None.
    """

    def batch(labels: Any, predictions: Any, weights: Any) -> Sums:
        predictions, labels, weights = shapes.match(
            tf.cast(predictions, tf.bool), tf.cast(labels, tf.bool), weights
        )
        counted = {count: _where_counted(count, labels, predictions) for count in counts}
        if weights is not None:
            shapes.require_weights_rank(weights, predictions)
            # Plain multiplication: unlike elsewhere, weights may also be the larger of the two.
            weights = tf.cast(weights, tf.float32)
            counted = {count: where * weights for count, where in counted.items()}
        return {count: tf.reduce_sum(where) for count, where in counted.items()}

    def metric() -> StreamingMetric:
        state = dict.fromkeys(counts, ((), "float32"))
        return StreamingMetric(state, batch, result or (lambda sums: tf.identity(sums[counts[0]])))

    return metric


def _share(part: tf.Tensor, rest: tf.Tensor) -> tf.Tensor:
    return tf.where(part + rest > 0, part / (part + rest), 0.0)


def precision(sums: Sums) -> tf.Tensor:
    """tp / (tp + fp), 0.0 when nothing was predicted positive."""
    return _share(sums["tp"], sums["fp"])


def recall(sums: Sums) -> tf.Tensor:
    """tp / (tp + fn), 0.0 when no label is positive."""
    return _share(sums["tp"], sums["fn"])


def _at_thresholds(
    thresholds: Sequence[float], counts: Sequence[str], result: Callable[[Sums], tf.Tensor]
) -> StreamingMetric:
    """A metric on vectors of counts, one element per threshold; positive is `> threshold`."""
    column = [[float(threshold)] for threshold in thresholds]

    def batch(labels: Any, predictions: Any, weights: Any) -> Sums:
        predictions = _require_probabilities(tf.convert_to_tensor(predictions))
        predictions, labels, weights = shapes.match(
            tf.cast(predictions, tf.float32), tf.cast(labels, tf.bool), weights
        )
        positive = tf.reshape(predictions, [1, -1]) > tf.constant(column)
        labels = tf.reshape(labels, [1, -1])
        counted = {count: _where_counted(count, labels, positive) for count in counts}
        if weights is not None:
            weights = tf.reshape(shapes.broadcast_weights(weights, predictions), [1, -1])
            counted = {count: where * weights for count, where in counted.items()}
        return {count: tf.reduce_sum(where, 1) for count, where in counted.items()}

    state = dict.fromkeys(counts, ((len(column),), "float32"))
    return StreamingMetric(state, batch, result)


def _require_probabilities(predictions: tf.Tensor) -> tf.Tensor:
    message = "predictions must be in [0, 1]"
    zero, one = tf.cast(0.0, predictions.dtype), tf.cast(1.0, predictions.dtype)
    checks = [  # both are False for NaN
        tf.debugging.assert_greater_equal(predictions, zero, message=message),
        tf.debugging.assert_less_equal(predictions, one, message=message),
    ]
    with tf.control_dependencies([check for check in checks if check is not None]):
        return tf.identity(predictions)


def count_at_thresholds(count: str) -> Callable[..., StreamingMetric]:
    """`true_positives_at_thresholds` and kin: a float32 vector, one count per threshold."""

    def metric(thresholds: Sequence[float]) -> StreamingMetric:
        return _at_thresholds(thresholds, (count,), lambda sums: tf.identity(sums[count]))

    return metric


def share_at_thresholds(rest: str) -> Callable[..., StreamingMetric]:
    """`precision_at_thresholds` (rest 'fp') and `recall_at_thresholds` (rest 'fn')."""

    def result(sums: Sums) -> tf.Tensor:
        return sums["tp"] / (_K_EPSILON + sums["tp"] + sums[rest])

    def metric(thresholds: Sequence[float]) -> StreamingMetric:
        return _at_thresholds(thresholds, ("tp", rest), result)

    return metric


def _even_thresholds(num_thresholds: int, last: float = 1.0 + _K_EPSILON) -> list[float]:
    inner = [(i + 1) * 1.0 / (num_thresholds - 1) for i in range(num_thresholds - 2)]
    return [0.0 - _K_EPSILON, *inner, last]


def sensitivity_at_specificity(specificity: float, num_thresholds: int) -> StreamingMetric:
    """Sensitivity at the first threshold whose specificity is nearest to the one given."""

    def result(sums: Sums) -> tf.Tensor:
        specificities = sums["tn"] / (sums["tn"] + sums["fp"] + _K_EPSILON)
        index = tf.argmin(tf.abs(specificities - specificity), 0)
        tp, fn = sums["tp"][index], sums["fn"][index]
        return tp / (tp + fn + _K_EPSILON)

    return _at_thresholds(_even_thresholds(num_thresholds), ALL_COUNTS, result)


def specificity_at_sensitivity(sensitivity: float, num_thresholds: int) -> StreamingMetric:
    """Specificity at the last threshold whose sensitivity is nearest to the one given."""

    def result(sums: Sums) -> tf.Tensor:
        sensitivities = sums["tp"] / (sums["tp"] + sums["fn"] + _K_EPSILON)
        distances = tf.abs(sensitivities - sensitivity)
        nearest = tf.cast(tf.equal(distances, tf.reduce_min(distances)), tf.int64)
        index = tf.argmax(tf.cumsum(nearest), 0)  # the last of several that are equally near
        tn, fp = sums["tn"][index], sums["fp"][index]
        return tn / (tn + fp + _K_EPSILON)

    # v1 ends this list, and only this one, below 1.0.
    thresholds = _even_thresholds(num_thresholds, last=1.0 - _K_EPSILON)
    return _at_thresholds(thresholds, ALL_COUNTS, result)


def auc(
    num_thresholds: int,
    curve: str,
    summation_method: str,
    thresholds: Sequence[float] | None,
) -> StreamingMetric:
    """Area under the ROC or precision-recall curve, as a Riemann sum over the thresholds.

    Args:
        num_thresholds: Number of evenly spaced thresholds, when `thresholds` is None.
        curve: 'ROC' or 'PR'.
        summation_method: 'trapezoidal', 'careful_interpolation', 'minoring' or 'majoring'.
        thresholds: Inner thresholds in (0, 1); both ends are added.
    """
    if curve not in ("ROC", "PR"):
        raise ValueError(f"Curve must be either ROC or PR. Curve {curve} is unknown.")
    if summation_method not in _HEIGHTS:
        raise ValueError(f"summation_method is {summation_method!r}, not one of {list(_HEIGHTS)}.")

    def result(sums: Sums) -> tf.Tensor:
        if curve == "PR" and summation_method == "careful_interpolation":
            return _interpolated_pr_auc(sums["tp"], sums["fp"], sums["fn"])
        x, y = _curve_points(curve, sums)
        return tf.reduce_sum((x[:-1] - x[1:]) * _HEIGHTS[summation_method](y[:-1], y[1:]))

    if thresholds is None:
        points = _even_thresholds(num_thresholds)
    else:
        points = [0.0 - _K_EPSILON, *sorted(thresholds), 1.0 + _K_EPSILON]
    return _at_thresholds(points, ALL_COUNTS, result)


# Height of the rectangle between two neighbouring points of the curve.
_HEIGHTS: dict[str, Callable[[tf.Tensor, tf.Tensor], tf.Tensor]] = {
    "trapezoidal": lambda left, right: (left + right) / 2.0,
    "careful_interpolation": lambda left, right: (left + right) / 2.0,  # of a ROC curve
    "minoring": tf.minimum,
    "majoring": tf.maximum,
}


def _curve_points(curve: str, sums: Sums) -> tuple[tf.Tensor, tf.Tensor]:
    tp, fn, tn, fp = (sums[count] for count in ALL_COUNTS)
    # Part of the result where counts are small: with no positives at all v1's ROC AUC is 1.0.
    epsilon = 1.0e-6
    recalls = (tp + epsilon) / (tp + fn + epsilon)
    if curve == "ROC":
        return fp / (fp + tn + epsilon), recalls
    return recalls, (tp + epsilon) / (tp + fp + epsilon)


def _interpolated_pr_auc(tp: tf.Tensor, fp: tf.Tensor, fn: tf.Tensor) -> tf.Tensor:
    """Davis & Goadrich 2006, section 4, in the closed form that v1 uses."""
    d_tp = tp[:-1] - tp[1:]
    p = tp + fp
    slope = tf.math.divide_no_nan(d_tp, tf.maximum(p[:-1] - p[1:], 0.0))
    intercept = tp[1:] - slope * p[1:]
    ratio = tf.where(
        tf.logical_and(p[:-1] > 0, p[1:] > 0),
        tf.math.divide_no_nan(p[:-1], tf.maximum(p[1:], 0.0)),
        tf.ones_like(p[1:]),
    )
    area = slope * (d_tp + intercept * tf.math.log(ratio))
    return tf.reduce_sum(tf.math.divide_no_nan(area, tf.maximum(tp[1:] + fn[1:], 0.0)))


def mean_iou(num_classes: int) -> StreamingMetric:
    """Intersection over union, averaged over the classes that occur; 0.0 when none does."""

    def batch(labels: Any, predictions: Any, weights: Any) -> Sums:
        labels = shapes.flat(tf.cast(labels, tf.int64))
        predictions = shapes.flat(tf.cast(predictions, tf.int64))
        if weights is not None:
            weights = shapes.flat(tf.convert_to_tensor(weights))
        matrix = tf.math.confusion_matrix(
            labels, predictions, num_classes, weights=weights, dtype=tf.float64
        )
        return {"matrix": matrix}

    def result(sums: Sums) -> tf.Tensor:
        matrix = sums["matrix"]
        predicted = tf.cast(tf.reduce_sum(matrix, 0), tf.float32)
        labelled = tf.cast(tf.reduce_sum(matrix, 1), tf.float32)
        both = tf.cast(tf.linalg.diag_part(matrix), tf.float32)
        union = predicted + labelled - both
        occurring = tf.reduce_sum(tf.cast(tf.not_equal(union, 0), tf.float32))
        iou = both / tf.where(union > 0, union, tf.ones_like(union))
        return tf.where(occurring > 0, tf.reduce_sum(iou) / occurring, 0.0)

    return StreamingMetric({"matrix": ((num_classes, num_classes), "float64")}, batch, result)


def mean_per_class_accuracy(num_classes: int) -> StreamingMetric:
    """Accuracy of each class of labels, averaged over all classes; absent ones count as 0.0."""

    def batch(labels: Any, predictions: Any, weights: Any) -> Sums:
        labels = shapes.flat(tf.cast(labels, tf.int64))
        predictions = tf.cast(shapes.flat(tf.convert_to_tensor(predictions)), labels.dtype)
        correct = tf.cast(tf.equal(predictions, labels), tf.float32)
        ones = tf.ones_like(correct)
        if weights is not None:
            weights = tf.cast(shapes.flat(tf.convert_to_tensor(weights)), tf.float32)
            correct, ones = correct * weights, ones * weights
        indices = tf.expand_dims(labels, -1)
        return {
            "total": tf.scatter_nd(indices, ones, [num_classes]),
            "count": tf.scatter_nd(indices, correct, [num_classes]),
        }

    def result(sums: Sums) -> tf.Tensor:
        per_class = tf.math.divide_no_nan(sums["count"], tf.maximum(sums["total"], 0.0))
        return tf.reduce_mean(per_class)

    state = {"total": ((num_classes,), "float32"), "count": ((num_classes,), "float32")}
    return StreamingMetric(state, batch, result)
