"""The heads of TF 1: of `tf.contrib.estimator`, and of its canned Estimators.

Labels, losses and predictions are as with the heads of `tf.estimator`. The differences: these heads
measure with `tf.metrics`, take optimizers of `tf.train`, run the update ops of the graph with each
step, and reduce losses as `tf.losses` does.

Source: tensorflow_estimator 2.15 canned/head.py; 1.15 contrib/estimator head.py, multi_head.py.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.estimator.heads import base, head_checks
from estimator2strategy.estimator.heads.base import Head, SingleHead
from estimator2strategy.estimator.heads.classification import BinaryClassHead, MultiClassHead
from estimator2strategy.estimator.heads.keys import MetricKeys, PredictionKeys
from estimator2strategy.estimator.heads.multi_head import MultiHead
from estimator2strategy.estimator.heads.multi_label import MultiLabelHead
from estimator2strategy.estimator.heads.regression import (
    RegressionHead,
    logistic_loss,
    poisson_loss,
)
from estimator2strategy.estimator.specs import EstimatorSpec, TPUEstimatorSpec

tf1 = tf.compat.v1
Reduction = tf1.losses.Reduction


class LossSpec(NamedTuple):
    """The result of `create_loss`."""

    training_loss: tf.Tensor  # float32 []
    unreduced_loss: Any  # float32 [D0, D1, ... DN, k], of multi_head a dict of those
    weights: Any
    processed_labels: Any


class _V1(SingleHead):
    """Before a head of `tf.estimator` among the bases, makes it one of TF 1."""

    _of_tf_1 = True
    _loss_fn_arguments = ("features",)
    _measured: tuple[tuple[str, str], ...]  # argument of `_eval_metric_ops`, key of a prediction
    # The first arguments of `_eval_metric_ops`, in their order.
    _metric_arguments: tuple[str, ...]

    def create_loss(
        self, features: Mapping[str, Any], mode: str, logits: Any, labels: Any
    ) -> LossSpec:
        """The loss and what it is made of."""
        del mode
        logits = tf.convert_to_tensor(logits)
        labels = self._processed_labels(logits, labels)
        unweighted, weights = self._unweighted_loss_and_weights(logits, labels, features)
        return LossSpec(self._reduced(unweighted, weights), unweighted, weights, labels)

    def create_estimator_spec(self, *args: Any, **kwargs: Any) -> EstimatorSpec:
        """The spec that a model_fn returns.

        Takes features, mode, logits, labels, optimizer, train_op_fn and regularization_losses, in
        this order; the optimizer is one of `tf.compat.v1.train`.

        Raises:
            ValueError: To train, not one of `optimizer` and `train_op_fn` is given.
        """
        return self._create_tpu_estimator_spec(*args, **kwargs).as_estimator_spec()

    def _create_tpu_estimator_spec(  # type: ignore[override]  # the arguments are TF 1's
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        train_op_fn: Any = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> TPUEstimatorSpec:
        with tf1.name_scope(self._name, "head"):
            logits = head_checks.check_logits_final_dim(logits, self._logits_dimension)
            predictions = self.predictions(logits)
            if mode == ModeKeys.PREDICT:
                outputs = self._export_outputs(predictions)
                return TPUEstimatorSpec(mode, predictions, export_outputs=outputs)
            parts = self.create_loss(features, mode, logits, labels)
            losses = {MetricKeys.LOSS: parts.training_loss}
            if regularization_losses:
                losses[MetricKeys.LOSS_REGULARIZATION] = tf.add_n(regularization_losses)
                losses[MetricKeys.LOSS] = tf.add_n(list(losses.values()))
            loss = losses[MetricKeys.LOSS]
            if mode == ModeKeys.EVAL:
                metrics = self._eval_metrics(predictions, parts, losses)
                return TPUEstimatorSpec(mode, predictions, loss, eval_metrics=metrics)
            train_op = append_update_ops(_minimized(loss, optimizer, train_op_fn))
            if self._loss_reduction == Reduction.SUM:
                total = tf.reduce_sum(parts.weights * tf.ones_like(parts.unreduced_loss))
                losses[MetricKeys.LOSS_MEAN] = parts.training_loss / total
        with tf1.name_scope(""):
            for key, value in losses.items():
                tf1.summary.scalar(self._summary_key(key), value)
        return TPUEstimatorSpec(mode, predictions, loss, train_op)

    def _eval_metrics(
        self, predictions: dict[str, tf.Tensor], parts: LossSpec, losses: dict[str, tf.Tensor]
    ) -> tuple[Callable[..., Any], dict[str, tf.Tensor]]:
        observed = {
            **{argument: predictions[key] for argument, key in self._measured},
            "labels": parts.processed_labels,
            "weights": parts.weights,
            "unreduced_loss": parts.unreduced_loss,
            "regularization_loss": losses.get(MetricKeys.LOSS_REGULARIZATION),
        }
        return base.create_eval_metrics_tuple(self._eval_metric_ops, observed)

    def _eval_metric_ops(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The metrics by key. Programs call and override it, by the arguments of TF 1's heads."""
        names = (*self._metric_arguments, "weights", "unreduced_loss", "regularization_loss")
        parameters = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names]
        given = inspect.Signature(parameters).bind(*args, **kwargs).arguments
        observed = {**given, "predictions": given.get("predicted_value")}
        rows = self._rows_with(observed["regularization_loss"])
        with tf1.name_scope("metrics"):
            return {self._summary_key(row.key): row.pair(observed) for row in rows}

    def _check_loss_reduction(self, loss_reduction: str) -> None:
        # A derived head may want the losses of examples. Makers refuse NONE, in `_reducing`.
        if loss_reduction not in Reduction.all():
            raise ValueError(f"Invalid loss_reduction: {loss_reduction}")

    def _reduced(self, unweighted: tf.Tensor, weights: Any) -> tf.Tensor:
        return tf1.losses.compute_weighted_loss(
            unweighted, weights=weights, reduction=self._loss_reduction
        )


def append_update_ops(train_op: Any) -> Any:
    """`train_op`, and the update ops of the graph if there are any."""
    update_ops = tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)
    return tf.group(train_op, *update_ops) if update_ops else train_op


def _minimized(
    loss: tf.Tensor, optimizer: Any, train_op_fn: Callable[[tf.Tensor], Any] | None
) -> Any:
    if optimizer is not None and train_op_fn is not None:
        raise ValueError("train_op_fn and optimizer cannot both be set.")
    if optimizer is not None:
        return optimizer.minimize(loss, global_step=tf1.train.get_global_step())
    if train_op_fn is not None:
        return train_op_fn(loss)
    raise ValueError("train_op_fn and optimizer cannot both be None.")


def summed(make: Callable[..., Any]) -> Callable[..., Any]:
    """A maker of heads whose losses are added up by default, as in canned Estimators."""
    signature = inspect.signature(make)

    @functools.wraps(make)
    def made(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        given.arguments.setdefault("loss_reduction", Reduction.SUM)
        return make(*given.args, **given.kwargs)

    return made


def _reducing(loss_reduction: str) -> str:
    """A reduction to one number."""
    if loss_reduction == Reduction.NONE:
        raise ValueError(f"Invalid loss_reduction: {loss_reduction}")
    return loss_reduction


# Programs derive heads of theirs from these three, by the private names that they had.


class Binary(_V1, BinaryClassHead):
    """Two classes, by one logit: sigmoid cross entropy."""

    _measured = (
        ("logits", PredictionKeys.LOGITS),
        ("logistic", PredictionKeys.LOGISTIC),
        ("class_ids", PredictionKeys.CLASS_IDS),
    )
    _metric_arguments = ("labels", "logits", "logistic", "class_ids")
    __init__ = summed(BinaryClassHead.__init__)


class MultiClass(_V1, MultiClassHead):
    """More than two classes, by a logit for each: softmax cross entropy."""

    _all_classes_have_names = False  # labels may be of the first classes alone
    _measured = (("class_ids", PredictionKeys.CLASS_IDS),)
    _metric_arguments = ("labels", "class_ids")
    __init__ = summed(MultiClassHead.__init__)


class Regression(_V1, RegressionHead):
    """Real values, by a logit for each: squared error."""

    _measured = (("predicted_value", PredictionKeys.PREDICTIONS),)
    _metric_arguments = ("predicted_value", "labels")
    __init__ = summed(RegressionHead.__init__)


class _MultiLabel(_V1, MultiLabelHead):
    _measured = (("probabilities", PredictionKeys.PROBABILITIES),)
    _metric_arguments = ("labels", "probabilities")

    def _prediction_keys(self) -> tuple[str, ...]:
        return (PredictionKeys.LOGITS, PredictionKeys.PROBABILITIES)


class _Multi(MultiHead):
    _of_tf_1 = True

    def create_loss(
        self, features: Mapping[str, Any], mode: str, logits: Any, labels: Any
    ) -> LossSpec:
        """The weighted sum of the heads' losses; of each head by its name, the rest."""
        by_name = self._logits_by_name(logits, labels)
        weights = self._head_weights or [1.0] * len(self._heads)
        parts = {
            head.name: head.create_loss(features, mode, by_name[head.name], labels[head.name])
            for head in self._heads
        }
        scales = dict(zip(parts, weights, strict=True))
        return LossSpec(
            self._weighted_sum([part.training_loss for part in parts.values()]),
            {name: part.unreduced_loss * scales[name] for name, part in parts.items()},
            {name: part.weights * scales[name] for name, part in parts.items()},
            {name: part.processed_labels for name, part in parts.items()},
        )

    def create_estimator_spec(  # type: ignore[override]  # the arguments are TF 1's
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        train_op_fn: Any = None,
    ) -> EstimatorSpec:
        if mode not in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT):
            raise ValueError(f"mode={mode} unrecognized")
        specs = self._specs(features, mode, logits, labels)
        named = [(head.name, spec) for head, spec in zip(self._heads, specs, strict=True)]
        predictions = {
            (name, key): value for name, spec in named for key, value in spec.predictions.items()
        }
        if mode == ModeKeys.PREDICT:
            outputs = self._merged_export_outputs(specs)
            return EstimatorSpec(mode, predictions, export_outputs=outputs)
        metrics: dict[str, Any] = {}
        with tf1.name_scope("merge_eval" if mode == ModeKeys.EVAL else "merge_losses"):
            for name, spec in named:
                if mode == ModeKeys.EVAL:
                    key = f"{MetricKeys.LOSS}/{name}"
                    metrics[key] = tf1.metrics.mean(spec.loss, name=key)
                metrics.update(spec.eval_metric_ops)
            loss = self._weighted_sum([spec.loss for spec in specs])
        if mode == ModeKeys.EVAL:
            return EstimatorSpec(mode, predictions, loss, eval_metric_ops=metrics)
        train_op = _minimized(loss, optimizer, train_op_fn)
        with tf1.name_scope(""):
            tf1.summary.scalar(MetricKeys.LOSS, loss)
        return EstimatorSpec(mode, predictions, loss, train_op)


# `tf.contrib.estimator`; the arguments are those of the heads of `tf.estimator`.


def binary_classification_head(
    weight_column: Any = None,
    thresholds: Iterable[float] | None = None,
    label_vocabulary: Sequence[str] | None = None,
    loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
    loss_fn: Callable[..., Any] | None = None,
    name: str | None = None,
) -> _V1:
    """Two classes, by one logit: sigmoid cross entropy.

    Raises:
        TypeError: `label_vocabulary` is no list.
        ValueError: Another argument is not as `BinaryClassHead` wants it.
    """
    if label_vocabulary is not None and not isinstance(label_vocabulary, (list, tuple)):
        raise TypeError(
            f"label_vocabulary should be a list or tuple. Given type: {type(label_vocabulary)}"
        )
    reduction = _reducing(loss_reduction)
    return cast(_V1, Binary(weight_column, thresholds, label_vocabulary, reduction, loss_fn, name))


def multi_class_head(
    n_classes: int,
    weight_column: Any = None,
    label_vocabulary: Sequence[str] | None = None,
    loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
    loss_fn: Callable[..., Any] | None = None,
    name: str | None = None,
) -> _V1:
    """More than two classes, by a logit for each: softmax cross entropy."""
    reduction = _reducing(loss_reduction)
    return cast(
        _V1, MultiClass(n_classes, weight_column, label_vocabulary, reduction, loss_fn, name)
    )


def regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
    loss_fn: Callable[..., Any] | None = None,
    inverse_link_fn: Callable[[tf.Tensor], tf.Tensor] | None = None,
    name: str | None = None,
) -> _V1:
    """Real values, by a logit for each: squared error."""
    reduction = _reducing(loss_reduction)
    return cast(
        _V1, Regression(label_dimension, weight_column, reduction, loss_fn, inverse_link_fn, name)
    )


def poisson_regression_head(
    weight_column: Any = None,
    label_dimension: int = 1,
    loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
    compute_full_loss: bool = True,
    name: str | None = None,
) -> _V1:
    """Counts, by the log of what is expected: Poisson loss."""
    loss_fn = poisson_loss(compute_full_loss)
    return regression_head(weight_column, label_dimension, loss_reduction, loss_fn, tf.exp, name)


def logistic_regression_head(
    weight_column: Any = None,
    loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
    name: str | None = None,
) -> _V1:
    """Probabilities, by their logit: sigmoid cross entropy of labels in [0, 1]."""
    return regression_head(weight_column, 1, loss_reduction, logistic_loss, tf.sigmoid, name)


def multi_label_head(
    n_classes: int,
    weight_column: Any = None,
    thresholds: Iterable[float] | None = None,
    label_vocabulary: Sequence[str] | None = None,
    loss_reduction: str = Reduction.SUM_OVER_BATCH_SIZE,
    loss_fn: Callable[..., Any] | None = None,
    classes_for_class_based_metrics: Sequence[int] | Sequence[str] | None = None,
    name: str | None = None,
) -> _V1:
    """Any number of classes per example, by a logit for each: sigmoid cross entropy, their mean."""
    return _MultiLabel(
        n_classes,
        weight_column,
        thresholds,
        label_vocabulary,
        _reducing(loss_reduction),
        loss_fn,
        classes_for_class_based_metrics,
        name,
    )


def multi_head(heads: Sequence[Head], head_weights: Sequence[float] | None = None) -> _Multi:
    """The weighted sum of several heads' losses, and each one's predictions and metrics."""
    return _Multi(heads, head_weights)


def binary_or_multi_class_head(
    n_classes: int, weight_column: Any, label_vocabulary: Any, loss_reduction: str
) -> _V1:
    """The head of TF 1's canned classifiers."""
    if n_classes == 2:
        return binary_classification_head(weight_column, None, label_vocabulary, loss_reduction)
    return multi_class_head(n_classes, weight_column, label_vocabulary, loss_reduction)
