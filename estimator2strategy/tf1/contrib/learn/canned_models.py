"""Canned Estimators of `tf.contrib.learn`, on its own columns or those of `tf.feature_column`.

Sources: `tf.contrib.learn` linear.py, dnn.py and dnn_linear_combined.py, TF 1.15.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, cast

import numpy as np

from estimator2strategy.errors import UnsupportedError
from estimator2strategy.estimator.canned.construction import canned
from estimator2strategy.tf1.contrib.learn import model_parts
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
            x, input_fn, batch_size, outputs, as_iterable: As for `learn.Estimator.predict`.
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
_SDCA = Kind(model_parts.sdca_model_fn, ("feature_columns", "optimizer"))
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
_BOTH = Kind(
    model_parts.combined_model_fn,
    (
        "linear_feature_columns",
        "linear_optimizer",
        "dnn_feature_columns",
        "dnn_optimizer",
        "dnn_hidden_units",
        "dnn_activation_fn",
        "dnn_dropout",
        "gradient_clip_norm",
        "fix_global_step_increment_bug",
    ),
)
_REFUSED = ("_joint_weight", "_joint_weights", "_joint_linear_weights", "embedding_lr_multipliers")


def parts_of(
    given: Mapping[str, Any], kind: Kind, head_of: Callable[[Mapping[str, Any]], Head]
) -> tuple[Any, ...]:
    """The arguments of `learn.Estimator` for a canned model.

    Args:
        given: The arguments of its constructor, by name.
        kind: The kind of the model.
        head_of: Makes its head of the arguments.

    Raises:
        UnsupportedError: An argument is given that is not supported.
    """
    for name in _REFUSED:
        if given.get(name):
            raise UnsupportedError(
                f"tf.contrib.learn: {name} is not supported. Give the columns one optimizer, or "
                "write a model_fn for tf.estimator.Estimator."
            )
    params = {"head": head_of(given), **{name: given[name] for name in kind.params}}
    engineering = given["feature_engineering_fn"]
    return kind.model_fn, given["model_dir"], given["config"], params, engineering


def _linear_parts(
    given: Mapping[str, Any], head_of: Callable[[Mapping[str, Any]], Head]
) -> tuple[Any, ...]:
    """As `parts_of`, for the linear model that the optimizer trains."""
    if not isinstance(given["optimizer"], model_parts.SDCAOptimizer):
        return parts_of(given, _LINEAR, head_of)
    if given["enable_centered_bias"]:
        raise ValueError("enable_centered_bias is not supported with SDCA")
    return parts_of(given, _SDCA, head_of)


def _svm_parts(given: Mapping[str, Any]) -> tuple[Any, ...]:
    """As `parts_of`, for a support vector machine."""
    if given["kernels"] is not None:
        raise ValueError("Kernel SVMs are not currently supported.")
    optimizer = model_parts.SDCAOptimizer(
        given["example_id_column"],
        given["num_loss_partitions"],
        symmetric_l1_regularization=given["l1_regularization"],
        symmetric_l2_regularization=given["l2_regularization"],
    )
    head = binary_svm_head(weight_column_name=given["weight_column_name"])
    return parts_of({**given, "optimizer": optimizer}, _SDCA, lambda _: head)


def head_of_classes(given: Mapping[str, Any]) -> Head:
    """The head of a classifier, by the arguments of its constructor."""
    return multi_class_head(
        given["n_classes"],
        weight_column_name=given["weight_column_name"],
        enable_centered_bias=given["enable_centered_bias"],
        label_keys=given["label_keys"],
    )


def given_head(given: Mapping[str, Any]) -> Head:
    """The head that the program chose."""
    return cast(Head, given["head"])


def head_of_numbers(given: Mapping[str, Any]) -> Head:
    """The head of a regression, by the arguments of its constructor."""
    return regression_head(
        weight_column_name=given["weight_column_name"],
        label_dimension=given["label_dimension"],
        enable_centered_bias=given["enable_centered_bias"],
    )


@canned("tf.contrib.learn.LinearEstimator", parts_of, _LINEAR, given_head, rules={})
class LinearEstimator(Estimator):
    """A linear model with a head of one's own.

    Args:
        feature_columns: Of `tf.contrib.layers` or `tf.feature_column`.
        head: Of `tf.contrib.learn`.
        model_dir, config, feature_engineering_fn: As for `learn.Estimator`.
        weight_column_name: Not used; the head has it.
        optimizer: The optimizer, its name or a function that makes it; Ftrl by default.
        gradient_clip_norm: Gradients are scaled down to this norm.
    """


@canned("tf.contrib.learn.LinearClassifier", _linear_parts, head_of_classes, rules={})
class LinearClassifier(Classifier):
    """A linear model of classes.

    Args:
        feature_columns, model_dir, optimizer, gradient_clip_norm, config: As for `LinearEstimator`.
        feature_engineering_fn: As for `learn.Estimator`.
        n_classes, weight_column_name, enable_centered_bias, label_keys: As for `multi_class_head`.
    """


@canned("tf.contrib.learn.LinearRegressor", _linear_parts, head_of_numbers, rules={})
class LinearRegressor(Regressor):
    """A linear model of numbers.

    Args:
        feature_columns, model_dir, optimizer, gradient_clip_norm, config: As for `LinearEstimator`.
        feature_engineering_fn: As for `learn.Estimator`.
        weight_column_name, enable_centered_bias, label_dimension: As for `regression_head`.
    """


@canned("tf.contrib.learn.SVM", _svm_parts, rules={})
class SVM(Classifier):
    """A linear model of two classes with a margin between them: hinge loss.

    Args:
        example_id_column, num_loss_partitions: As for `SDCAOptimizer`.
        feature_columns: Of `tf.contrib.layers`.
        weight_column_name: As for `binary_svm_head`.
        l1_regularization, l2_regularization: The strengths of regularization.
        kernels: None.
        model_dir, config, feature_engineering_fn: As for `learn.Estimator`.

    Raises:
        ValueError: There are kernels.
    """


@canned("tf.contrib.learn.DNNEstimator", parts_of, _DNN, given_head, rules={})
class DNNEstimator(Estimator):
    """A network with a head of one's own.

    Args:
        head: Of `tf.contrib.learn`.
        hidden_units: Width of each hidden layer.
        feature_columns: Of `tf.contrib.layers` or `tf.feature_column`.
        model_dir, config, feature_engineering_fn: As for `learn.Estimator`.
        optimizer: The optimizer, its name or a function that makes it; Adagrad by default.
        activation_fn: The function or its name.
        dropout: Part of the units of each hidden layer that is left out in training.
        gradient_clip_norm: Gradients are scaled down to this norm.
        embedding_lr_multipliers: Not supported.
        input_layer_min_slice_size: Not used: variables are in one piece.
    """


@canned("tf.contrib.learn.DNNClassifier", parts_of, _DNN, head_of_classes, rules={})
class DNNClassifier(Classifier):
    """A network of classes.

    Args:
        hidden_units, feature_columns, model_dir, optimizer, activation_fn: As for `DNNEstimator`.
        dropout, gradient_clip_norm, config, feature_engineering_fn: As for `DNNEstimator`.
        embedding_lr_multipliers, input_layer_min_slice_size: As for `DNNEstimator`.
        n_classes, weight_column_name, enable_centered_bias, label_keys: As for `multi_class_head`.
    """


@canned("tf.contrib.learn.DNNRegressor", parts_of, _DNN, head_of_numbers, rules={})
class DNNRegressor(Regressor):
    """A network of numbers.

    Args:
        hidden_units, feature_columns, model_dir, optimizer, activation_fn: As for `DNNEstimator`.
        dropout, gradient_clip_norm, config, feature_engineering_fn: As for `DNNEstimator`.
        embedding_lr_multipliers, input_layer_min_slice_size: As for `DNNEstimator`.
        weight_column_name, enable_centered_bias, label_dimension: As for `regression_head`.
    """


@canned("tf.contrib.learn.DNNLinearCombinedEstimator", parts_of, _BOTH, given_head, rules={})
class DNNLinearCombinedEstimator(Estimator):
    """A linear model and a network with a head of one's own.

    Args:
        head: Of `tf.contrib.learn`.
        model_dir, config, feature_engineering_fn: As for `learn.Estimator`.
        linear_feature_columns, dnn_feature_columns: Of `tf.contrib.layers` or `tf.feature_column`.
        linear_optimizer, dnn_optimizer: The optimizer, its name or a function that makes it; Ftrl
            and Adagrad by default.
        dnn_hidden_units: Width of each hidden layer.
        dnn_activation_fn: The function, relu by default.
        dnn_dropout: Part of the units of each hidden layer that is left out in training.
        gradient_clip_norm: Gradients of each model are scaled down to this norm.
        embedding_lr_multipliers: Not supported.
        fix_global_step_increment_bug: True for one step at a time. By default each optimizer counts
            one, and global_step grows by 2 where there are both.
        input_layer_partitioner: Not used: variables are in one piece.
    """


@canned("tf.contrib.learn.DNNLinearCombinedClassifier", parts_of, _BOTH, head_of_classes, rules={})
class DNNLinearCombinedClassifier(Classifier):
    """A linear model and a network of classes.

    Args:
        n_classes, weight_column_name, enable_centered_bias, label_keys: As for `multi_class_head`.
        input_layer_min_slice_size: Not used: variables are in one piece.
        model_dir, and the others: As for `DNNLinearCombinedEstimator`.
    """


@canned("tf.contrib.learn.DNNLinearCombinedRegressor", parts_of, _BOTH, head_of_numbers, rules={})
class DNNLinearCombinedRegressor(Regressor):
    """A linear model and a network of numbers.

    Args:
        weight_column_name, enable_centered_bias, label_dimension: As for `regression_head`.
        input_layer_min_slice_size: Not used: variables are in one piece.
        model_dir, and the others: As for `DNNLinearCombinedEstimator`.
    """
