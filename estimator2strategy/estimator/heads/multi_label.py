"""The head of examples that have any number of labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.estimator.heads import base, head_checks
from estimator2strategy.estimator.heads.base import SUM_OVER_BATCH_SIZE
from estimator2strategy.estimator.heads.classification import ClassHead, threshold_rows
from estimator2strategy.estimator.heads.keys import MetricKeys, PredictionKeys
from estimator2strategy.estimator.heads.metric_rows import HeadMetric

tf1 = tf.compat.v1


class MultiLabelHead(ClassHead):
    """Any number of classes per example, by a logit for each: sigmoid cross entropy, their mean.

    Args:
        n_classes: Number of classes, at least 2.
        weight_column: Name of the feature, or numeric column, that weights examples.
        thresholds: In (0, 1): accuracy, precision and recall are measured at each.
        label_vocabulary: Names of the classes, for sparse labels that are strings.
        loss_reduction: "sum_over_batch_size" or "sum".
        loss_fn: `loss_fn(labels, logits[, features])` -> [D0, D1, ... DN, 1], in place of the
            cross entropy.
        classes_for_class_based_metrics: Ids or names of classes that are measured one by one too.
        name: Appended to the keys of metrics and summaries.

    Logits are [D0, D1, ... DN, n_classes]. Labels are 0 or 1 of that shape, or a SparseTensor of
    ids or names.

    Raises:
        ValueError: An argument is not as above.

    Source: `tf.estimator.MultiLabelHead`, tensorflow_estimator 2.15 multi_label_head.py.
    """

    def __init__(
        self,
        n_classes: int,
        weight_column: Any = None,
        thresholds: Iterable[float] | None = None,
        label_vocabulary: Sequence[str] | None = None,
        loss_reduction: str = SUM_OVER_BATCH_SIZE,
        loss_fn: Callable[..., Any] | None = None,
        classes_for_class_based_metrics: Sequence[int] | Sequence[str] | None = None,
        name: str | None = None,
    ):
        if n_classes is None or n_classes < 2:
            raise ValueError(
                f"n_classes must be > 1 for multi-label classification. Given: {n_classes}"
            )
        self._n_classes = n_classes
        self._thresholds = head_checks.checked_thresholds(thresholds)
        self._label_vocabulary = head_checks.checked_vocabulary(label_vocabulary, n_classes)
        self._measured_classes = _class_ids(
            tuple(classes_for_class_based_metrics or ()), n_classes, label_vocabulary
        )
        super().__init__(n_classes, weight_column, loss_reduction, loss_fn, name)

    def _prediction_keys(self) -> tuple[str, ...]:
        return (PredictionKeys.LOGITS, PredictionKeys.PROBABILITIES, PredictionKeys.CLASSES)

    def _predicted(self, logits: Any, wanted: Sequence[str]) -> dict[str, tf.Tensor]:
        names = self._label_vocabulary
        return {
            PredictionKeys.LOGITS: logits,
            PredictionKeys.PROBABILITIES: tf.sigmoid(logits, name=PredictionKeys.PROBABILITIES),
            PredictionKeys.CLASSES: base.all_classes(logits, self._n_classes, names),
        }

    def _processed_labels(self, logits: Any, labels: Any) -> tf.Tensor:
        if labels is None:
            raise ValueError(head_checks.NO_LABELS)
        if isinstance(labels, tf.SparseTensor):
            labels = self._indicators(labels)
        else:
            message = "labels must be an integer indicator Tensor with values in [0, 1]"
            labels = head_checks.check_label_range(tf.convert_to_tensor(labels), 2, message)
        return head_checks.check_dense_labels_match_logits_and_reshape(
            labels, logits, self._n_classes
        )

    def _indicators(self, labels: tf.SparseTensor) -> tf.Tensor:
        if labels.dtype == tf.string:
            ids = self._class_id_table.lookup(labels.values)
        else:
            if not labels.dtype.is_integer:
                raise ValueError(f"Labels dtype should be integer. Instead got {labels.dtype}.")
            message = (
                f"labels must be an integer SparseTensor with values in [0, {self._n_classes})"
            )
            ids = head_checks.check_label_range(labels.values, self._n_classes, message)
        sparse = tf.SparseTensor(labels.indices, ids, labels.dense_shape)
        return tf.cast(tf.sparse.to_indicator(sparse, self._n_classes), tf.int64)

    def _unweighted_loss(self, labels: Any, logits: Any) -> tf.Tensor:
        losses = tf.nn.sigmoid_cross_entropy_with_logits(
            labels=tf.cast(labels, logits.dtype), logits=logits
        )
        return tf.reduce_mean(losses, axis=-1, keepdims=True)

    def _rows(self) -> list[HeadMetric]:
        keys = MetricKeys
        of = ("labels", "probabilities")
        return [
            HeadMetric(keys.AUC, "auc", of),
            HeadMetric(keys.AUC_PR, "auc_precision_recall", of),
            *threshold_rows(self._thresholds, of),
            *(row for class_id in self._measured_classes for row in self._class_rows(class_id, of)),
        ]

    def _class_rows(self, class_id: int, of: tuple[str, str]) -> list[HeadMetric]:
        keys = MetricKeys
        if self._label_vocabulary is None:
            label: Any = class_id
            names = (keys.PROBABILITY_MEAN_AT_CLASS, keys.AUC_AT_CLASS, keys.AUC_PR_AT_CLASS)
        else:
            label = self._label_vocabulary[class_id]
            names = (keys.PROBABILITY_MEAN_AT_NAME, keys.AUC_AT_NAME, keys.AUC_PR_AT_NAME)
        mean, auc, auc_pr = (name % label for name in names)
        return [
            HeadMetric(mean, "mean", of[1:], class_id=class_id),
            HeadMetric(auc, "auc", of, class_id=class_id),
            HeadMetric(auc_pr, "auc_precision_recall", of, class_id=class_id),
        ]


def _class_ids(classes: tuple[Any, ...], n_classes: int, vocabulary: Any) -> tuple[int, ...]:
    """Ids of `classes`, which may be names."""
    if classes and isinstance(classes[0], str):
        if not vocabulary:
            raise ValueError(
                "label_vocabulary must be provided when classes_for_class_based_metrics are "
                "strings."
            )
        return tuple(vocabulary.index(name) for name in classes)
    for class_id in classes:
        if not 0 <= class_id < n_classes:
            raise ValueError(
                "All classes_for_class_based_metrics must be in range "
                f"[0, {n_classes - 1}]. Given: {class_id}"
            )
    return classes
