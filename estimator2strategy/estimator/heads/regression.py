"""Heads of real values: squared error, Poisson and logistic regression."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.estimator import export
from estimator2strategy.estimator.heads import head_checks
from estimator2strategy.estimator.heads.base import SUM_OVER_BATCH_SIZE, SingleHead
from estimator2strategy.estimator.heads.keys import (
    DEFAULT_SERVING_KEY,
    PREDICT_SERVING_KEY,
    REGRESS_SERVING_KEY,
    MetricKeys,
    PredictionKeys,
)
from estimator2strategy.estimator.heads.metric_rows import HeadMetric

tf1 = tf.compat.v1


class RegressionHead(SingleHead):
    """Real values, by a logit for each: squared error.

    Args:
        label_dimension: Number of values per example.
        weight_column: Name of the feature, or numeric column, that weights examples, or each of
            their values.
        loss_reduction: "sum_over_batch_size" (and values) or "sum".
        loss_fn: `loss_fn(labels, logits[, features])` -> [D0, D1, ... DN, label_dimension], in
            place of the squared error.
        inverse_link_fn: Makes the predicted values from the logits.
        name: Appended to the keys of metrics and summaries.

    Logits and labels are [D0, D1, ... DN, label_dimension].

    Raises:
        ValueError: An argument is not as above.

    Source: `tf.estimator.RegressionHead`, tensorflow_estimator 2.15 regression_head.py.
    """

    _per_logit_weights = True

    def __init__(
        self,
        label_dimension: int = 1,
        weight_column: Any = None,
        loss_reduction: str = SUM_OVER_BATCH_SIZE,
        loss_fn: Callable[..., Any] | None = None,
        inverse_link_fn: Callable[[tf.Tensor], tf.Tensor] | None = None,
        name: str | None = None,
    ):
        if label_dimension < 1:
            raise ValueError(f"Invalid label_dimension {label_dimension}.")
        self._inverse_link_fn = inverse_link_fn
        super().__init__(label_dimension, weight_column, loss_reduction, loss_fn, name)

    def _prediction_keys(self) -> tuple[str, ...]:
        logits = (PredictionKeys.LOGITS,) if self._inverse_link_fn else ()
        return (PredictionKeys.PREDICTIONS, *logits)

    def _predicted(self, logits: Any, wanted: Sequence[str]) -> dict[str, tf.Tensor]:
        value = self._inverse_link_fn(logits) if self._inverse_link_fn else logits
        return {PredictionKeys.PREDICTIONS: value, PredictionKeys.LOGITS: logits}

    def _loss_dimension(self) -> int:
        return self._logits_dimension

    def _processed_labels(self, logits: Any, labels: Any) -> tf.Tensor:
        labels = head_checks.check_dense_labels_match_logits_and_reshape(
            labels, logits, self._logits_dimension
        )
        return tf.cast(labels, tf.float32)

    def _unweighted_loss(self, labels: Any, logits: Any) -> tf.Tensor:
        return tf.math.squared_difference(logits, labels)

    def _rows(self) -> list[HeadMetric]:
        return [
            HeadMetric(MetricKeys.PREDICTION_MEAN, "mean", ("predictions",)),
            HeadMetric(MetricKeys.LABEL_MEAN, "mean", ("labels",)),
        ]

    def _export_outputs(self, predictions: dict[str, tf.Tensor]) -> dict[str, Any]:
        output = export.RegressionOutput(value=predictions[PredictionKeys.PREDICTIONS])
        return {
            DEFAULT_SERVING_KEY: output,
            REGRESS_SERVING_KEY: output,
            PREDICT_SERVING_KEY: export.PredictOutput(predictions),
        }


def poisson_loss(compute_full_loss: bool) -> Callable[..., tf.Tensor]:
    """Negative log likelihood of counts; logits are logs of the expected counts."""

    def loss_fn(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        return tf.nn.log_poisson_loss(labels, logits, compute_full_loss)

    return loss_fn


def logistic_loss(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Sigmoid cross entropy of labels in [0, 1]."""
    labels = head_checks.check_label_range(labels, 2, "Labels must be in range [0, 1]")
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)


class PoissonRegressionHead(RegressionHead):
    """Counts, by the log of what is expected: Poisson loss.

    Args:
        label_dimension: Number of counts per example.
        weight_column: Name of the feature, or numeric column, that weights examples.
        loss_reduction: "sum_over_batch_size" or "sum".
        compute_full_loss: True if the loss includes Stirling's approximation.
        name: Appended to the keys of metrics and summaries.

    Raises:
        ValueError: An argument is not as above.

    Source: `tf.estimator.PoissonRegressionHead`, tensorflow_estimator 2.15 regression_head.py.
    """

    def __init__(
        self,
        label_dimension: int = 1,
        weight_column: Any = None,
        loss_reduction: str = SUM_OVER_BATCH_SIZE,
        compute_full_loss: bool = True,
        name: str | None = None,
    ):
        self._compute_full_loss = compute_full_loss
        loss_fn = self._poisson_loss  # no closure, which pickle refuses
        super().__init__(label_dimension, weight_column, loss_reduction, loss_fn, tf.exp, name)

    def _poisson_loss(self, labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        return poisson_loss(self._compute_full_loss)(labels, logits)


class LogisticRegressionHead(RegressionHead):
    """Probabilities, by their logit: sigmoid cross entropy of labels in [0, 1].

    Args:
        weight_column: Name of the feature, or numeric column, that weights examples.
        loss_reduction: "sum_over_batch_size" or "sum".
        name: Appended to the keys of metrics and summaries.

    Raises:
        ValueError: An argument is not as above.

    Source: `tf.estimator.LogisticRegressionHead`, tensorflow_estimator 2.15 regression_head.py.
    """

    def __init__(
        self,
        weight_column: Any = None,
        loss_reduction: str = SUM_OVER_BATCH_SIZE,
        name: str | None = None,
    ):
        super().__init__(1, weight_column, loss_reduction, logistic_loss, tf.sigmoid, name)
