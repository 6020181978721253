"""`MultiHead`: several heads on one network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.estimator import export
from estimator2strategy.estimator.heads.base import BuiltInHead
from estimator2strategy.estimator.heads.keys import (
    DEFAULT_SERVING_KEY,
    PREDICT_SERVING_KEY,
    MetricKeys,
)
from estimator2strategy.estimator.heads.metric_rows import HeadMetric, regularization_row
from estimator2strategy.estimator.specs import EstimatorSpec, TPUEstimatorSpec

tf1 = tf.compat.v1


class MultiHead(BuiltInHead):
    """The weighted sum of several heads' losses, and each one's predictions and metrics.

    Args:
        heads: Heads with names of their own.
        head_weights: A float for each; all count the same by default.

    Logits are a dict by the heads' names, or one tensor of all logits side by side. Labels are a
    dict by the names; keys of predictions are pairs (name, key).

    Raises:
        ValueError: There are no heads, a head has no name, or weights are missing.

    Source: `tf.estimator.MultiHead`, tensorflow_estimator 2.15 multi_head.py.
    """

    def __init__(self, heads: Sequence[Any], head_weights: Sequence[float] | None = None):
        if not heads:
            raise ValueError(f"Must specify heads. Given: {heads}")
        if head_weights and len(head_weights) != len(heads):
            raise ValueError(
                "heads and head_weights must have the same size. Given len(heads): "
                f"{len(heads)}. Given len(head_weights): {len(head_weights)}."
            )
        for head in heads:
            if head.name is None:
                raise ValueError(f"All given heads must have name specified. Given: {head}")
        self._heads = tuple(heads)
        self._head_weights = tuple(head_weights or ())

    @property
    def name(self) -> str:
        return "_".join(head.name for head in self._heads)

    @property
    def logits_dimension(self) -> int:
        return sum(head.logits_dimension for head in self._heads)

    @property
    def loss_reduction(self) -> str:
        reductions = [head.loss_reduction for head in self._heads]
        if len(set(reductions)) > 1:
            raise ValueError(
                f"The loss_reduction must be the same for different heads. Given: {reductions}"
            )
        return cast(str, reductions[0])

    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Any = None,
        mode: str | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> tf.Tensor:
        by_name = self._logits_by_name(logits, labels)
        losses = [
            head.loss(
                logits=by_name[head.name], labels=labels[head.name], features=features, mode=mode
            )
            for head in self._heads
        ]
        with tf1.name_scope("merge_losses"):
            merged = self._weighted_sum(losses)
            if regularization_losses is not None:
                merged += tf.add_n(regularization_losses)
            return merged

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[Any, tf.Tensor]:
        del keys
        by_name = self._logits_by_name(logits)
        with tf1.name_scope("merge_pred"):
            return {
                (head.name, key): value
                for head in self._heads
                for key, value in head.predictions(logits=by_name[head.name]).items()
            }

    def metrics(self, regularization_losses: Sequence[Any] | None = None) -> dict[str, Any]:
        rows = (
            {} if regularization_losses is None else {self._regularization_key(): _REGULARIZATION}
        )
        with tf1.name_scope("merge_eval"):
            rows.update({_head_loss_key(head): _LOSS for head in self._heads})
            return {key: row.keras_metric(key) for key, row in rows.items()}

    def update_metrics(  # type: ignore[override]  # without mode, as in TensorFlow
        self,
        eval_metrics: dict[str, Any],
        features: Any,
        logits: Any,
        labels: Any,
        regularization_losses: Sequence[Any] | None = None,
    ) -> dict[str, Any]:
        by_name = self._logits_by_name(logits, labels)
        if regularization_losses is not None:
            observed = {MetricKeys.LOSS_REGULARIZATION: tf.add_n(regularization_losses)}
            _REGULARIZATION.update(eval_metrics[self._regularization_key()], observed)
        for head in self._heads:
            batch = (features, by_name[head.name], labels[head.name])
            loss = head.loss(labels=batch[2], logits=batch[1], features=features)
            _LOSS.update(eval_metrics[_head_loss_key(head)], {"loss": loss})
            eval_metrics.update(head.update_metrics(head.metrics(), *batch) or {})
        return eval_metrics

    def _create_tpu_estimator_spec(  # type: ignore[override]  # the rest goes to the heads
        self, features: Any, mode: str, logits: Any, labels: Any = None, **rest: Any
    ) -> TPUEstimatorSpec:
        if mode not in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT):
            raise ValueError(f"mode={mode} unrecognized")
        if mode == ModeKeys.TRAIN:
            self._specs(features, mode, logits, labels)  # for the heads' own summaries
        return super()._create_tpu_estimator_spec(features, mode, logits, labels, **rest)

    def _served(
        self, features: Any, logits: Any, predictions: dict[str, tf.Tensor]
    ) -> dict[str, Any]:
        return self._merged_export_outputs(self._specs(features, ModeKeys.PREDICT, logits, None))

    def _loss_key(self, key: str) -> str:
        return key

    # Parts that TF 1's multi_head shares (v1.py).

    def _specs(
        self, features: Mapping[str, Any], mode: str, logits: Any, labels: Any
    ) -> list[EstimatorSpec]:
        by_name = self._logits_by_name(logits, labels)
        return [
            head.create_estimator_spec(
                features=features,
                mode=mode,
                logits=by_name[head.name],
                labels=labels[head.name] if labels else None,
                train_op_fn=lambda _: tf.no_op(),
            )
            for head in self._heads
        ]

    def _weighted_sum(self, losses: Sequence[tf.Tensor]) -> tf.Tensor:
        weights = self._head_weights or [1.0] * len(losses)
        return tf.add_n([loss * weight for loss, weight in zip(losses, weights, strict=True)])

    def _regularization_key(self) -> str:
        return self._summary_key(MetricKeys.LOSS_REGULARIZATION)

    def _logits_by_name(self, logits: Any, labels: Any = None) -> Mapping[str, tf.Tensor]:
        names = {head.name for head in self._heads}
        if labels is not None and not isinstance(labels, dict):
            raise ValueError(f"labels must be a dict. Given: {labels}")
        for what, given in (("logits", logits), ("labels", labels)):
            missing = names - set(given) if isinstance(given, dict) else None
            if missing:
                raise ValueError(f"{what} has missing values for head(s): {sorted(missing)}")
        return logits if isinstance(logits, dict) else self._split(logits)

    def _split(self, logits: Any) -> dict[str, tf.Tensor]:
        with tf1.name_scope("split_logits"):
            logits = tf.convert_to_tensor(logits)
            sizes = [head.logits_dimension for head in self._heads]
            last = logits.shape.as_list()[-1]
            if last is not None and last != sum(sizes):
                raise ValueError(
                    f"Could not split logits of shape {logits.shape.as_list()} among the heads "
                    f"with individual logits dimensions: {sizes}. The last dimension of the logits "
                    f"tensor should equal {sum(sizes)} but is {last}."
                )
            parts = tf.split(logits, sizes, axis=-1)
            return {head.name: part for head, part in zip(self._heads, parts, strict=True)}

    def _merged_export_outputs(self, specs: Sequence[EstimatorSpec]) -> dict[str, Any]:
        """`head/signature` of each head, all predictions in one, and by default the first head."""
        first = specs[0].export_outputs
        outputs = {
            DEFAULT_SERVING_KEY: first[DEFAULT_SERVING_KEY]
            if len(first) > 1
            else next(iter(first.values()))
        }
        merged = {}
        for head, spec in zip(self._heads, specs, strict=True):
            for key, output in spec.export_outputs.items():
                outputs[head.name if key == DEFAULT_SERVING_KEY else f"{head.name}/{key}"] = output
                if key == PREDICT_SERVING_KEY and isinstance(output, export.PredictOutput):
                    merged.update({f"{head.name}/{k}": v for k, v in output.outputs.items()})
        return {**outputs, PREDICT_SERVING_KEY: export.PredictOutput(merged)}


_REGULARIZATION = regularization_row()
_LOSS = HeadMetric(MetricKeys.LOSS, "mean", ("loss",), weighted=False)


def _head_loss_key(head: Any) -> str:
    return f"{MetricKeys.LOSS}/{head.name}"
