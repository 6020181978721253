"""Heads of one label per example: of two classes, and of more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.estimator import export
from estimator2strategy.estimator.heads import base, head_checks
from estimator2strategy.estimator.heads.base import SUM_OVER_BATCH_SIZE, SingleHead
from estimator2strategy.estimator.heads.keys import (
    CLASSIFY_SERVING_KEY,
    DEFAULT_SERVING_KEY,
    PREDICT_SERVING_KEY,
    REGRESS_SERVING_KEY,
    MetricKeys,
    PredictionKeys,
)
from estimator2strategy.estimator.heads.metric_rows import HeadMetric

tf1 = tf.compat.v1


_CLASS_KEYS = (
    PredictionKeys.PROBABILITIES,
    PredictionKeys.CLASS_IDS,
    PredictionKeys.CLASSES,
    PredictionKeys.ALL_CLASS_IDS,
    PredictionKeys.ALL_CLASSES,
)


class ClassHead(SingleHead):
    """Labels of a vocabulary, or class ids."""

    _label_vocabulary: Sequence[str] | None
    _n_classes: int

    @property
    def _class_id_table(self) -> Any:
        """Class names -> int64 ids; -1 for what is not in the vocabulary."""
        ids, names = self._vocabulary()
        initializer = tf.lookup.KeyValueTensorInitializer(names, ids)
        return tf1.lookup.StaticHashTable(initializer, -1, name="class_id_lookup")

    @property
    def _class_string_table(self) -> Any:
        """Class ids, int64 -> their names."""
        ids, names = self._vocabulary()
        initializer = tf.lookup.KeyValueTensorInitializer(ids, names)
        return tf1.lookup.StaticHashTable(initializer, "UNK", name="class_string_lookup")

    def _vocabulary(self) -> tuple[tf.Tensor, tf.Tensor]:
        names = list(self._label_vocabulary or ())
        return tf.range(len(names), dtype=tf.int64), tf.constant(names, tf.string)

    def _class_names(self, ids: tf.Tensor) -> tf.Tensor:
        """Class ids, int64 -> their names, or their digits where there is no vocabulary."""
        if not self._label_vocabulary:
            return tf.strings.as_string(ids, name="str_classes")
        return self._class_string_table.lookup(ids)

    def _class_predictions(self, scores: tf.Tensor, wanted: Sequence[str]) -> dict[str, tf.Tensor]:
        """Everything that classes are called, from a score of each: [D0, D1, ... DN, classes]."""
        keys = PredictionKeys
        by_key = {
            keys.PROBABILITIES: tf.nn.softmax(scores, name=keys.PROBABILITIES),
            keys.CLASS_IDS: tf.argmax(scores, axis=-1, name=keys.CLASS_IDS)[..., tf.newaxis],
            keys.ALL_CLASS_IDS: base.all_class_ids(scores, self._n_classes),
            keys.ALL_CLASSES: base.all_classes(scores, self._n_classes, self._label_vocabulary),
        }
        if keys.CLASSES in wanted:
            by_key[keys.CLASSES] = self._class_names(by_key[keys.CLASS_IDS])
        return by_key

    def _export_outputs(self, predictions: dict[str, tf.Tensor]) -> dict[str, Any]:
        probabilities = predictions[PredictionKeys.PROBABILITIES]
        output = base.classification_output(probabilities, self._n_classes, self._label_vocabulary)
        return {
            DEFAULT_SERVING_KEY: output,
            CLASSIFY_SERVING_KEY: output,
            PREDICT_SERVING_KEY: export.PredictOutput(predictions),
        }


class BinaryClassHead(ClassHead):
    """Two classes, by one logit: sigmoid cross entropy.

    Args:
        weight_column: Name of the feature, or numeric column, that weights examples.
        thresholds: In (0, 1): accuracy, precision and recall are measured at each.
        label_vocabulary: Names of the classes; None: labels are floats in [0, 1].
        loss_reduction: "sum_over_batch_size" or "sum".
        loss_fn: `loss_fn(labels, logits[, features])` -> [D0, D1, ... DN, 1], in place of the
            cross entropy.
        name: Appended to the keys of metrics and summaries.

    Logits and labels are [D0, D1, ... DN, 1]; labels may lack the last dimension.

    Raises:
        ValueError: An argument is not as above.

    Source: `tf.estimator.BinaryClassHead`, tensorflow_estimator 2.15 binary_class_head.py.
    """

    _n_classes = 2

    def __init__(
        self,
        weight_column: Any = None,
        thresholds: Iterable[float] | None = None,
        label_vocabulary: Sequence[str] | None = None,
        loss_reduction: str = SUM_OVER_BATCH_SIZE,
        loss_fn: Callable[..., Any] | None = None,
        name: str | None = None,
    ):
        self._label_vocabulary = head_checks.checked_vocabulary(label_vocabulary)
        self._thresholds = head_checks.checked_thresholds(thresholds)
        super().__init__(1, weight_column, loss_reduction, loss_fn, name)

    def _prediction_keys(self) -> tuple[str, ...]:
        return (PredictionKeys.LOGITS, PredictionKeys.LOGISTIC, *_CLASS_KEYS)

    def _predicted(self, logits: Any, wanted: Sequence[str]) -> dict[str, tf.Tensor]:
        two = tf.concat([tf.zeros_like(logits), logits], axis=-1, name="two_class_logits")
        return {
            PredictionKeys.LOGITS: logits,
            PredictionKeys.LOGISTIC: tf.sigmoid(logits, name=PredictionKeys.LOGISTIC),
            **self._class_predictions(two, wanted),
        }

    def _processed_labels(self, logits: Any, labels: Any) -> tf.Tensor:
        labels = head_checks.check_dense_labels_match_logits_and_reshape(labels, logits, 1)
        if self._label_vocabulary is not None:
            labels = self._class_id_table.lookup(labels)
        return head_checks.check_label_range(tf.cast(labels, tf.float32), n_classes=2)

    def _unweighted_loss(self, labels: Any, logits: Any) -> tf.Tensor:
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)

    def _rows(self) -> list[HeadMetric]:
        keys = MetricKeys
        by_class, by_score = ("labels", "class_ids"), ("labels", "logistic")
        return [
            HeadMetric(keys.ACCURACY, "accuracy", by_class),
            HeadMetric(keys.PRECISION, "precision", by_class),
            HeadMetric(keys.RECALL, "recall", by_class),
            HeadMetric(keys.PREDICTION_MEAN, "mean", ("logistic",)),
            HeadMetric(keys.LABEL_MEAN, "mean", ("labels",)),
            HeadMetric(keys.ACCURACY_BASELINE, "accuracy_baseline", ("labels",)),
            HeadMetric(keys.AUC, "auc", by_score),
            HeadMetric(keys.AUC_PR, "auc_precision_recall", by_score),
            *threshold_rows(self._thresholds, by_score),
        ]

    def _export_outputs(self, predictions: dict[str, tf.Tensor]) -> dict[str, Any]:
        value = predictions[PredictionKeys.LOGISTIC]
        outputs = super()._export_outputs(predictions)
        return {**outputs, REGRESS_SERVING_KEY: export.RegressionOutput(value=value)}


def threshold_rows(thresholds: Sequence[float], of: tuple[str, str]) -> list[HeadMetric]:
    """Accuracy, precision and recall at each threshold."""
    kinds = {
        "accuracy_at": MetricKeys.ACCURACY_AT_THRESHOLD,
        "precision_at": MetricKeys.PRECISION_AT_THRESHOLD,
        "recall_at": MetricKeys.RECALL_AT_THRESHOLD,
    }
    return [
        HeadMetric(key % threshold, kind, of, threshold)
        for threshold in thresholds
        for kind, key in kinds.items()
    ]


class MultiClassHead(ClassHead):
    """More than two classes, by a logit for each: softmax cross entropy.

    Args:
        n_classes: Number of classes, at least 3.
        weight_column: Name of the feature, or numeric column, that weights examples.
        label_vocabulary: Names of the classes; None: labels are integers in [0, n_classes).
        loss_reduction: "sum_over_batch_size" or "sum".
        loss_fn: `loss_fn(labels, logits[, features])` -> [D0, D1, ... DN, 1], in place of the
            cross entropy.
        name: Appended to the keys of metrics and summaries.

    Logits are [D0, D1, ... DN, n_classes], labels [D0, D1, ... DN, 1] or [D0, D1, ... DN].

    Raises:
        ValueError: An argument is not as above.

    Source: `tf.estimator.MultiClassHead`, tensorflow_estimator 2.15 multi_class_head.py.
    """

    _all_classes_have_names = True

    def __init__(
        self,
        n_classes: int,
        weight_column: Any = None,
        label_vocabulary: Sequence[str] | None = None,
        loss_reduction: str = SUM_OVER_BATCH_SIZE,
        loss_fn: Callable[..., Any] | None = None,
        name: str | None = None,
    ):
        if n_classes is None:
            raise ValueError("n_classes cannot be None")
        self._n_classes = head_checks.validate_n_classes(n_classes)
        names = n_classes if self._all_classes_have_names else None
        self._label_vocabulary = head_checks.checked_vocabulary(label_vocabulary, names)
        super().__init__(n_classes, weight_column, loss_reduction, loss_fn, name)

    def _prediction_keys(self) -> tuple[str, ...]:
        return (PredictionKeys.LOGITS, *_CLASS_KEYS)

    def _predicted(self, logits: Any, wanted: Sequence[str]) -> dict[str, tf.Tensor]:
        return {PredictionKeys.LOGITS: logits, **self._class_predictions(logits, wanted)}

    def _processed_labels(self, logits: Any, labels: Any) -> tf.Tensor:
        labels = head_checks.check_dense_labels_match_logits_and_reshape(labels, logits, 1)
        if self._label_vocabulary is not None:
            if labels.dtype != tf.string:
                raise ValueError(
                    "Labels dtype should be string if there is a vocabulary. "
                    f"Instead got {labels.dtype}"
                )
            labels = self._class_id_table.lookup(labels)
        elif not labels.dtype.is_integer:
            raise ValueError(f"Labels dtype should be integer. Instead got {labels.dtype}.")
        return head_checks.check_label_range(labels, self._n_classes)

    def _unweighted_loss(self, labels: Any, logits: Any) -> tf.Tensor:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
            labels=tf.squeeze(labels, -1), logits=logits
        )
        return losses[..., tf.newaxis]

    def _rows(self) -> list[HeadMetric]:
        return [HeadMetric(MetricKeys.ACCURACY, "accuracy", ("labels", "class_ids"))]


def binary_or_multi_class_head(
    n_classes: int,
    weight_column: Any = None,
    label_vocabulary: Sequence[str] | None = None,
    loss_reduction: str = SUM_OVER_BATCH_SIZE,
) -> SingleHead:
    """`BinaryClassHead` for two classes, `MultiClassHead` for more."""
    options = {
        "weight_column": weight_column,
        "label_vocabulary": label_vocabulary,
        "loss_reduction": loss_reduction,
    }
    return BinaryClassHead(**options) if n_classes == 2 else MultiClassHead(n_classes, **options)
