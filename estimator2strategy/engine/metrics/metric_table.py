"""The table of the functions of `tf.compat.v1.metrics`, with a row for each conversion.

    for row in rows():
        print(row.function, row.keras, row.weights.value, row.differences)

`convert` builds metrics from the rows, and the guide explains them. No row builds a plain Keras
class. Where Keras 3 has a class of the same name, `differences` says when its number differs.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.metrics import confusion, means, ranking
from estimator2strategy.engine.metrics.shapes import StreamingMetric


class Weights(enum.Enum):
    """The ways in which v1 brings weights to the shape of the values that they weigh."""

    ELEMENT = (
        "scalar, or the rank of the values with each size 1 or equal; a last axis of size 1 is "
        "dropped or added; the divisor is the sum of the weights after broadcasting"
    )
    PRODUCT = (
        "scalar, or the rank of the labels; multiplied with NumPy broadcasting, so that weights "
        "larger than the labels count a label several times"
    )
    FLAT = "flattened; as many as there are labels"
    FLAT_OR_SCALAR = "flattened; as many as there are labels, or one for all"
    ROW = "scalar, or the rank of the labels without the last axis, with each size 1 or equal"


@dataclasses.dataclass(frozen=True)
class MetricRow:
    """A function of `tf.compat.v1.metrics`, and the Keras metric that it becomes.

    Attributes:
        function: Its name there.
        keras: The nearest class of Keras 3, '' when there is none.
        tensors: Its parameters that take a value per batch, in the order of `update_state`,
            where 'weights' is `sample_weight`.
        options: Its parameters that are fixed when the metric is built.
        weights: The way in which weights broadcast.
        differences: When `keras` gives another number than the legacy function.
        metric: `metric(**options)` gives the metric without its variables.
        aligned: Labels and predictions have the same shape, but for a last axis of size 1.
        sparse_labels: Labels may be a SparseTensor.
    """

    function: str
    keras: str
    tensors: tuple[str, ...]
    options: tuple[str, ...]
    weights: Weights
    differences: str
    metric: Callable[..., StreamingMetric]
    aligned: bool = True
    sparse_labels: bool = False

    @property
    def is_mean(self) -> bool:
        """True if its state is that of `keras.metrics.Mean`: one total and one count."""
        return self.keras in _MEANS

    @property
    def source(self) -> str:
        """The place where the legacy rule is written down."""
        return f"tensorflow/python/ops/metrics_impl.py, `{self.function}` (TF 2.16 to 2.21)"

    @property
    def defaults(self) -> dict[str, Any]:
        """Options and tensors that may be left out, with the legacy default."""
        parameters = _parameters(self.function)
        named = [name for name in (*self.options, *self.tensors) if name in parameters]
        return {
            name: parameters[name].default
            for name in named
            if parameters[name].default is not inspect.Parameter.empty
        }


@functools.cache
def _parameters(function: str) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(getattr(tf.compat.v1.metrics, function)).parameters


# Classes of Keras 3 that are a `keras.metrics.Mean`.
_MEANS = frozenset(
    f"keras.metrics.{name}"
    for name in ("Mean", "Accuracy", "MeanAbsoluteError", "MeanSquaredError")
) | {"keras.metrics.RootMeanSquaredError", "keras.metrics.CosineSimilarity"}

_LABELLED = ("labels", "predictions", "weights")

_PER_EXAMPLE = (
    "averages over the other axes of each example first, so the number changes when their sizes "
    "vary between batches; a negative total weight does not give 0.0"
)
_THRESHOLD = (
    "compares predictions with 0.5 where v1 casts to bool: 0.3 is True there; a NaN weight of an "
    "uncounted element is dropped"
)
_AT_THRESHOLDS = (
    "`thresholds=`; no error for predictions outside of [0, 1] or NaN; evenly spaced thresholds "
    "are searched by a product, which can misplace a prediction equal to a threshold"
)


def _mean(
    function: str,
    keras: str,
    metric: Callable[..., StreamingMetric],
    *,
    tensors: tuple[str, ...] = _LABELLED,
    options: tuple[str, ...] = (),
    differences: str = _PER_EXAMPLE,
    aligned: bool = True,
) -> MetricRow:
    return MetricRow(
        function, keras, tensors, options, Weights.ELEMENT, differences, metric, aligned
    )


def _count(function: str, keras: str, metric: Callable[..., StreamingMetric]) -> MetricRow:
    return MetricRow(function, keras, _LABELLED, (), Weights.PRODUCT, _THRESHOLD, metric)


def _curve(
    function: str,
    keras: str,
    metric: Callable[..., StreamingMetric],
    *,
    options: tuple[str, ...] = ("thresholds",),
    differences: str = _AT_THRESHOLDS,
) -> MetricRow:
    return MetricRow(function, keras, _LABELLED, options, Weights.ELEMENT, differences, metric)


def _at_k(
    function: str,
    metric: Callable[..., StreamingMetric],
    *,
    keras: str = "",
    predictions: str = "predictions",
    options: tuple[str, ...] = ("k", "class_id"),
    differences: str = "none in Keras; the result is float64",
) -> MetricRow:
    return MetricRow(
        function,
        keras,
        ("labels", predictions, "weights"),
        options,
        Weights.ROW,
        differences,
        metric,
        aligned=False,
        sparse_labels=True,
    )


_VALUES = ("values", "weights")

_ROWS = (
    # Means over elements.
    _mean(
        "mean", "keras.metrics.Mean", means.mean_of(means.values), tensors=_VALUES, aligned=False
    ),
    _mean(
        "accuracy",
        "keras.metrics.Accuracy",
        means.mean_of(means.correct),
        differences=f"casts labels to the dtype of the predictions, v1 the reverse; {_PER_EXAMPLE}",
    ),
    _mean(
        "mean_absolute_error",
        "keras.metrics.MeanAbsoluteError",
        means.mean_of(means.absolute_error),
    ),
    _mean(
        "mean_squared_error",
        "keras.metrics.MeanSquaredError",
        means.mean_of(means.squared_error),
    ),
    _mean(
        "root_mean_squared_error",
        "keras.metrics.RootMeanSquaredError",
        means.mean_of(means.squared_error, tf.sqrt),
        differences=f"subtracts in float32 also what is float64; {_PER_EXAMPLE}",
    ),
    _mean(
        "mean_cosine_distance",
        "keras.metrics.CosineSimilarity",
        means.mean_of(means.cosine_similarity, lambda mean: 1.0 - mean),
        options=("dim",),
        differences="is 1 minus the distance, and normalizes its inputs first, which v1 does not",
    ),
    _mean(
        "percentage_below",
        "keras.metrics.Mean",
        means.mean_of(means.below),
        tensors=("values", "threshold", "weights"),
        differences=f"needs `values < threshold` as its values; {_PER_EXAMPLE}",
        aligned=False,
    ),
    MetricRow(
        "mean_relative_error",
        "",
        ("labels", "predictions", "normalizer", "weights"),
        (),
        Weights.ELEMENT,
        "none in Keras 3",
        means.mean_of(means.relative_error),
    ),
    MetricRow(
        "mean_tensor",
        "",
        _VALUES,
        ("shape",),  # no parameter of v1, which reads it from the static shape of `values`
        Weights.ELEMENT,
        "none in Keras 3",
        means.mean_tensor,
        aligned=False,
    ),
    # Counts of booleans.
    _count("true_positives", "keras.metrics.TruePositives", confusion.counts_of("tp")),
    _count("false_negatives", "keras.metrics.FalseNegatives", confusion.counts_of("fn")),
    _count("true_negatives", "keras.metrics.TrueNegatives", confusion.counts_of("tn")),
    _count("false_positives", "keras.metrics.FalsePositives", confusion.counts_of("fp")),
    _count(
        "precision",
        "keras.metrics.Precision",
        confusion.counts_of("tp", "fp", result=confusion.precision),
    ),
    _count(
        "recall",
        "keras.metrics.Recall",
        confusion.counts_of("tp", "fn", result=confusion.recall),
    ),
    # Counts at thresholds.
    _curve(
        "true_positives_at_thresholds",
        "keras.metrics.TruePositives",
        confusion.count_at_thresholds("tp"),
    ),
    _curve(
        "false_negatives_at_thresholds",
        "keras.metrics.FalseNegatives",
        confusion.count_at_thresholds("fn"),
    ),
    _curve(
        "true_negatives_at_thresholds",
        "keras.metrics.TrueNegatives",
        confusion.count_at_thresholds("tn"),
    ),
    _curve(
        "false_positives_at_thresholds",
        "keras.metrics.FalsePositives",
        confusion.count_at_thresholds("fp"),
    ),
    _curve(
        "precision_at_thresholds",
        "keras.metrics.Precision",
        confusion.share_at_thresholds("fp"),
        differences=f"{_AT_THRESHOLDS}; v1 adds 1e-7 to the divisor",
    ),
    _curve(
        "recall_at_thresholds",
        "keras.metrics.Recall",
        confusion.share_at_thresholds("fn"),
        differences=f"{_AT_THRESHOLDS}; v1 adds 1e-7 to the divisor",
    ),
    _curve(
        "auc",
        "keras.metrics.AUC",
        confusion.auc,
        options=("num_thresholds", "curve", "summation_method", "thresholds"),
        differences=(
            "0.0 without positives, where v1 gives 1.0 (ROC); v1 adds 1e-6 to every quotient, "
            "which shows when counts or weights are small; evenly spaced thresholds are searched "
            "by a product, which misplaces some predictions that equal a threshold; "
            "'interpolation' is v1's trapezoidal for ROC and careful_interpolation for PR, and "
            "nothing is v1's default for PR, trapezoidal"
        ),
    ),
    _curve(
        "sensitivity_at_specificity",
        "keras.metrics.SensitivityAtSpecificity",
        confusion.sensitivity_at_specificity,
        options=("specificity", "num_thresholds"),
        differences="takes the best sensitivity of those with at least that specificity, v1 the "
        "one whose specificity is nearest",
    ),
    _curve(
        "specificity_at_sensitivity",
        "keras.metrics.SpecificityAtSensitivity",
        confusion.specificity_at_sensitivity,
        options=("sensitivity", "num_thresholds"),
        differences="takes the best specificity of those with at least that sensitivity, v1 the "
        "one whose sensitivity is nearest",
    ),
    # Confusion matrices.
    MetricRow(
        "mean_iou",
        "keras.metrics.MeanIoU",
        _LABELLED,
        ("num_classes",),
        Weights.FLAT,
        "counts in int64 unless given a dtype, so that weights below 1 become 0; ignores ids that "
        "are no class, where v1 fails; broadcasts a scalar weight",
        confusion.mean_iou,
    ),
    MetricRow(
        "mean_per_class_accuracy",
        "",
        _LABELLED,
        ("num_classes",),
        Weights.FLAT_OR_SCALAR,
        "none in Keras 3; v1's update op gives the accuracy of each class, its value their mean",
        confusion.mean_per_class_accuracy,
    ),
    # Rankings.
    _at_k(
        "precision_at_k",
        ranking.share_at_k("fp"),
        keras="keras.metrics.Precision",
        differences="`top_k=` needs one-hot labels; result float32, v1's float64; 0.0 for 0 / 0",
    ),
    _at_k(
        "recall_at_k",
        ranking.share_at_k("fn"),
        keras="keras.metrics.Recall",
        differences="`top_k=` needs one-hot labels; result float32, v1's float64; 0.0 for 0 / 0",
    ),
    _at_k("precision_at_top_k", ranking.share_at_top_k("fp"), predictions="predictions_idx"),
    _at_k("recall_at_top_k", ranking.share_at_top_k("fn"), predictions="predictions_idx"),
    _at_k("average_precision_at_k", ranking.average_precision_at_k, options=("k",)),
    _at_k("sparse_precision_at_k", ranking.share_at_k("fp")),
    _at_k("sparse_average_precision_at_k", ranking.average_precision_at_k, options=("k",)),
)

_BY_FUNCTION = {row.function: row for row in _ROWS}


def rows() -> tuple[MetricRow, ...]:
    """All rows, grouped by kind, in the order in which the documentation lists them."""
    return _ROWS


def find(function: str) -> MetricRow | None:
    """The row of `tf.compat.v1.metrics.<function>`, or None."""
    return _BY_FUNCTION.get(function)


def row(function: str) -> MetricRow:
    """The row of `tf.compat.v1.metrics.<function>`; ValueError naming all of them."""
    found = find(function)
    if found is None:
        known = ", ".join(sorted(_BY_FUNCTION))
        raise ValueError(f"No metric function {function!r}; there are: {known}.")
    return found
