"""Wide and deep: `DNNLinearCombinedClassifier` and its kin, of TF 1 and (V2) of TF 2.

Example:

    estimator = DNNLinearCombinedClassifier(
        linear_feature_columns=[word_x_color],
        dnn_feature_columns=[tf.feature_column.embedding_column(word, 8)],
        dnn_hidden_units=[64, 32])
    estimator.train(input_fn)

Source: tensorflow_estimator 2.15 canned/dnn_linear_combined.py.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.wrong_argument import wrong_argument
from estimator2strategy.estimator.canned import columns, construction
from estimator2strategy.estimator.canned.construction import (
    Arguments,
    CannedEstimator,
    ModelFn,
    canned,
)
from estimator2strategy.estimator.canned.networks import (
    SMALL,
    Dnn,
    Linear,
    add_layer_summary,
    partitioner,
)
from estimator2strategy.estimator.canned.optimizers import (
    get_optimizer_instance,
    get_optimizer_instance_v2,
)
from estimator2strategy.estimator.canned_rules import is_lone_column
from estimator2strategy.estimator.heads.train_op import share_of_replica

tf1 = tf.compat.v1

_DNN_LEARNING_RATE = 0.001
_LINEAR_LEARNING_RATE = 0.005


@dataclasses.dataclass(frozen=True)
class Parts:
    """The two networks, of which one may have no columns, and an optimizer for each."""

    linear: Linear
    linear_optimizer: Any
    dnn: Dnn
    dnn_optimizer: Any

    def __post_init__(self) -> None:
        if not self.linear.feature_columns and not self.dnn.feature_columns:
            raise ValueError(
                "Either linear_feature_columns or dnn_feature_columns must be defined."
            )

    def linear_learning_rate(self) -> float:
        return linear_learning_rate(len(self.linear.feature_columns))

    def check_hidden_units(self) -> None:
        if not self.dnn.hidden_units:
            raise wrong_argument(
                "dnn_hidden_units must be defined when dnn_feature_columns is specified",
                None,
                "Pass the sizes of the hidden layers, such as [64, 32].",
            )


def linear_learning_rate(num_linear_feature_columns: int) -> float:
    """The learning rate of the linear model's optimizer, if that is given by its name."""
    return min(_LINEAR_LEARNING_RATE, 1.0 / math.sqrt(num_linear_feature_columns))


def check_no_sync_replicas_optimizer(optimizer: Any) -> None:
    """Raises ValueError for an optimizer of which a model can have only one."""
    if isinstance(optimizer, tf1.train.SyncReplicasOptimizer):
        raise ValueError(
            "SyncReplicasOptimizer does not support multi optimizers case. Therefore, it is not "
            "supported in DNNLinearCombined model. If you want to use this optimizer, please use "
            "either DNN or Linear model."
        )


def model_fn_v1(head: Any, parts: Parts) -> ModelFn:
    """The model_fn of TF 1."""

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
        columns.check_features(features)
        units = head.logits_dimension
        logits, trained = [], []  # trained: (optimizer, variable scope)
        dnn = parts.dnn.cut(config)
        if dnn.feature_columns:
            optimizer = get_optimizer_instance(parts.dnn_optimizer, _DNN_LEARNING_RATE)
            check_no_sync_replicas_optimizer(optimizer)
            parts.check_hidden_units()
            with tf1.variable_scope("dnn", partitioner=partitioner(config, SMALL)) as scope:
                logits.append(dnn.logits(features, mode, units))
            trained.append((optimizer, scope.name))
        if parts.linear.feature_columns:
            rate = parts.linear_learning_rate()
            optimizer = get_optimizer_instance(parts.linear_optimizer, rate)
            check_no_sync_replicas_optimizer(optimizer)
            with tf1.variable_scope("linear", partitioner=dnn.input_layer_partitioner) as scope:
                logits.append(parts.linear.model(features, units).logits)
                add_layer_summary(logits[-1], scope.name)
            trained.append((optimizer, scope.name))

        def train_op_fn(loss: tf.Tensor) -> Any:
            steps = [
                optimizer.minimize(
                    loss, var_list=tf1.get_collection(tf1.GraphKeys.TRAINABLE_VARIABLES, scope)
                )
                for optimizer, scope in trained
            ]
            with tf.control_dependencies(steps):
                return tf1.assign_add(tf1.train.get_global_step(), 1).op

        return head.create_estimator_spec(
            features=features,
            mode=mode,
            labels=labels,
            train_op_fn=train_op_fn,
            logits=_sum(logits),
        )

    return model_fn


def _sum(logits: list[tf.Tensor]) -> tf.Tensor:
    return logits[0] if len(logits) == 1 else logits[0] + logits[1]


def model_fn_v2(head: Any, parts: Parts) -> ModelFn:
    """The model_fn of TF 2."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        columns.check_features(features)
        units = head.logits_dimension
        logits: list[tf.Tensor] = []
        update_ops: Sequence[Any] = []
        trained = []  # (optimizer, its learning rate if it is a name, variables)
        if parts.dnn.feature_columns:
            parts.check_hidden_units()
            dnn_logits, variables, update_ops = parts.dnn.logits_v2(features, mode, units)
            logits.append(dnn_logits)
            trained.append((parts.dnn_optimizer, _DNN_LEARNING_RATE, variables))
        if parts.linear.feature_columns:
            linear = parts.linear.model_v2(features, units)
            add_layer_summary(linear.logits, "linear")
            logits.append(linear.logits)
            trained.append((parts.linear_optimizer, parts.linear_learning_rate(), linear.variables))

        def train_op_fn(loss: tf.Tensor) -> Any:
            loss = share_of_replica(loss, head.loss_reduction)
            steps = list(update_ops)
            for index, (optimizer, rate, variables) in enumerate(trained):
                instance = get_optimizer_instance_v2(optimizer, rate)
                if index == 0:  # the other counts its steps by itself
                    instance.iterations = tf1.train.get_or_create_global_step()
                steps += instance.get_updates(loss, variables)
            return tf.group(*steps)

        return head.create_estimator_spec(
            features=features,
            mode=mode,
            labels=labels,
            train_op_fn=train_op_fn,
            logits=_sum(logits),
        )

    return model_fn


def _columns(given: Any) -> tuple[Any, ...]:
    """From a list of columns, one column, or None."""
    return (given,) if is_lone_column(given) else tuple(given or ())


def parts_of(given: Arguments) -> Parts:
    """The two networks that the arguments describe."""
    dnn = Dnn.from_arguments(
        given["dnn_hidden_units"],
        _columns(given["dnn_feature_columns"]),
        given["dnn_activation_fn"],
        given["dnn_dropout"],
        given["batch_norm"],
        given.get("input_layer_partitioner"),
    )
    linear_columns = _columns(given["linear_feature_columns"])
    linear = Linear(linear_columns, given["linear_sparse_combiner"])
    return Parts(linear, given["linear_optimizer"], dnn, given["dnn_optimizer"])


def _arguments(
    given: Arguments, head_of: Callable[[Arguments], Any], make_model_fn: Callable[..., ModelFn]
) -> tuple[Any, ...]:
    model_fn = make_model_fn(head_of(given), parts_of(given))
    return construction.estimator_arguments(given, model_fn)


@canned(
    "tf.compat.v1.estimator.DNNLinearCombinedClassifier",
    _arguments,
    construction.classifier_v1,
    model_fn_v1,
)
class DNNLinearCombinedClassifier(CannedEstimator):
    """Classes, by the sum of a linear model and a deep network, each with an optimizer.

    Args:
        model_dir: As for `Estimator`.
        linear_feature_columns: Columns of the linear model; None: there is none.
        linear_optimizer: "Adagrad", "Adam", "Ftrl", "RMSProp" or "SGD" (with a learning rate of one
            over the root of the number of columns, at most 0.005), an optimizer of
            `tf.compat.v1.train`, or a function that returns one.
        dnn_feature_columns: Dense columns of the deep network; None: there is none.
        dnn_optimizer: As `linear_optimizer`, but a name means a learning rate of 0.001.
        dnn_hidden_units: Sizes of the hidden layers.
        dnn_activation_fn: Applied to each hidden layer.
        dnn_dropout: The part of a hidden layer's outputs that is dropped while training.
        n_classes: Number of classes.
        weight_column: Name of the feature, or numeric column, that weights examples.
        label_vocabulary: Names of the classes, where labels are strings.
        input_layer_partitioner: Cuts up variables of columns; by default those over 64 MB, among
            the parameter servers of a cluster.
        config: As for `Estimator`.
        warm_start_from: As for `Estimator`.
        loss_reduction: A `tf.compat.v1.losses.Reduction`: how losses of examples become one.
        batch_norm: True if hidden layers are batch normalized.
        linear_sparse_combiner: How a categorical column of the linear model adds up the weights of
            its values: "sum", "mean" or "sqrtn".

    Raises:
        ValueError: An argument is not as above, or there are no columns; while training, that
            features are no dict, or there are no hidden units.
    """


@canned(
    "tf.compat.v1.estimator.DNNLinearCombinedRegressor",
    _arguments,
    construction.regressor_v1,
    model_fn_v1,
)
class DNNLinearCombinedRegressor(CannedEstimator):
    """Real values, by the sum of a linear model and a deep network: squared error.

    Args:
        label_dimension: Number of values per example.
        weight_column: Name of the feature, or numeric column, that weights examples, or each of
            their values.

    The other arguments are those of `DNNLinearCombinedClassifier`.
    """


@canned(
    "tf.compat.v1.estimator.DNNLinearCombinedEstimator",
    _arguments,
    construction.given_head,
    model_fn_v1,
)
class DNNLinearCombinedEstimator(CannedEstimator):
    """The sum of a linear model and a deep network, under any head.

    Args:
        head: A head of `tf.estimator` or of `tf.contrib.estimator`.

    The other arguments are those of `DNNLinearCombinedClassifier`.
    """


@canned(
    "tf.estimator.DNNLinearCombinedClassifier", _arguments, construction.classifier_v2, model_fn_v2
)
class DNNLinearCombinedClassifierV2(CannedEstimator):
    """`DNNLinearCombinedClassifier` of TF 2.

    Args:
        linear_optimizer, dnn_optimizer: A name as above; an optimizer of tf-keras; or a function
            that returns one.
        loss_reduction: "sum_over_batch_size" or "sum".

    The other arguments are those of `DNNLinearCombinedClassifier`.
    """


@canned(
    "tf.estimator.DNNLinearCombinedRegressor", _arguments, construction.regressor_v2, model_fn_v2
)
class DNNLinearCombinedRegressorV2(CannedEstimator):
    """`DNNLinearCombinedRegressor` of TF 2."""


@canned("tf.estimator.DNNLinearCombinedEstimator", _arguments, construction.given_head, model_fn_v2)
class DNNLinearCombinedEstimatorV2(CannedEstimator):
    """`DNNLinearCombinedEstimator` of TF 2, for heads of `tf.estimator`."""
