"""`LinearSDCA`: the optimizer of `LinearClassifier` and `LinearRegressor` that is an exact solver.

Example:

    optimizer = LinearSDCA("example_id", symmetric_l2_regularization=2.0)
    classifier = LinearClassifier(
        [tf.feature_column.numeric_column("size")], optimizer=optimizer)

Source: tensorflow_estimator 2.15 canned/linear.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.estimator.canned.columns import LinearSums
from estimator2strategy.estimator.canned.construction import Arguments
from estimator2strategy.estimator.canned.sdca_solver import (
    Examples,
    SdcaProblem,
    Solver,
    SparseFeatures,
    sparse_features,
)
from estimator2strategy.estimator.heads import BinaryClassHead, RegressionHead
from estimator2strategy.estimator.heads.v1 import Binary, Regression
from estimator2strategy.estimator.specs import EstimatorSpec

tf1 = tf.compat.v1
_api = tf.__internal__.feature_column


@dataclasses.dataclass(frozen=True)
class LinearSDCA:
    """Stochastic dual coordinate ascent, as the `optimizer` of a linear Estimator.

    Features have the ids of the examples. There are two classes, or one value to predict.

    Args:
        example_id_column: Name of the feature with the ids, strings [batch].
        num_loss_partitions: Number of processes that train.
        num_table_shards: Not used: one table holds all examples.
        symmetric_l1_regularization: Strength of L1 regularization, at least 0.
        symmetric_l2_regularization: Strength of L2 regularization, above 0.
        adaptive: True to look at examples more often whose loss is larger.
    """

    example_id_column: str
    num_loss_partitions: int = 1
    num_table_shards: int | None = None
    symmetric_l1_regularization: float = 0.0
    symmetric_l2_regularization: float = 1.0
    adaptive: bool = False


def check_sdca(given: Arguments) -> None:
    """Raises ValueError where a LinearSDCA is given, and cannot train the model of a constructor.

    Args:
        given: The arguments of the constructor.
    """
    if not isinstance(given["optimizer"], LinearSDCA):
        return
    if given["sparse_combiner"] != "sum":
        raise ValueError('sparse_combiner must be "sum" when optimizer is a LinearSDCA object.')
    if not _tf_private.is_feature_column_v2(given["feature_columns"]):
        raise ValueError("V2 feature columns required when optimizer is a LinearSDCA object.")
    if given.get("n_classes", 2) > 2:
        raise ValueError("LinearSDCA cannot be used in a multi-class setting.")
    if given.get("label_dimension", 1) > 1:
        raise ValueError("LinearSDCA can only be used with one-dimensional label.")


def check_sdca_of_classifier(
    feature_columns: Any, n_classes: int, optimizer: Any, sparse_combiner: str
) -> None:
    """As `check_sdca`, for copies of LinearClassifier that call it by its arguments."""
    check_sdca(locals())


def sdca_spec(
    optimizer: LinearSDCA,
    features: Mapping[str, Any],
    labels: Any,
    mode: str,
    head: Any,
    model: LinearSums,
) -> EstimatorSpec:
    """The EstimatorSpec of `model`, which `optimizer` trains.

    Raises:
        ValueError: The head is for something else, L2 regularization is not positive, or L1
            regularization is negative; a column has more than one dimension.
    """
    problem = _problem(optimizer, head)

    def train_op_fn(loss: tf.Tensor) -> tf.Operation:
        del loss
        return train_op

    if mode == ModeKeys.TRAIN:
        ids = features[optimizer.example_id_column]
        batch = _batch(ids, features, labels, head, model)
        train_op = Solver(batch, problem).minimize(tf1.train.get_global_step())
    return cast(
        EstimatorSpec,
        head.create_estimator_spec(
            features=features,
            mode=mode,
            labels=labels,
            logits=model.logits,
            train_op_fn=train_op_fn if mode == ModeKeys.TRAIN else None,
        ),
    )


def _problem(optimizer: LinearSDCA, head: Any) -> SdcaProblem:
    l1, l2 = optimizer.symmetric_l1_regularization, optimizer.symmetric_l2_regularization
    if l2 <= 0.0:
        raise ValueError("symmetric_l2_regularization should be positive.")
    if l2 <= 1.0:
        tf1.logging.warn(
            "symmetric_l2_regularization for SDCA should typically be larger than for online "
            "optimization methods. Recommended value is of the order of the average L2 norm of "
            "the training examples."
        )
    if l1 < 0.0:
        raise ValueError("symmetric_l1_regularization should be non-negative.")
    return SdcaProblem(_loss_type(head), l1, l2, optimizer.num_loss_partitions, optimizer.adaptive)


def _batch(
    ids: tf.Tensor, features: Mapping[str, Any], labels: Any, head: Any, model: LinearSums
) -> Examples:
    """The batch, with the variables of its features."""
    labels = tf.cast(tf.reshape(labels, [-1]), tf.float32)
    ones = tf.ones_like(labels)
    cache = _api.FeatureTransformationCache(features)
    sparse: list[tuple[SparseFeatures, Any]] = []
    dense: list[tuple[tf.Tensor, Any]] = []
    for column, weights in model.by_column:
        if isinstance(column, _tf_private.CategoricalColumn):
            feature = sparse_features(*column.get_sparse_tensors(cache, None))
            sparse.append((feature, weights))
        elif column.variable_shape.ndims != 1:
            raise ValueError(
                f"Column {type(column).__name__} has rank {column.variable_shape.ndims}, "
                "larger than 1."
            )
        else:
            dense.append((column.get_dense_tensor(cache, None), weights))
    dense.append((ones[:, tf.newaxis], model.bias))
    weight = head._weight_column
    return Examples(
        sparse, dense, labels, tf.reshape(features[weight], [-1]) if weight else ones, ids
    )


def _loss_type(head: Any) -> str:
    if isinstance(head, (Binary, BinaryClassHead)):
        return "logistic_loss"
    if isinstance(head, (Regression, RegressionHead)) and head.logits_dimension == 1:
        return "squared_loss"
    raise ValueError(f"Unsupported head type: {head}")
