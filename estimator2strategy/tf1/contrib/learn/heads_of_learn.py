"""Heads of `tf.contrib.learn`: what a canned Estimator makes of logits.

Sources: `tf.contrib.learn` head.py and metric_key.py, TF 1.15.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.estimator.heads import metric_rows
from estimator2strategy.tf1.contrib import layers
from estimator2strategy.tf1.contrib.learn.model_fn_ops import (
    ModeKeys,
    ModelFnOps,
    PredictionKey,
    ProblemType,
)

_v1 = tf.compat.v1
_Tensors = Mapping[str, tf.Tensor]
_Losses = tuple[tf.Tensor, tf.Tensor]  # for training, and to report


class Head:
    """A kind of problem: its loss, predictions and metrics; those below are all there are.

    Args:
        kind: The default variable scope.
        problem_type: A `ProblemType`.
        logits_dimension: Width of the logits.
        label_name: Key of the labels, where these are a dict.
        weight_column_name: Feature of the weights of examples.
        enable_centered_bias: True for a bias that learns at its own rate.
        head_name: Suffix of the names of metrics.
    """

    def __init__(
        self,
        kind: str,
        problem_type: int,
        logits_dimension: int,
        label_name: str | None,
        weight_column_name: str | None,
        enable_centered_bias: bool,
        head_name: str | None,
    ):
        self._kind = kind
        self._problem_type = problem_type
        self._logits_dimension = logits_dimension
        self.label_name = label_name
        self.weight_column_name = weight_column_name
        self._is_centered = enable_centered_bias
        self.head_name = head_name

    @property
    def logits_dimension(self) -> int:
        return self._logits_dimension

    def create_model_fn_ops(
        self,
        features: Mapping[str, Any],
        mode: str,
        labels: Any = None,
        train_op_fn: Callable[[tf.Tensor], Any] | None = None,
        logits: Any = None,
        logits_input: Any = None,
        scope: Any = None,
    ) -> ModelFnOps:
        """The ops of a model_fn.

        Args:
            features: By name; of them only weights are read.
            mode: A `ModeKeys`.
            labels: [batch] or [batch, 1]; [batch, label dimension] of a regression.
            train_op_fn: Makes the op that trains of the loss.
            logits: [batch, logits_dimension].
            logits_input: In place of `logits`: the input of a linear layer that makes them.
            scope: The variable scope.

        Raises:
            ValueError: The mode is none, or what it needs is missing.
        """
        ModeKeys.validate(mode)
        with _v1.variable_scope(scope, self.head_name or self._kind):
            logits = self._logits(logits, logits_input)
            bias = self._centered_bias() if self._is_centered else None
            if bias is not None:
                logits = tf.nn.bias_add(logits, bias)
            predictions = self._predictions(logits)
            outputs = {self.head_name: (self._problem_type, self._exported(predictions))}
            if mode == ModeKeys.INFER or labels is None:
                return ModelFnOps(mode, predictions, output_alternatives=outputs)
            labels = labels[self.label_name] if isinstance(labels, Mapping) else labels
            if isinstance(labels, tf.SparseTensor):
                raise ValueError("SparseTensor is not supported.")
            labels = tf.convert_to_tensor(labels)
            weights = self._weights(features)
            loss, reported = self._loss(labels, logits, weights)
            with _v1.name_scope(""):
                _v1.summary.scalar(self._key("loss"), tf.identity(reported))
            train_op = None
            if mode == ModeKeys.TRAIN:
                if train_op_fn is None:
                    raise ValueError("train_op_fn can not be None in TRAIN mode")
                train_op = self._train_op(loss, labels, train_op_fn, bias, logits, weights)
            with _v1.name_scope("metrics"):
                by_key = self._metrics(predictions, labels, weights)
                if self.head_name:
                    by_key["loss"] = _v1.metrics.mean(reported)
            named = {self._key(name): metric for name, metric in by_key.items()}
            # What an Estimator reports as "loss" is the mean of this.
            shown = reported if mode == ModeKeys.EVAL else loss
            return ModelFnOps(mode, predictions, shown, train_op, named, outputs)

    def _key(self, name: str) -> str:
        return f"{name}/{self.head_name}" if self.head_name else name

    def _logits(self, logits: Any, logits_input: Any) -> tf.Tensor:
        if (logits is None) == (logits_input is None):
            problem = "Neither logits nor" if logits is None else "Both logits and"
            raise ValueError(f"{problem} logits_input supplied.")
        if logits is None:
            return layers.linear(logits_input, self.logits_dimension, scope="logits")
        logits = tf.convert_to_tensor(logits, name="logits")
        if logits.shape.rank is not None:
            tf.TensorShape([logits.shape[-1]]).assert_is_compatible_with([self.logits_dimension])
        return logits

    def _centered_bias(self) -> Any:
        bias = _v1.Variable(tf.zeros([self.logits_dimension]), name="centered_bias_weight")
        for place in range(self.logits_dimension):
            _v1.summary.scalar(self._key(f"centered_bias/bias_{place}"), bias[place])
        return bias

    def _weights(self, features: Mapping[str, Any]) -> tf.Tensor | None:
        """[batch, 1], or as they are in features, or None."""
        name = self.weight_column_name
        if not name:
            return None
        if name not in features:
            raise ValueError(f"Weights {name} missing from features.")
        weights = tf.cast(features[name], tf.float32)
        if weights.shape.rank != 1:
            return weights
        _v1.logging.warning(f"Weights {name} has shape {weights.shape}, expanding to make it 2d.")
        return tf.reshape(weights, [-1, 1])

    def _train_op(
        self, loss: tf.Tensor, labels: Any, train_op_fn: Any, bias: Any, logits: Any, weights: Any
    ) -> Any:
        steps = []
        if bias is not None:
            with _v1.name_scope(None, "centered_bias_step") as name:
                shape = tf.stack([tf.shape(logits)[0], self.logits_dimension])
                same = tf.broadcast_to(bias, shape)
                own_loss = tf.reduce_mean(self._loss(labels, same, weights))
                adagrad = _v1.train.AdagradOptimizer(0.1)
                steps.append(adagrad.minimize(own_loss, var_list=[bias], name=name))
        with _v1.name_scope(None, "train_op"):
            train_op = train_op_fn(loss)
        return tf.group(train_op, *steps) if steps else train_op

    def _loss(self, labels: tf.Tensor, logits: tf.Tensor, weights: Any) -> _Losses:
        raise NotImplementedError

    def _predictions(self, logits: tf.Tensor) -> dict[str, tf.Tensor]:
        raise NotImplementedError

    def _exported(self, predictions: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        raise NotImplementedError

    def _metrics(self, predictions: _Tensors, labels: Any, weights: Any) -> dict[str, Any]:
        raise NotImplementedError


def _losses(unweighted: tf.Tensor, weights: tf.Tensor | None) -> _Losses:
    """The mean over examples of the weighted losses, and their mean by weights."""
    if weights is None:
        mean = tf.reduce_mean(unweighted, name="loss")
        return mean, mean
    weights = _as(unweighted, weights)
    weighted = unweighted * weights
    return tf.reduce_mean(weighted), tf.reduce_sum(weighted) / tf.reduce_sum(weights)


def _averaged(loss_fn: Callable[..., Any]) -> Callable[..., _Losses]:
    """The losses of labels, logits and weights, by the loss of each example."""
    return lambda labels, logits, weights: _losses(loss_fn(labels, logits), weights)


def _custom(loss_fn: Callable[..., Any]) -> Callable[..., _Losses]:
    """As `_averaged`, by a function of the program, which gives the loss itself."""

    def losses(labels: tf.Tensor, logits: tf.Tensor, weights: Any) -> _Losses:
        given = (labels, logits) if weights is None else (labels, logits, weights)
        loss = loss_fn(*given)
        return loss, loss

    return losses


def _as(values: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """Weights, one for each value."""
    if values.shape.rank == 1:
        weights = tf.reshape(weights, [-1])
    return tf.cast(weights, tf.float32) * tf.ones_like(values, tf.float32)


def _column(tensor: Any) -> tf.Tensor:
    tensor = tf.convert_to_tensor(tensor)
    return tensor[:, None] if tensor.shape.rank == 1 else tensor


class _RegressionHead(Head):
    def __init__(
        self, loss_fn: Callable[..., Any], link_fn: Callable[..., Any], dimension: int, *common: Any
    ):
        super().__init__("regression_head", ProblemType.LINEAR_REGRESSION, dimension, *common)
        self._losses = _averaged(loss_fn)
        self._link_fn = link_fn

    def _loss(self, labels: Any, logits: Any, weights: Any) -> _Losses:
        labels, logits = _column(labels), _column(logits)
        logits.shape.assert_is_compatible_with(labels.shape)
        return self._losses(labels, logits, weights)

    def _predictions(self, logits: Any) -> dict[str, tf.Tensor]:
        if self.logits_dimension == 1:
            logits = tf.squeeze(logits, [1], name=PredictionKey.SCORES)
        return {PredictionKey.SCORES: self._link_fn(logits)}

    def _exported(self, predictions: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return predictions

    def _metrics(self, predictions: _Tensors, labels: Any, weights: Any) -> dict[str, Any]:
        return {}


class _ClassHead(Head):
    """A head of classes."""

    _label_keys: Sequence[str] | None = None

    def _exported(self, predictions: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        """Probabilities, and the name of each class beside its probability."""
        probabilities = predictions[PredictionKey.PROBABILITIES]
        size = tf.shape(probabilities)
        names = tf.constant(self._label_keys) if self._label_keys else tf.range(size[1])
        classes = tf.tile(names[None], tf.stack([size[0], 1]))
        if not self._label_keys:
            classes = tf.as_string(classes)
        return {PredictionKey.PROBABILITIES: probabilities, PredictionKey.CLASSES: classes}


_AT_THRESHOLD: Mapping[str, Callable[..., Any]] = {
    "accuracy/": metric_rows.accuracy_at_threshold,
    "precision/positive_": metric_rows.precision_at_threshold,
    "recall/positive_": metric_rows.recall_at_threshold,
}


class _BinaryLogisticHead(_ClassHead):
    def __init__(
        self, loss_fn: Callable[..., Any] | None, thresholds: Sequence[float] | None, *common: Any
    ):
        kind = ProblemType.LOGISTIC_REGRESSION
        super().__init__("binary_logistic_head", kind, 1, *common)
        self._losses = _custom(loss_fn) if loss_fn else _averaged(_log_loss)
        self._thresholds = thresholds or (0.5,)

    def _loss(self, labels: Any, logits: Any, weights: Any) -> _Losses:
        return self._losses(labels, logits, weights)

    def _predictions(self, logits: Any) -> dict[str, tf.Tensor]:
        both = tf.concat([tf.zeros_like(logits), logits], 1)
        return {
            PredictionKey.LOGITS: logits,
            PredictionKey.LOGISTIC: tf.sigmoid(logits, name=PredictionKey.LOGISTIC),
            PredictionKey.PROBABILITIES: tf.nn.softmax(both, name=PredictionKey.PROBABILITIES),
            PredictionKey.CLASSES: tf.argmax(both, 1, name=PredictionKey.CLASSES),
        }

    def _metrics(self, predictions: _Tensors, labels: Any, weights: Any) -> dict[str, Any]:
        metrics = _v1.metrics
        logistic = predictions[PredictionKey.LOGISTIC]
        numbers = tf.cast(labels, tf.float32)
        of_labels = None if weights is None else _as(numbers, weights)
        of_logistic = None if weights is None else _as(logistic, weights)
        is_one = tf.cast(labels, tf.bool)
        by_key = {
            "accuracy": metrics.accuracy(labels, predictions[PredictionKey.CLASSES], weights),
            "labels/prediction_mean": metrics.mean(logistic, of_logistic),
            "labels/actual_label_mean": metrics.mean(numbers, of_labels),
            "accuracy/baseline_label_mean": metrics.mean(numbers, of_labels),
            "auc": metrics.auc(is_one, logistic, of_logistic),
            "auc_precision_recall": metrics.auc(is_one, logistic, of_logistic, curve="PR"),
        }
        for threshold in self._thresholds:
            for name, metric in _AT_THRESHOLD.items():
                key = f"{name}threshold_{threshold:f}_mean"
                by_key[key] = metric(labels, logistic, weights, threshold)
        return by_key


def _log_loss(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    labels = _column(tf.cast(labels, tf.float32))
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)


class _BinarySvmHead(Head):
    def __init__(self, *common: Any):
        super().__init__("binary_svm_head", ProblemType.LOGISTIC_REGRESSION, 1, *common)

    def _loss(self, labels: Any, logits: Any, weights: Any) -> _Losses:
        signs = 2.0 * tf.cast(tf.reshape(labels, [-1, 1]), tf.float32) - 1.0
        return _losses(tf.nn.relu(1.0 - signs * logits), weights)

    def _predictions(self, logits: Any) -> dict[str, tf.Tensor]:
        both = tf.concat([tf.zeros_like(logits), logits], 1)
        classes = tf.argmax(both, 1, name=PredictionKey.CLASSES)
        return {PredictionKey.LOGITS: logits, PredictionKey.CLASSES: classes}

    def _exported(self, predictions: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return predictions

    def _metrics(self, predictions: _Tensors, labels: Any, weights: Any) -> dict[str, Any]:
        classes = predictions[PredictionKey.CLASSES]
        return {"accuracy": _v1.metrics.accuracy(labels, classes, weights)}


class _MultiClassHead(_ClassHead):
    def __init__(
        self,
        n_classes: int,
        loss_fn: Callable[..., Any] | None,
        metric_class_ids: Sequence[int] | None,
        label_keys: Sequence[str] | None,
        *common: Any,
    ):
        super().__init__("multi_class_head", ProblemType.CLASSIFICATION, n_classes, *common)
        self._losses = _custom(loss_fn) if loss_fn else _averaged(_softmax_loss)
        self._metric_class_ids = tuple(metric_class_ids or ())
        for number in self._metric_class_ids:
            if not 0 <= number < n_classes:
                raise ValueError(f"Class ID {number} not in [0, {n_classes}).")
        if label_keys and len(label_keys) != n_classes:
            raise ValueError("Length of label_keys must equal n_classes.")
        self._label_keys = label_keys

    def _ids(self, labels: tf.Tensor) -> tf.Tensor:
        if not self._label_keys:
            return labels
        keys = tf.lookup.KeyValueTensorInitializer(
            list(self._label_keys), range(len(self._label_keys)), tf.string, tf.int64
        )
        return tf.lookup.StaticHashTable(keys, -1, name="label_id_lookup").lookup(labels)

    def _loss(self, labels: Any, logits: Any, weights: Any) -> _Losses:
        return self._losses(self._ids(labels), logits, weights)

    def _predictions(self, logits: Any) -> dict[str, tf.Tensor]:
        classes = tf.argmax(logits, 1, name=PredictionKey.CLASSES)
        if self._label_keys:
            classes = tf.gather(tf.constant(list(self._label_keys)), classes)
        return {
            PredictionKey.LOGITS: logits,
            PredictionKey.PROBABILITIES: tf.nn.softmax(logits, name=PredictionKey.PROBABILITIES),
            PredictionKey.CLASSES: classes,
        }

    def _metrics(self, predictions: _Tensors, labels: Any, weights: Any) -> dict[str, Any]:
        mean = _v1.metrics.mean
        classes = predictions[PredictionKey.CLASSES]
        by_key = {"accuracy": _v1.metrics.accuracy(labels, classes, weights)}
        for number in () if self._label_keys else self._metric_class_ids:
            means = {
                "labels/prediction_mean": tf.equal(classes, number),
                "labels/actual_label_mean": tf.equal(labels, number),
                "labels/probability_mean": predictions[PredictionKey.PROBABILITIES][:, number],
                "labels/logits_mean": predictions[PredictionKey.LOGITS][:, number],
            }
            for name, values in means.items():
                values = tf.cast(values, tf.float32)
                own = None if weights is None else _as(values, weights)
                by_key[f"{name}/class{number}"] = mean(values, own)
        return by_key


def _softmax_loss(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    if not labels.dtype.is_integer:
        raise ValueError(f"Labels dtype should be integer Instead got {labels.dtype}.")
    is_column = labels.shape.rank == 2
    labels = tf.squeeze(labels, [1]) if is_column else labels
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return loss[:, None] if is_column else loss


def multi_class_head(
    n_classes: int,
    label_name: str | None = None,
    weight_column_name: str | None = None,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
    thresholds: Sequence[float] | None = None,
    metric_class_ids: Sequence[int] | None = None,
    loss_fn: Callable[..., Any] | None = None,
    label_keys: Sequence[str] | None = None,
) -> Head:
    """The head of a classification: of one logit for two classes, else of one for each.

    Args:
        n_classes: Number of classes, at least 2.
        thresholds: Of the probability of class 1, for metrics; 0.5 by default.
        metric_class_ids: Classes with metrics of their own.
        loss_fn: Takes labels, logits and, where there are any, weights; gives the loss.
        label_keys: The names of the classes, which labels then are.
        label_name, weight_column_name, enable_centered_bias, head_name: As for `Head`.

    Raises:
        ValueError: There are too few classes, or an argument does not go with so many.
    """
    if n_classes is None or n_classes < 2:
        raise ValueError(f"n_classes must be > 1 for classification: {n_classes}.")
    common = (label_name, weight_column_name, enable_centered_bias, head_name)
    if n_classes > 2:
        return _MultiClassHead(n_classes, loss_fn, metric_class_ids, label_keys, *common)
    for name, value in (("metric_class_ids", metric_class_ids), ("label_keys", label_keys)):
        if value:
            raise ValueError(f"{name} is not supported for n_classes=2.")
    return _BinaryLogisticHead(loss_fn, thresholds, *common)


def binary_svm_head(
    label_name: str | None = None,
    weight_column_name: str | None = None,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
    thresholds: Sequence[float] | None = None,
) -> Head:
    """The head of two classes that a margin divides: hinge loss.

    Args:
        label_name, weight_column_name, enable_centered_bias, head_name: As for `Head`.
        thresholds: Not used, as in TF 1.15.
    """
    del thresholds
    return _BinarySvmHead(label_name, weight_column_name, enable_centered_bias, head_name)


def regression_head(
    label_name: str | None = None,
    weight_column_name: str | None = None,
    label_dimension: int = 1,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
    link_fn: Callable[..., Any] | None = None,
) -> Head:
    """The head of a regression by squared errors.

    Args:
        label_dimension: Number of labels of an example.
        link_fn: Makes predictions of logits; by default they are the same.
        label_name, weight_column_name, enable_centered_bias, head_name: As for `Head`.
    """
    common = (label_name, weight_column_name, enable_centered_bias, head_name)
    return _RegressionHead(_squared, link_fn or tf.identity, label_dimension, *common)


def _squared(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    return tf.math.squared_difference(logits, tf.cast(labels, tf.float32))


def poisson_regression_head(
    label_name: str | None = None,
    weight_column_name: str | None = None,
    label_dimension: int = 1,
    enable_centered_bias: bool = False,
    head_name: str | None = None,
) -> Head:
    """The head of a regression of counts: logits are the logarithms of their means.

    Args:
        label_dimension: Number of labels of an example.
        label_name, weight_column_name, enable_centered_bias, head_name: As for `Head`.
    """
    common = (label_name, weight_column_name, enable_centered_bias, head_name)
    return _RegressionHead(_poisson, tf.exp, label_dimension, *common)


def _poisson(labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    return tf.nn.log_poisson_loss(labels, logits, compute_full_loss=True)
