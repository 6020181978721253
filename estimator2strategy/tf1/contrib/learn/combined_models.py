"""Canned Estimators of `tf.contrib.learn` that are a linear model and a network together.

Source: `tf.contrib.learn` dnn_linear_combined.py, TF 1.15.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.tf1.contrib.learn import model_parts
from estimator2strategy.tf1.contrib.learn.canned_models import (
    Classifier,
    Kind,
    Regressor,
    head_of_classes,
    head_of_numbers,
    parts_of,
)
from estimator2strategy.tf1.contrib.learn.early_estimator import Estimator
from estimator2strategy.tf1.contrib.learn.heads_of_learn import Head

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


class DNNLinearCombinedEstimator(Estimator):
    """A linear model and a network with a head of one's own.

    Args:
        head: Of `tf.contrib.learn`.
        model_dir, config, feature_engineering_fn: As of `learn.Estimator`.
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

    def __init__(
        self,
        head: Head,
        model_dir: str | None = None,
        linear_feature_columns: Iterable[Any] | None = None,
        linear_optimizer: Any = None,
        _joint_linear_weights: bool = False,
        dnn_feature_columns: Iterable[Any] | None = None,
        dnn_optimizer: Any = None,
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Any = None,
        dnn_dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        config: Any = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
        embedding_lr_multipliers: Any = None,
        fix_global_step_increment_bug: bool = False,
        input_layer_partitioner: Any = None,
    ):
        super().__init__(*parts_of(_BOTH, head, locals()))


class DNNLinearCombinedClassifier(Classifier):
    """A linear model and a network of classes.

    Args:
        n_classes, weight_column_name, enable_centered_bias, label_keys: As of `multi_class_head`.
        input_layer_min_slice_size: Not used: variables are in one piece.
        model_dir, and the others: As of `DNNLinearCombinedEstimator`.
    """

    def __init__(
        self,
        model_dir: str | None = None,
        n_classes: int = 2,
        weight_column_name: str | None = None,
        linear_feature_columns: Iterable[Any] | None = None,
        linear_optimizer: Any = None,
        _joint_linear_weights: bool = False,
        dnn_feature_columns: Iterable[Any] | None = None,
        dnn_optimizer: Any = None,
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Any = tf.nn.relu,
        dnn_dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        config: Any = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
        embedding_lr_multipliers: Any = None,
        input_layer_min_slice_size: int | None = None,
        label_keys: Sequence[str] | None = None,
        fix_global_step_increment_bug: bool = False,
    ):
        super().__init__(*parts_of(_BOTH, head_of_classes(locals()), locals()))


class DNNLinearCombinedRegressor(Regressor):
    """A linear model and a network of numbers.

    Args:
        weight_column_name, enable_centered_bias, label_dimension: As of `regression_head`.
        input_layer_min_slice_size: Not used: variables are in one piece.
        model_dir, and the others: As of `DNNLinearCombinedEstimator`.
    """

    def __init__(
        self,
        model_dir: str | None = None,
        weight_column_name: str | None = None,
        linear_feature_columns: Iterable[Any] | None = None,
        linear_optimizer: Any = None,
        _joint_linear_weights: bool = False,
        dnn_feature_columns: Iterable[Any] | None = None,
        dnn_optimizer: Any = None,
        dnn_hidden_units: Sequence[int] | None = None,
        dnn_activation_fn: Any = tf.nn.relu,
        dnn_dropout: float | None = None,
        gradient_clip_norm: float | None = None,
        enable_centered_bias: bool = False,
        label_dimension: int = 1,
        config: Any = None,
        feature_engineering_fn: Callable[..., Any] | None = None,
        embedding_lr_multipliers: Any = None,
        input_layer_min_slice_size: int | None = None,
        fix_global_step_increment_bug: bool = False,
    ):
        super().__init__(*parts_of(_BOTH, head_of_numbers(locals()), locals()))
