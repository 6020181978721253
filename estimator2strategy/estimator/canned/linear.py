"""Linear models: `LinearClassifier`, `LinearRegressor`, `LinearEstimator`, of TF 1 and (V2) TF 2.

Example:

    estimator = LinearClassifier(
        feature_columns=[tf.feature_column.categorical_column_with_hash_bucket("word", 1000)])
    estimator.train(input_fn)

Source: tensorflow_estimator 2.15 canned/linear.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.estimator.canned import columns, construction
from estimator2strategy.estimator.canned.construction import (
    Arguments,
    CannedEstimator,
    ModelFn,
    canned,
)
from estimator2strategy.estimator.canned.networks import Linear, partitioner
from estimator2strategy.estimator.canned.optimizers import (
    get_optimizer_instance,
    get_optimizer_instance_v2,
)
from estimator2strategy.estimator.canned.sdca import LinearSDCA, check_sdca, sdca_spec

tf1 = tf.compat.v1

_LEARNING_RATE = 0.2


def _default_learning_rate(network: Linear) -> float:
    """The learning rate of the optimizer, where a program gives None."""
    return min(_LEARNING_RATE, 1.0 / math.sqrt(len(network.feature_columns)))


def model_fn_v1(head: Any, network: Linear, optimizer: Any) -> ModelFn:
    """The model_fn of TF 1."""

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
        columns.check_features(features)
        cut = network.partitioner or partitioner(config)
        with tf1.variable_scope("linear", partitioner=cut):
            model = network.model(features, head.logits_dimension)
            if isinstance(optimizer, LinearSDCA):
                return sdca_spec(optimizer, features, labels, mode, head, model)
            default = tf1.train.FtrlOptimizer(_default_learning_rate(network))
            instance = get_optimizer_instance(optimizer or default, _LEARNING_RATE)
            return head.create_estimator_spec(
                features=features,
                mode=mode,
                labels=labels,
                optimizer=instance,
                logits=model.logits,
            )

    return model_fn


def model_fn_v2(head: Any, network: Linear, optimizer: Any) -> ModelFn:
    """The model_fn of TF 2."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        columns.check_features(features)
        model = network.model_v2(features, head.logits_dimension)
        if isinstance(optimizer, LinearSDCA):
            return sdca_spec(optimizer, features, labels, mode, head, model)
        instance = optimizer
        if mode == ModeKeys.TRAIN:
            rate = _LEARNING_RATE if optimizer else _default_learning_rate(network)
            instance = get_optimizer_instance_v2(optimizer or "Ftrl", rate)
            instance.iterations = tf1.train.get_or_create_global_step()
        return head.create_estimator_spec(
            features=features,
            mode=mode,
            labels=labels,
            optimizer=instance,
            trainable_variables=model.variables,
            logits=model.logits,
        )

    return model_fn


def _arguments(
    given: Arguments, head_of: Callable[[Arguments], Any], make_model_fn: Callable[..., ModelFn]
) -> tuple[Any, ...]:
    head = head_of(given)
    check_sdca(given)
    network = Linear(
        tuple(given["feature_columns"] or ()), given["sparse_combiner"], given.get("partitioner")
    )
    return construction.estimator_arguments(given, make_model_fn(head, network, given["optimizer"]))


@canned(
    "tf.compat.v1.estimator.LinearClassifier", _arguments, construction.classifier_v1, model_fn_v1
)
class LinearClassifier(CannedEstimator):
    """Classes, by a linear model: sigmoid cross entropy for two, softmax for more.

    Args:
        feature_columns: Columns of `tf.feature_column`, categorical or dense.
        model_dir: As for `Estimator`.
        n_classes: Number of classes.
        weight_column: Name of the feature, or numeric column, that weights examples.
        label_vocabulary: Names of the classes, where labels are strings.
        optimizer: "Adagrad", "Adam", "Ftrl", "RMSProp" or "SGD" (with a learning rate of 0.2), an
            optimizer of `tf.compat.v1.train`, or a function that returns one; or a `LinearSDCA`.
            None: "Ftrl", with one over the root of the number of columns, at most 0.2.
        config: As for `Estimator`.
        partitioner: Cuts up variables; by default those over 64 MB, among the parameter servers of
            a cluster.
        warm_start_from: As for `Estimator`.
        loss_reduction: A `tf.compat.v1.losses.Reduction`: how losses of examples become one.
        sparse_combiner: How a categorical column adds up the weights of its values: "sum", "mean"
            or "sqrtn".

    Raises:
        ValueError: An argument is not as above; while training, that features are no dict.
    """


@canned(
    "tf.compat.v1.estimator.LinearRegressor", _arguments, construction.regressor_v1, model_fn_v1
)
class LinearRegressor(CannedEstimator):
    """Real values, by a linear model: squared error.

    Args:
        label_dimension: Number of values per example.
        weight_column: Name of the feature, or numeric column, that weights examples, or each of
            their values.

    The other arguments are those of `LinearClassifier`.
    """


@canned("tf.compat.v1.estimator.LinearEstimator", _arguments, construction.given_head, model_fn_v1)
class LinearEstimator(CannedEstimator):
    """A linear model under any head.

    Args:
        head: A head of `tf.estimator` or of `tf.contrib.estimator`.

    The other arguments are those of `LinearClassifier`.
    """


@canned("tf.estimator.LinearClassifier", _arguments, construction.classifier_v2, model_fn_v2)
class LinearClassifierV2(CannedEstimator):
    """`LinearClassifier` of TF 2.

    Args:
        optimizer: A name as above; an optimizer of tf-keras; or a function that returns one.
        loss_reduction: "sum_over_batch_size" or "sum".

    The other arguments are those of `LinearClassifier`.
    """


@canned("tf.estimator.LinearRegressor", _arguments, construction.regressor_v2, model_fn_v2)
class LinearRegressorV2(CannedEstimator):
    """`LinearRegressor` of TF 2; `optimizer` and `loss_reduction` as of `LinearClassifierV2`."""


@canned("tf.estimator.LinearEstimator", _arguments, construction.given_head, model_fn_v2)
class LinearEstimatorV2(CannedEstimator):
    """`LinearEstimator` of TF 2, for heads of `tf.estimator`."""
