"""Canned Estimators of `tf.contrib.learn`, on its own columns or those of `tf.feature_column`.

Sources: `tf.contrib.learn` linear.py, dnn.py and dnn_linear_combined.py, TF 1.15.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from estimator2strategy.errors import UnsupportedError
from estimator2strategy.tf1.contrib.learn import exact_linear, model_parts
from estimator2strategy.tf1.contrib.learn.early_estimator import Estimator, MetricSpec
from estimator2strategy.tf1.contrib.learn.heads_of_learn import (
    Head,
    binary_svm_head,
    multi_class_head,
    regression_head,
)
from estimator2strategy.tf1.contrib.learn.model_fn_ops import PredictionKey


class _OneOutput(Estimator):
    """An Estimator whose `predict` gives one of the predictions, unless `outputs` are named."""

    _output: str

    def predict(  # type: ignore[override]
        self,
        x: Any = None,
        input_fn: Any = None,
        batch_size: int | None = None,
        outputs: Iterable[str] | None = None,
        as_iterable: bool = True,
    ) -> Any:
        """Classes, or scores of a regression; dicts of `outputs` if these are named.

        Args:
            x, input_fn, batch_size, outputs, as_iterable: As of `learn.Estimator.predict`.
        """
        if not outputs:
            return self._only(self._output, x, input_fn, batch_size, as_iterable)
        return super().predict(x, input_fn, batch_size, outputs, as_iterable)

    def _only(self, key: str, x: Any, input_fn: Any, batch_size: Any, as_iterable: bool) -> Any:
        made = super().predict(x, input_fn, batch_size, [key], as_iterable)
        return (one[key] for one in made) if as_iterable else made[key]


class Classifier(_OneOutput):
    _output = PredictionKey.CLASSES

    def predict_classes(
        self,
        x: Any = None,
        input_fn: Any = None,
        batch_size: int | None = None,
        as_iterable: bool = True,
    ) -> Any:
        """The class of each example."""
        made = self._only(PredictionKey.CLASSES, x, input_fn, batch_size, as_iterable)
        return made if as_iterable else np.reshape(made, -1)

    def predict_proba(
        self,
        x: Any = None,
        input_fn: Any = None,
        batch_size: int | None = None,
        as_iterable: bool = True,
    ) -> Any:
        """The probabilities of the classes of each example."""
        return self._only(PredictionKey.PROBABILITIES, x, input_fn, batch_size, as_iterable)


class Regressor(_OneOutput):
    _output = PredictionKey.SCORES

    def predict_scores(
        self,
        x: Any = None,
        input_fn: Any = None,
        batch_size: int | None = None,
        as_iterable: bool = True,
    ) -> Any:
        """The prediction for each example."""
        return self._only(PredictionKey.SCORES, x, input_fn, batch_size, as_iterable)

    def _named_metrics(self, metrics: Mapping[Any, Any]) -> dict[Any, Any]:
        """Functions take the scores, unless they are said to take something else."""
        return {
            name
            if isinstance(metric, MetricSpec) or isinstance(name, tuple)
            else (name, PredictionKey.SCORES): metric
            for name, metric in metrics.items()
        }


class Kind(NamedTuple):
    """A kind of canned model.

    Attributes:
        model_fn: A model_fn of `learn_models`.
        params: The arguments of constructors that are its params, beside the head.
    """

    model_fn: Callable[..., Any]
    params: tuple[str, ...]


_LINEAR = Kind(model_parts.linear_model_fn, ("feature_columns", "optimizer", "gradient_clip_norm"))
_SDCA = Kind(exact_linear.sdca_model_fn, ("feature_columns", "optimizer"))
_DNN = Kind(
    model_parts.dnn_model_fn,
    (
        "hidden_units",
        "feature_columns",
        "optimizer",
        "activation_fn",
        "dropout",
        "gradient_clip_norm",
    ),
)
_REFUSED = ("_joint_weight", "_joint_weights", "_joint_linear_weights", "embedding_lr_multipliers")


def parts_of(kind: Kind, head: Head, given: Mapping[str, Any]) -> tuple[Any, ...]:
    """The arguments of `learn.Estimator` for a canned model.

    Args:
        kind: The kind of the model.
        head: Its head.
        given: The arguments of its constructor, by name.

    Raises:
        UnsupportedError: An argument is given that is not supported.
    """
    for name in _REFUSED:
        if given.get(name):
            raise UnsupportedError(
                f"tf.contrib.learn: {name} is not supported. Give the columns one optimizer, or "
                "write a model_fn for tf.estimator.Estimator."
            )
    params = {"head": head, **{name: given[name] for name in kind.params}}
    engineering = given["feature_engineering_fn"]
    return kind.model_fn, given["model_dir"], given["config"], params, engineering


def _linear(given: Mapping[str, Any]) -> Kind:
    """The kind of a linear model, by the arguments of its constructor."""
    if not isinstance(given["optimizer"], exact_linear.SDCAOptimizer):
        return _LINEAR
    if given["enable_centered_bias"]:
        raise ValueError("enable_centered_bias is not supported with SDCA")
    return _SDCA


def head_of_classes(given: Mapping[str, Any]) -> Head:
    """The head of a classifier, by the arguments of its constructor."""
    return multi_class_head(
        given["n_classes"],
        weight_column_name=given["weight_column_name"],
        enable_centered_bias=given["enable_centered_bias"],
        label_keys=given["label_keys"],
    )


def head_of_numbers(given: Mapping[str, Any]) -> Head:
    """The head of a regression, by the arguments of its constructor."""
    return regression_head(
        weight_column_name=given["weight_column_name"],
        label_dimension=given["label_dimension"],
        enable_centered_bias=given["enable_centered_bias"],
    )


class LinearEstimator(Estimator):
    """A linear model with a head of one's own.

    Args:
        feature_columns: Of `tf.contrib.layers` or `tf.feature_column`.
        head: Of `tf.contrib.learn`.
        model_dir, config, feature_engineering_fn: As of `learn.Estimator`.
        weight_column_name: Not used; the head has it.
        optimizer: The optimizer, its name or a function that makes it; Ftrl by default.
        gradient_clip_norm: Gradients are scaled down to this norm.
    """

    def __init__(
        self,
        feature_columns: Iterable[Any],
        head: Head,
        model_dir: str | None = None,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        gradient_clip_norm: float | None = None,
        _joint_weights: bool = False,
        config: Any = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
    ):
        super().__init__(*parts_of(_LINEAR, head, locals()))


class LinearClassifier(Classifier):
    """A linear model of classes.

    Args:
        feature_columns, model_dir, optimizer, gradient_clip_norm, config: As of `LinearEstimator`.
        feature_engineering_fn: As of `learn.Estimator`.
        n_classes, weight_column_name, enable_centered_bias, label_keys: As of `multi_class_head`.
    """

    def __init__(
        self,
        feature_columns: Iterable[Any],
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        _joint_weight: bool = False,
        config: Any = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
        label_keys: Sequence[str] | None = None,
    ):
        super().__init__(*parts_of(_linear(locals()), head_of_classes(locals()), locals()))


class LinearRegressor(Regressor):
    """A linear model of numbers.

    Args:
        feature_columns, model_dir, optimizer, gradient_clip_norm, config: As of `LinearEstimator`.
        feature_engineering_fn: As of `learn.Estimator`.
        weight_column_name, enable_centered_bias, label_dimension: As of `regression_head`.
    """

    def __init__(
        self,
        feature_columns: Iterable[Any],
        model_dir: str | None = None,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        label_dimension: int = 1,
        _joint_weights: bool = False,
        config: Any = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
    ):
        super().__init__(*parts_of(_linear(locals()), head_of_numbers(locals()), locals()))


class SVM(Classifier):
    """A linear model of two classes with a margin between them: hinge loss.

    Args:
        example_id_column, num_loss_partitions: As of `SDCAOptimizer`.
        feature_columns: Of `tf.contrib.layers`.
        weight_column_name: As of `binary_svm_head`.
        l1_regularization, l2_regularization: The strengths of regularization.
        kernels: None.
        model_dir, config, feature_engineering_fn: As of `learn.Estimator`.

    Raises:
        ValueError: There are kernels.
    """

    def __init__(
        self,
        example_id_column: str,
        feature_columns: Iterable[Any],
        weight_column_name: str | None = None,
        model_dir: str | None = None,
        l1_regularization: float = 0.0,
        l2_regularization: float = 0.0,
        num_loss_partitions: int = 1,
        kernels: Any = None,
        config: Any = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
    ):
        if kernels is not None:
            raise ValueError("Kernel SVMs are not currently supported.")
        optimizer = exact_linear.SDCAOptimizer(
            example_id_column,
            num_loss_partitions,
            symmetric_l1_regularization=l1_regularization,
            symmetric_l2_regularization=l2_regularization,
        )
        head = binary_svm_head(weight_column_name=weight_column_name)
        super().__init__(*parts_of(_SDCA, head, {**locals(), "optimizer": optimizer}))


class DNNEstimator(Estimator):
    """A network with a head of one's own.

    Args:
        head: Of `tf.contrib.learn`.
        hidden_units: Width of each hidden layer.
        feature_columns: Of `tf.contrib.layers` or `tf.feature_column`.
        model_dir, config, feature_engineering_fn: As of `learn.Estimator`.
        optimizer: The optimizer, its name or a function that makes it; Adagrad by default.
        activation_fn: The function or its name.
        dropout: Part of the units of each hidden layer that is left out in training.
        gradient_clip_norm: Gradients are scaled down to this norm.
        embedding_lr_multipliers: Not supported.
        input_layer_min_slice_size: Not used: variables are in one piece.
    """

    def __init__(
        self,
        head: Head,
        hidden_units: Sequence[int],
        feature_columns: Iterable[Any],
        model_dir: str | None = None,
        optimizer: Any = None,
        activation_fn: Any = tf.nn.relu,
        dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        config: Any = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
        embedding_lr_multipliers: Any = None,
        input_layer_min_slice_size: int | None = None,
    ):
        super().__init__(*parts_of(_DNN, head, locals()))


class DNNClassifier(Classifier):
    """A network of classes.

    Args:
        hidden_units, feature_columns, model_dir, optimizer, activation_fn: As of `DNNEstimator`.
        dropout, gradient_clip_norm, config, feature_engineering_fn: As of `DNNEstimator`.
        embedding_lr_multipliers, input_layer_min_slice_size: As of `DNNEstimator`.
        n_classes, weight_column_name, enable_centered_bias, label_keys: As of `multi_class_head`.
    """

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Iterable[Any],
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        activation_fn: Any = tf.nn.relu,
        dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        config: Any = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
        embedding_lr_multipliers: Any = None,
        input_layer_min_slice_size: int | None = None,
        label_keys: Sequence[str] | None = None,
    ):
        super().__init__(*parts_of(_DNN, head_of_classes(locals()), locals()))


class DNNRegressor(Regressor):
    """A network of numbers.

    Args:
        hidden_units, feature_columns, model_dir, optimizer, activation_fn: As of `DNNEstimator`.
        dropout, gradient_clip_norm, config, feature_engineering_fn: As of `DNNEstimator`.
        embedding_lr_multipliers, input_layer_min_slice_size: As of `DNNEstimator`.
        weight_column_name, enable_centered_bias, label_dimension: As of `regression_head`.
    """

    def __init__(
        self,
        hidden_units: Sequence[int],
        feature_columns: Iterable[Any],
        model_dir: str | None = None,
        weight_column_name: str | None = None,
        optimizer: Any = None,
        activation_fn: Any = tf.nn.relu,
        dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        config: Any = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
        label_dimension: int = 1,
        embedding_lr_multipliers: Any = None,
        input_layer_min_slice_size: int | None = None,
    ):
        super().__init__(*parts_of(_DNN, head_of_numbers(locals()), locals()))
