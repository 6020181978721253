"""The table of the functions of `tf.compat.v1.metrics`, with a row for each conversion.

    for row in rows():
        print(row.function, row.keras, row.weights.value, row.differences)

`metric_table.csv` has their facts. `convert` builds metrics from the rows, and the guide explains
them. No row builds a plain Keras class. Where Keras 3 has a class of the same name, `differences`
says when its number differs. The option `shape` of `mean_tensor` is no parameter of v1, which reads
it from the static shape of `values`.
"""

from __future__ import annotations

import csv
import dataclasses
import enum
import functools
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
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

# Function -> `metric(**options)`, which makes the metric without its variables.
_METRICS: Mapping[str, Callable[..., StreamingMetric]] = {
    "mean": means.mean_of(means.values),
    "accuracy": means.mean_of(means.correct),
    "mean_absolute_error": means.mean_of(means.absolute_error),
    "mean_squared_error": means.mean_of(means.squared_error),
    "root_mean_squared_error": means.mean_of(means.squared_error, tf.sqrt),
    "mean_cosine_distance": means.mean_of(means.cosine_similarity, lambda mean: 1.0 - mean),
    "percentage_below": means.mean_of(means.below),
    "mean_relative_error": means.mean_of(means.relative_error),
    "mean_tensor": means.mean_tensor,
    "true_positives": confusion.counts_of("tp"),
    "false_negatives": confusion.counts_of("fn"),
    "true_negatives": confusion.counts_of("tn"),
    "false_positives": confusion.counts_of("fp"),
    "precision": confusion.counts_of("tp", "fp", result=confusion.precision),
    "recall": confusion.counts_of("tp", "fn", result=confusion.recall),
    "true_positives_at_thresholds": confusion.count_at_thresholds("tp"),
    "false_negatives_at_thresholds": confusion.count_at_thresholds("fn"),
    "true_negatives_at_thresholds": confusion.count_at_thresholds("tn"),
    "false_positives_at_thresholds": confusion.count_at_thresholds("fp"),
    "precision_at_thresholds": confusion.share_at_thresholds("fp"),
    "recall_at_thresholds": confusion.share_at_thresholds("fn"),
    "auc": confusion.auc,
    "sensitivity_at_specificity": confusion.sensitivity_at_specificity,
    "specificity_at_sensitivity": confusion.specificity_at_sensitivity,
    "mean_iou": confusion.mean_iou,
    "mean_per_class_accuracy": confusion.mean_per_class_accuracy,
    "precision_at_k": ranking.share_at_k("fp"),
    "recall_at_k": ranking.share_at_k("fn"),
    "precision_at_top_k": ranking.share_at_top_k("fp"),
    "recall_at_top_k": ranking.share_at_top_k("fn"),
    "average_precision_at_k": ranking.average_precision_at_k,
    "sparse_precision_at_k": ranking.share_at_k("fp"),
    "sparse_average_precision_at_k": ranking.average_precision_at_k,
}


@functools.cache
def _rows() -> dict[str, MetricRow]:
    """Function -> its row: the facts of `metric_table.csv`, and its metric."""
    with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        return {row["function"]: _row(**row) for row in csv.DictReader(file)}


def _row(function: str, keras: str, differences: str, weights: str, **facts: str) -> MetricRow:
    return MetricRow(
        function,
        keras,
        tuple(facts["tensors"].split()),
        tuple(facts["options"].split()),
        Weights[weights],
        differences,
        _METRICS[function],
        bool(facts["aligned"]),
        bool(facts["sparse_labels"]),
    )


def rows() -> tuple[MetricRow, ...]:
    """All rows, grouped by kind, in the order in which the documentation lists them."""
    return tuple(_rows().values())


def find(function: str) -> MetricRow | None:
    """The row of `tf.compat.v1.metrics.<function>`, or None."""
    return _rows().get(function)


def row(function: str) -> MetricRow:
    """The row of `tf.compat.v1.metrics.<function>`; ValueError naming all of them."""
    found = find(function)
    if found is None:
        known = ", ".join(sorted(_rows()))
        raise ValueError(f"No metric function {function!r}; there are: {known}.")
    return found
