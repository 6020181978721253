"""`Head`: the top of a network, which makes an EstimatorSpec of logits.

Example:

    head = estimator.MultiClassHead(n_classes=3)
    logits = network(features)                                     # [batch, 3]
    return head.create_estimator_spec(
        features, mode, logits, labels,
        train_op_fn=lambda loss: optimizer.minimize(loss, global_step=step))
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.estimator import export
from estimator2strategy.estimator.heads import head_checks
from estimator2strategy.estimator.heads.keys import MetricKeys
from estimator2strategy.estimator.heads.metric_rows import HeadMetric, Observed, regularization_row
from estimator2strategy.estimator.heads.train_op import create_estimator_spec_train_op
from estimator2strategy.estimator.specs import EstimatorSpec, TPUEstimatorSpec

tf1 = tf.compat.v1

# tf.keras.losses.Reduction of TF 2.15: Keras 3 has no such class.
SUM = "sum"
SUM_OVER_BATCH_SIZE = "sum_over_batch_size"


class _HeadType(abc.ABCMeta):
    """Lets `isinstance` tell the heads of TF 2 from those of TF 1, as programs do.

    Those of TF 1 (v1.py) are built on those of TF 2 here; in TensorFlow they were not.
    """

    _of_tf_1: bool

    def __instancecheck__(cls, instance: Any) -> bool:
        if getattr(type(instance), "_of_tf_1", False) and not cls._of_tf_1:
            return False
        return super().__instancecheck__(instance)


class Head(metaclass=_HeadType):
    """The interface of heads; subclasses of programs implement it or `create_estimator_spec`.

    Source: `tf.estimator.Head`, tensorflow_estimator 2.15 base_head.py.
    """

    _of_tf_1 = False

    @property
    @abc.abstractmethod
    def name(self) -> str | None:
        """Appended to the keys of metrics and summaries; None: nothing is."""

    @property
    @abc.abstractmethod
    def logits_dimension(self) -> int:
        """Size of the last dimension of the logits."""

    @property
    @abc.abstractmethod
    def loss_reduction(self) -> str:
        """The reduction that makes the training loss from the losses of examples."""

    @abc.abstractmethod
    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Mapping[str, Any] | None = None,
        mode: str | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> tf.Tensor:
        """The training loss, a float32 scalar, with `regularization_losses` added."""

    @abc.abstractmethod
    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[str, tf.Tensor]:
        """Predictions by key; `keys` chooses some of them."""

    @abc.abstractmethod
    def metrics(self, regularization_losses: Sequence[Any] | None = None) -> dict[str, Any]:
        """Fresh metric objects (of tf-keras) by key."""

    @abc.abstractmethod
    def update_metrics(
        self,
        eval_metrics: dict[str, Any],
        features: Mapping[str, Any],
        logits: Any,
        labels: Any,
        mode: str | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> dict[str, Any]:
        """`eval_metrics`, after a batch was added to them."""

    def create_estimator_spec(
        self,
        features: Mapping[str, Any],
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        trainable_variables: Sequence[tf.Variable] | None = None,
        train_op_fn: Callable[[tf.Tensor], Any] | None = None,
        update_ops: Sequence[Any] | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> EstimatorSpec:
        """The spec that a model_fn returns.

        Args:
            features: The features, which have the weights.
            mode: A value of `ModeKeys`.
            logits: Tensor of shape [D0, D1, ... DN, logits_dimension].
            labels: Not needed to predict.
            optimizer: To train: a legacy optimizer of tf-keras, which needs `trainable_variables`,
                or one of `tf.compat.v1.train`, which takes all there are by default.
            trainable_variables: The variables that `optimizer` changes.
            train_op_fn: Makes the train op from the loss, in place of `optimizer`.
            update_ops: Run at each training step too.
            regularization_losses: Scalars, added to the loss.

        Raises:
            ValueError: To train, not one of `optimizer` and `train_op_fn` is given; arguments
                do not fit one another.
            NotImplementedError: A subclass implements neither this nor the spec for TPUs.
        """
        try:
            spec = self._create_tpu_estimator_spec(
                features=features,
                mode=mode,
                logits=logits,
                labels=labels,
                optimizer=optimizer,
                trainable_variables=trainable_variables,
                train_op_fn=train_op_fn,
                update_ops=update_ops,
                regularization_losses=regularization_losses,
            )
        except NotImplementedError as error:
            raise NotImplementedError(
                "Subclasses of Head must implement `create_estimator_spec()` or "
                "_create_tpu_estimator_spec()."
            ) from error
        return spec.as_estimator_spec()

    def _create_tpu_estimator_spec(self, *arguments: Any, **named: Any) -> TPUEstimatorSpec:
        raise NotImplementedError("TPUEstimatorSpec not available for this model head.")

    def _summary_key(self, key: str) -> str:
        return f"{key}/{self.name}" if self.name else key


class BuiltInHead(Head):
    """A head of this package."""

    @abc.abstractmethod
    def _served(
        self, features: Mapping[str, Any], logits: Any, predictions: dict[Any, tf.Tensor]
    ) -> dict[str, Any]:
        """The signatures that are exported."""

    def _loss_key(self, key: str) -> str:
        """The name of a loss's summary."""
        return self._summary_key(key)

    def _create_tpu_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        regularization_losses: Sequence[Any] | None = None,
        **training: Any,
    ) -> TPUEstimatorSpec:
        with tf1.name_scope(self.name, "head"):
            predictions = self.predictions(logits)
            if mode == ModeKeys.PREDICT:
                outputs = self._served(features, logits, predictions)
                return TPUEstimatorSpec(mode, predictions, export_outputs=outputs)
            loss = self.loss(labels, logits, features, mode, regularization_losses)
            if mode == ModeKeys.EVAL:
                arguments = {
                    "eval_metrics": self.metrics(regularization_losses=regularization_losses),
                    "features": features,
                    "logits": logits,
                    "labels": labels,
                    "regularization_losses": regularization_losses,
                }
                metrics = create_eval_metrics_tuple(self.update_metrics, arguments)
                return TPUEstimatorSpec(mode, predictions, loss, eval_metrics=metrics)
            train_op = create_estimator_spec_train_op(
                self.name,
                **training,
                regularized_training_loss=loss,
                loss_reduction=self.loss_reduction,
            )
        create_estimator_spec_summary(loss, regularization_losses, self._loss_key)
        return TPUEstimatorSpec(mode, predictions, loss, train_op)


class SingleHead(BuiltInHead):
    """A head with one loss: the base of all heads in this package but `MultiHead`.

    Subclasses define the labels, the loss of an example, the predictions and the metrics.
    """

    _loss_fn_arguments: tuple[str, ...] = ("features", "loss_reduction")
    _per_logit_weights = False

    def __init__(
        self,
        logits_dimension: int,
        weight_column: Any,
        loss_reduction: str,
        loss_fn: Callable[..., Any] | None,
        name: str | None,
    ):
        self._check_loss_reduction(loss_reduction)
        if loss_fn:
            head_checks.validate_loss_fn_args(loss_fn, self._loss_fn_arguments)
        self._logits_dimension = logits_dimension
        self._weight_column = weight_column
        self._loss_reduction = loss_reduction
        self._loss_fn = loss_fn
        self._name = name

    @property
    def name(self) -> str | None:
        return self._name

    @property
    def logits_dimension(self) -> int:
        return self._logits_dimension

    @property
    def loss_reduction(self) -> str:
        return self._loss_reduction

    # Defined by subclasses.

    @abc.abstractmethod
    def _processed_labels(self, logits: tf.Tensor, labels: Any) -> tf.Tensor:
        """Labels as numbers, of the shape that the loss needs."""

    @abc.abstractmethod
    def _unweighted_loss(self, labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        """[D0, D1, ... DN, k]: the loss of each example, unless the user has a loss_fn."""

    @abc.abstractmethod
    def _rows(self) -> list[HeadMetric]:
        """The metrics."""

    @abc.abstractmethod
    def _export_outputs(self, predictions: dict[str, tf.Tensor]) -> dict[str, Any]:
        """The signatures of these predictions."""

    @abc.abstractmethod
    def _prediction_keys(self) -> tuple[str, ...]:
        """Keys of all predictions."""

    @abc.abstractmethod
    def _predicted(self, logits: tf.Tensor, wanted: Sequence[str]) -> dict[str, tf.Tensor]:
        """Predictions by key, those in `wanted` at least."""

    def _served(
        self, features: Any, logits: Any, predictions: dict[str, tf.Tensor]
    ) -> dict[str, Any]:
        return self._export_outputs(predictions)

    def _loss_dimension(self) -> int:
        """The last dimension of `loss_fn`'s result."""
        return 1

    # The same in all heads.

    def loss(
        self,
        labels: Any,
        logits: Any,
        features: Any = None,
        mode: str | None = None,
        regularization_losses: Sequence[Any] | None = None,
    ) -> tf.Tensor:
        del mode
        with tf1.name_scope("losses"):
            logits = head_checks.check_logits_final_dim(logits, self._logits_dimension)
            labels = self._processed_labels(logits, labels)
            unweighted, weights = self._unweighted_loss_and_weights(logits, labels, features)
            loss = self._reduced(unweighted, weights)
            if regularization_losses is not None:
                loss += tf.add_n(regularization_losses)
            return loss

    def predictions(self, logits: Any, keys: Sequence[str] | None = None) -> dict[str, tf.Tensor]:
        wanted = tuple(keys or self._prediction_keys())
        check_prediction_keys(wanted, self._prediction_keys())
        logits = head_checks.check_logits_final_dim(logits, self._logits_dimension)
        with tf1.name_scope("predictions"):
            by_key = self._predicted(logits, wanted)
        return {key: by_key[key] for key in wanted}

    def metrics(self, regularization_losses: Sequence[Any] | None = None) -> dict[str, Any]:
        with tf1.name_scope("metrics"):
            rows = self._rows_with(regularization_losses)
            return {self._summary_key(row.key): row.keras_metric() for row in rows}

    def update_metrics(  # type: ignore[override]  # without mode, as in TensorFlow
        self,
        eval_metrics: dict[str, Any],
        features: Any,
        logits: Any,
        labels: Any,
        regularization_losses: Sequence[Any] | None = None,
    ) -> dict[str, Any]:
        observed = self._observed(features, logits, labels, regularization_losses)
        for row in self._rows_with(regularization_losses):
            row.update(eval_metrics[self._summary_key(row.key)], observed)
        return eval_metrics

    def _unweighted_loss_and_weights(
        self, logits: tf.Tensor, labels: tf.Tensor, features: Mapping[str, Any] | None
    ) -> tuple[tf.Tensor, Any]:
        """(unweighted losses, weights); subclasses of programs override this one, by its name."""
        if self._loss_fn:
            size = self._loss_dimension()
            unweighted = head_checks.call_loss_fn(self._loss_fn, labels, logits, features, size)
        else:
            unweighted = self._unweighted_loss(labels, logits)
        weights = head_checks.get_weights_and_check_match_logits(
            features, self._weight_column, logits, self._per_logit_weights
        )
        return unweighted, weights

    def _observed(
        self, features: Mapping[str, Any], logits: Any, labels: Any, regularization_losses: Any
    ) -> Observed:
        """The tensors that the rows measure."""
        logits = head_checks.check_logits_final_dim(logits, self._logits_dimension)
        labels = self._processed_labels(logits, labels)
        unweighted, weights = self._unweighted_loss_and_weights(logits, labels, features)
        observed = {
            **self.predictions(logits),
            "labels": labels,
            "unreduced_loss": unweighted,
            "weights": weights,
        }
        if regularization_losses is not None:
            observed[MetricKeys.LOSS_REGULARIZATION] = tf.add_n(regularization_losses)
        return observed

    def _rows_with(self, regularization_losses: Any) -> list[HeadMetric]:
        return [
            HeadMetric(MetricKeys.LOSS_MEAN, "mean", ("unreduced_loss",)),
            *self._rows(),
            *([] if regularization_losses is None else [regularization_row()]),
        ]

    # Overridden by TF 1's heads (v1.py).

    def _check_loss_reduction(self, loss_reduction: str) -> None:
        head_checks.validate_loss_reduction(loss_reduction)

    def _reduced(self, unweighted: tf.Tensor, weights: Any) -> tf.Tensor:
        losses = unweighted * weights
        total = tf.reduce_sum(losses)
        if self._loss_reduction == SUM:
            return total
        return tf.math.divide_no_nan(total, tf.cast(tf.size(losses), total.dtype))


def create_eval_metrics_tuple(
    fn: Callable[..., Any], kwargs: Mapping[str, Any]
) -> tuple[Callable[..., Any], dict[str, tf.Tensor]]:
    """`(function, tensors)` for `TPUEstimatorSpec`: what is no tensor is bound to `fn`."""
    tensors = {name: value for name, value in kwargs.items() if tf.is_tensor(value)}
    others = {name: value for name, value in kwargs.items() if name not in tensors}

    def metric_fn(**tensors: tf.Tensor) -> Any:
        return fn(**{**others, **tensors})

    return metric_fn, tensors


def create_estimator_spec_summary(
    regularized_training_loss: tf.Tensor,
    regularization_losses: Sequence[Any] | None = None,
    summary_key_fn: Callable[[str], str] | None = None,
) -> None:
    """Adds summaries of the losses to the graph."""
    key = summary_key_fn or str
    with tf1.name_scope(""):
        tf1.summary.scalar(key(MetricKeys.LOSS), regularized_training_loss)
        if regularization_losses is not None:
            regularization_loss = tf.add_n(regularization_losses)
            tf1.summary.scalar(key(MetricKeys.LOSS_REGULARIZATION), regularization_loss)


def check_prediction_keys(keys: Sequence[str], valid: Sequence[str]) -> None:
    """Raises ValueError for a key that is not valid."""
    for key in keys:
        if key not in valid:
            raise ValueError(
                f"Prediction key must be in PredictionKeys, given: {key}. "
                f"Valid prediction keys include {list(valid)}."
            )


def all_class_ids(logits: tf.Tensor, n_classes: int) -> tf.Tensor:
    """int32 [batch, n_classes]: 0, 1, 2, ... for each example."""
    return tf.tile(tf.range(n_classes)[tf.newaxis], [tf.shape(logits)[0], 1])


def all_classes(
    logits: tf.Tensor, n_classes: int, label_vocabulary: Sequence[str] | None = None
) -> tf.Tensor:
    """string [batch, n_classes]: the names of all classes, for each example."""
    names = label_vocabulary or tf.strings.as_string(tf.range(n_classes))
    return tf.tile(tf.convert_to_tensor(names)[tf.newaxis], [tf.shape(logits)[0], 1])


def classification_output(
    scores: tf.Tensor, n_classes: int, label_vocabulary: Sequence[str] | None = None
) -> export.ClassificationOutput:
    """The export output of a classifier: a score of each class, and its name."""
    classes = all_classes(scores, n_classes, label_vocabulary)
    return export.ClassificationOutput(scores=scores, classes=classes)
