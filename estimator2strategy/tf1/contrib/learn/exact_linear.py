"""`tf.contrib.linear_optimizer`: an exact solver of linear models of `tf.contrib.learn`, and `SVM`.

Example:

    optimizer = tf1.contrib.linear_optimizer.SDCAOptimizer("example_id")
    classifier = tf1.contrib.learn.LinearClassifier(
        [tf1.contrib.layers.real_valued_column("size", 2)], optimizer=optimizer)

Sources: `tf.contrib.linear_optimizer` and `tf.contrib.learn` linear.py and svm.py, TF 1.15.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, cast

import tensorflow as tf

import estimator2strategy.tf1 as tf1  # noqa: F401  (of the example)
from estimator2strategy.estimator.canned.sdca_solver import (
    Examples,
    SdcaProblem,
    Solver,
    SparseFeatures,
    sparse_features,
)
from estimator2strategy.tf1.contrib.layers import column_kinds as kinds
from estimator2strategy.tf1.contrib.layers import inputs_of_columns
from estimator2strategy.tf1.contrib.learn.heads_of_learn import (
    Head,
    _BinaryLogisticHead,
    _BinarySvmHead,
    _RegressionHead,
)
from estimator2strategy.tf1.contrib.learn.model_fn_ops import ModelFnOps

_v1 = tf.compat.v1
_LOSSES = {
    _BinaryLogisticHead: "logistic_loss",
    _BinarySvmHead: "hinge_loss",
    _RegressionHead: "squared_loss",
}


@dataclasses.dataclass(frozen=True)
class SDCAOptimizer:
    """Stochastic dual coordinate ascent, as the `optimizer` of a linear model of two classes, or of
    one number.

    Args:
        example_id_column: Name of the feature with the ids of examples, strings [batch].
        num_loss_partitions: Number of processes that train.
        num_table_shards: Not used: one table holds all examples.
        symmetric_l1_regularization: Strength of L1 regularization, at least 0.
        symmetric_l2_regularization: Strength of L2 regularization; it is at least 1.
        adaptive: True to look at examples more often whose loss is larger.
        partitioner: Cuts up the weights.
    """

    example_id_column: str
    num_loss_partitions: int = 1
    num_table_shards: int | None = None
    symmetric_l1_regularization: float = 0.0
    symmetric_l2_regularization: float = 1.0
    adaptive: bool = True
    partitioner: Callable[..., Any] | None = None

    def get_name(self) -> str:
        """The name of optimizers like this one."""
        return "SDCAOptimizer"

    def problem(self, head: Head) -> SdcaProblem:
        """The loss and its regularization.

        Raises:
            ValueError: There is no loss for the head, or a strength is negative.
        """
        if type(head) not in _LOSSES or head.logits_dimension != 1:
            raise ValueError(f"Unsupported head type: {head}")
        for name in ("symmetric_l1_regularization", "symmetric_l2_regularization"):
            if getattr(self, name) < 0.0:
                value = getattr(self, name)
                raise ValueError(f"{name} should be non-negative. Found ({value:f})")
        return SdcaProblem(
            _LOSSES[type(head)],
            self.symmetric_l1_regularization,
            max(self.symmetric_l2_regularization, 1.0),
            self.num_loss_partitions,
            self.adaptive,
        )


def sdca_model_fn(features: Any, labels: Any, mode: str, params: Mapping[str, Any]) -> ModelFnOps:
    """A linear model that an SDCAOptimizer trains.

    Args:
        features: By name.
        labels: [batch] or [batch, 1].
        mode: A `ModeKeys`.
        params: `head`, `feature_columns` of `tf.contrib.layers`, and `optimizer`.
    """
    head, columns, optimizer = (params[k] for k in ("head", "feature_columns", "optimizer"))
    problem = optimizer.problem(head)
    with _v1.variable_scope("linear", partitioner=optimizer.partitioner) as scope:
        logits, variables, bias = inputs_of_columns.weighted_sum_from_feature_columns(
            features, columns, 1, scope=scope
        )

    def train_op_fn(loss: tf.Tensor) -> tf.Operation:
        del loss
        numbers = tf.cast(tf.reshape(labels, [-1]), tf.float32)
        ones = tf.ones_like(numbers)
        weight = head.weight_column_name
        sparse: list[tuple[SparseFeatures, Any]] = []
        dense: list[tuple[tf.Tensor, Any]] = [(ones[:, tf.newaxis], bias)]
        get = inputs_of_columns.transformer(features)
        for column in sorted(columns, key=lambda column: column.key):
            (variable,) = variables[column]
            if isinstance(column, kinds._RealValuedColumn):
                values = get(column)
                dense.append((tf.reshape(values, [tf.shape(values)[0], -1]), variable))
            else:
                sparse.append((sparse_features(*get(column)), variable))
        examples = Examples(
            sparse,
            dense,
            numbers,
            tf.reshape(features[weight], [-1]) if weight else ones,
            features[optimizer.example_id_column],
        )
        solver = Solver(examples, problem, "_unshrinked/SDCAOptimizer")
        return solver.minimize(_v1.train.get_global_step())

    return cast(ModelFnOps, head.create_model_fn_ops(features, mode, labels, train_op_fn, logits))
