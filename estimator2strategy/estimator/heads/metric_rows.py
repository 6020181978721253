"""The metrics of heads as rows: each is measured by tf-keras metrics, or by `tf.metrics`.

    row = HeadMetric("precision", "precision", ("labels", "class_ids"))
    metric = row.keras_metric()
    row.update(metric, observed)                # what TF 2's heads do
    value, update_op = row.pair(observed)       # what TF 1's heads did

`observed` has tensors by name: labels, predictions, weights, ... of one batch.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import tensorflow as tf

tf1 = tf.compat.v1
Observed = Mapping[str, Any]


def accuracy_baseline(labels_mean: tuple[Any, Any]) -> tuple[Any, Any]:
    """The accuracy of always predicting the more frequent one of two classes."""
    value, update = labels_mean
    return tf.maximum(value, 1.0 - value), tf.maximum(update, 1.0 - update)


def _baseline(labels: Any, weights: Any, name: str) -> tuple[Any, Any]:
    return accuracy_baseline(tf1.metrics.mean(labels, weights, name=name))


def accuracy_at_threshold(
    labels: Any, predictions: Any, weights: Any, threshold: float, name: str | None = None
) -> tuple[Any, Any]:
    """The accuracy if predictions of at least `threshold` mean 1."""
    positive = tf.cast(predictions >= threshold, tf.float32)
    return cast(tuple[Any, Any], tf1.metrics.accuracy(labels, positive, weights, name=name))


def _squeezed(function: Callable[..., Any]) -> Callable[..., tuple[Any, Any]]:
    def at_threshold(
        labels: Any, predictions: Any, weights: Any, threshold: float, name: str | None = None
    ) -> tuple[Any, Any]:
        value, update = function(labels, predictions, (threshold,), weights, name=name)
        return tf.squeeze(value), tf.squeeze(update)

    return at_threshold


precision_at_threshold = _squeezed(tf1.metrics.precision_at_thresholds)
recall_at_threshold = _squeezed(tf1.metrics.recall_at_thresholds)


_auc_pr = functools.partial(tf1.metrics.auc, curve="PR")


class _Kind(NamedTuple):
    pair: Callable[..., Any]  # (values..., weights, name[, threshold]) -> (value, update op)
    keras_class: str  # in tf_keras.metrics, or in keras_metrics.py
    arguments: dict[str, Any]
    threshold: str | None = None  # the class's argument for it


_KINDS = {
    "mean": _Kind(tf1.metrics.mean, "Mean", {}),
    "accuracy": _Kind(tf1.metrics.accuracy, "Accuracy", {}),
    "precision": _Kind(tf1.metrics.precision, "Precision", {}),
    "recall": _Kind(tf1.metrics.recall, "Recall", {}),
    "accuracy_baseline": _Kind(_baseline, "AccuracyBaseline", {}),
    "auc": _Kind(tf1.metrics.auc, "AUC", {}),
    "auc_precision_recall": _Kind(_auc_pr, "AUC", {"curve": "PR"}),
    "accuracy_at": _Kind(accuracy_at_threshold, "BinaryAccuracy", {}, "threshold"),
    "precision_at": _Kind(precision_at_threshold, "Precision", {}, "thresholds"),
    "recall_at": _Kind(recall_at_threshold, "Recall", {}, "thresholds"),
}


class HeadMetric(NamedTuple):
    """One metric of a head.

    Attributes:
        key: Its key in `eval_metric_ops`, without the head's name.
        kind: A key of the table above.
        of: Names in `observed`: of the values, or of labels and predictions.
        threshold: For the kinds that end in `_at`.
        class_id: Measure this class alone: a column of the values.
        weighted: True if the examples' weights count.
    """

    key: str
    kind: str
    of: tuple[str, ...]
    threshold: float | None = None
    class_id: int | None = None
    weighted: bool = True

    def keras_metric(self, name: str | None = None) -> Any:
        """A fresh tf-keras metric."""
        from estimator2strategy.estimator.heads import keras_metrics

        kind = _KINDS[self.kind]
        at = {kind.threshold: self.threshold} if kind.threshold else {}
        cls = keras_metrics.find(kind.keras_class)
        return cls(name=name or self.key, **kind.arguments, **at)

    def update(self, metric: Any, observed: Observed) -> None:
        """Adds a batch to what `keras_metric` returned."""
        values, weights = self._values_and_weights(observed)
        metric.update_state(*values, sample_weight=weights)

    def pair(self, observed: Observed) -> tuple[tf.Tensor, tf.Tensor]:
        """`(value, update_op)`, by `tf.metrics`, for batches like this one."""
        values, weights = self._values_and_weights(observed)
        at = {} if self.threshold is None else {"threshold": self.threshold}
        return cast(
            tuple[tf.Tensor, tf.Tensor],
            _KINDS[self.kind].pair(*values, weights=weights, name=self.key, **at),
        )

    def _values_and_weights(self, observed: Observed) -> tuple[list[Any], Any]:
        values = [observed[name] for name in self.of]
        if self.class_id is not None:
            values = [value[..., self.class_id : self.class_id + 1] for value in values]
        if not self.weighted:
            return values, None
        # A column of weights counts for every column of the values.
        ones = tf.ones_like(values[-1], dtype=tf.float32)
        return values, observed["weights"] * ones


def regularization_row() -> HeadMetric:
    """The mean of the regularization losses."""
    key = "regularization_loss"
    return HeadMetric(key, "mean", (key,), weighted=False)
