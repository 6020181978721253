"""Models of the canned Estimators of `tf.contrib.learn`: a linear one, a network, and both.

Variables have the names that TF 1.15 gave them, so that its checkpoints load.
Sources: `tf.contrib.learn` linear.py, dnn.py and dnn_linear_combined.py, TF 1.15.

`SDCAOptimizer` of `tf.contrib.linear_optimizer` is an exact solver of its linear models:

Example:

    optimizer = tf1.contrib.linear_optimizer.SDCAOptimizer("example_id")
    classifier = tf1.contrib.learn.LinearClassifier(
        [tf1.contrib.layers.real_valued_column("size", 2)], optimizer=optimizer)

Sources: `tf.contrib.linear_optimizer` and `tf.contrib.learn` linear.py and svm.py, TF 1.15.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import tensorflow as tf

import estimator2strategy.tf1 as tf1  # noqa: F401  (of the example)
from estimator2strategy.estimator.canned.sdca_solver import (
    Examples,
    SdcaProblem,
    Solver,
    SparseFeatures,
    sparse_features,
)
from estimator2strategy.tf1.contrib import layers
from estimator2strategy.tf1.contrib.layers import column_kinds as kinds
from estimator2strategy.tf1.contrib.layers import inputs_of_columns, looked_up_columns
from estimator2strategy.tf1.contrib.learn.heads_of_learn import (
    Head,
    _BinaryLogisticHead,
    _BinarySvmHead,
    _RegressionHead,
)
from estimator2strategy.tf1.contrib.learn.model_fn_ops import ModeKeys, ModelFnOps

_v1 = tf.compat.v1
_LINEAR, _DNN = "linear", "dnn"
_LINEAR_RATE, _DNN_RATE = 0.2, 0.05


def linear_model_fn(features: Any, labels: Any, mode: str, params: Mapping[str, Any]) -> ModelFnOps:
    """A linear model; `params` are those of `LinearEstimator`."""
    head, columns = params["head"], params["feature_columns"]
    features = _by_name(features)
    with _v1.variable_scope(_LINEAR) as scope:
        logits = _linear_logits(features, columns, head.logits_dimension, scope)

        def train_op_fn(loss: tf.Tensor) -> Any:
            variables = _v1.get_collection(_LINEAR)
            gradients = _v1.gradients(loss, variables)
            if params["gradient_clip_norm"]:
                gradients, _ = tf.clip_by_global_norm(gradients, params["gradient_clip_norm"])
            optimizer = _optimizer(params["optimizer"], _LINEAR_RATE) or _v1.train.FtrlOptimizer(
                _linear_rate(columns)
            )
            pairs = zip(gradients, variables, strict=True)
            return optimizer.apply_gradients(pairs, _v1.train.get_global_step())

        return cast(
            ModelFnOps, head.create_model_fn_ops(features, mode, labels, train_op_fn, logits)
        )


def dnn_model_fn(features: Any, labels: Any, mode: str, params: Mapping[str, Any]) -> ModelFnOps:
    """A network; `params` are those of `DNNEstimator`."""
    head = params["head"]
    features = _by_name(features)
    with _v1.variable_scope(_DNN):
        logits = _dnn_logits(
            features,
            params["feature_columns"],
            params["hidden_units"],
            _activation(params["activation_fn"]),
            params["dropout"] if mode == ModeKeys.TRAIN else None,
            head.logits_dimension,
            "_",
        )

        def train_op_fn(loss: tf.Tensor) -> Any:
            return _optimized(
                loss,
                _DNN,
                _optimizer(params["optimizer"] or "Adagrad", _DNN_RATE),
                _DNN_RATE,
                params["gradient_clip_norm"],
            )

        return cast(
            ModelFnOps, head.create_model_fn_ops(features, mode, labels, train_op_fn, logits)
        )


def combined_model_fn(
    features: Any, labels: Any, mode: str, params: Mapping[str, Any]
) -> ModelFnOps:
    """The sum of a linear model and a network, each with its optimizer.

    `params` are those of `DNNLinearCombinedEstimator`. Each optimizer counts a step, unless
    `fix_global_step_increment_bug`: global_step grows by 2 where both models are there.

    Raises:
        ValueError: There are no columns, or no hidden units for those of the network.
    """
    head = params["head"]
    linear_columns, dnn_columns = params["linear_feature_columns"], params["dnn_feature_columns"]
    if not linear_columns and not dnn_columns:
        raise ValueError("Either linear_feature_columns or dnn_feature_columns must be defined.")
    features = _by_name(features)
    parts = []
    if dnn_columns:
        parts.append(_dnn_part(features, mode, params))
    if linear_columns:
        parts.append(_linear_part(features, params))

    def train_op_fn(loss: tf.Tensor) -> Any:
        is_fixed = params["fix_global_step_increment_bug"]
        ops = [
            _optimized(
                loss,
                part.name,
                part.optimizer() if callable(part.optimizer) else part.optimizer,
                part.rate,
                params["gradient_clip_norm"],
                variables=_v1.get_collection(part.name),
                increment_global_step=not is_fixed,
            )
            for part in parts
        ]
        if not is_fixed:
            return tf.group(*ops)
        with tf.control_dependencies(ops):
            return _v1.assign_add(_v1.train.get_global_step(), 1)

    total = parts[0].logits if len(parts) == 1 else parts[0].logits + parts[1].logits
    return cast(ModelFnOps, head.create_model_fn_ops(features, mode, labels, train_op_fn, total))


class _Part(NamedTuple):
    """A part of a combined model: its logits, its scope, and how it is trained."""

    logits: tf.Tensor
    name: str
    optimizer: Any
    rate: float


def _dnn_part(features: Mapping[str, Any], mode: str, params: Mapping[str, Any]) -> _Part:
    if not params["dnn_hidden_units"]:
        raise ValueError("dnn_hidden_units must be defined when dnn_feature_columns is specified.")
    with _v1.variable_scope(_DNN):
        logits = _dnn_logits(
            features,
            params["dnn_feature_columns"],
            params["dnn_hidden_units"],
            params["dnn_activation_fn"] or tf.nn.relu,
            params["dnn_dropout"] if mode == ModeKeys.TRAIN else None,
            params["head"].logits_dimension,
            "/",
        )
    return _Part(logits, _DNN, params["dnn_optimizer"] or "Adagrad", _DNN_RATE)


def _linear_part(features: Mapping[str, Any], params: Mapping[str, Any]) -> _Part:
    columns = params["linear_feature_columns"]
    with _v1.variable_scope(_LINEAR) as scope:
        logits = _linear_logits(features, columns, params["head"].logits_dimension, scope)
        _summarize(logits, f"{scope.name}/")
    return _Part(logits, _LINEAR, params["linear_optimizer"] or "Ftrl", _linear_rate(columns))


def _by_name(features: Any) -> Mapping[str, Any]:
    return features if isinstance(features, Mapping) else {"": features}


def _are_of_contrib(columns: Sequence[Any]) -> bool:
    return all(isinstance(column, looked_up_columns.Column) for column in columns)


def _linear_logits(
    features: Mapping[str, Any], columns: Sequence[Any], dimension: int, scope: Any
) -> tf.Tensor:
    if _are_of_contrib(columns):
        logits, _, _ = inputs_of_columns.weighted_sum_from_feature_columns(
            features, columns, dimension, [_LINEAR], scope=scope
        )
        return logits
    return _v1.feature_column.linear_model(
        features, columns, dimension, weight_collections=[_LINEAR]
    )


def _dnn_logits(
    features: Mapping[str, Any],
    columns: Sequence[Any],
    units: Sequence[int],
    activation: Callable[..., Any],
    dropout: float | None,
    dimension: int,
    mark: str,
) -> tf.Tensor:
    with _v1.variable_scope("input_from_feature_columns") as scope:
        if _are_of_contrib(columns):
            net = inputs_of_columns.input_from_feature_columns(
                features, columns, [_DNN], scope=scope
            )
        else:
            net = _v1.feature_column.input_layer(features, columns, weight_collections=[_DNN])
    for number, width in enumerate(units):
        with _v1.variable_scope(f"hiddenlayer_{number}") as scope:
            net = layers.fully_connected(
                net, width, activation_fn=activation, variables_collections=[_DNN], scope=scope
            )
            if dropout is not None:
                net = layers.dropout(net, keep_prob=1.0 - dropout)
        _summarize(net, scope.name + mark)
    with _v1.variable_scope("logits") as scope:
        logits = layers.fully_connected(
            net, dimension, activation_fn=None, variables_collections=[_DNN], scope=scope
        )
    _summarize(logits, scope.name + mark)
    return logits


def _summarize(values: tf.Tensor, name: str) -> None:
    """Summaries of a layer; `name` ends in the mark that the model puts before theirs."""
    _v1.summary.scalar(f"{name}fraction_of_zero_values", tf.nn.zero_fraction(values))
    _v1.summary.histogram(f"{name}activation", values)


def _activation(given: Any) -> Any:
    """The function, or that of a name.

    Raises:
        ValueError: The name is none of an activation.
    """
    if not isinstance(given, str):
        return given
    if given not in _ACTIVATIONS:
        raise ValueError(
            f"Activation name should be one of [{', '.join(_ACTIVATIONS)}], you provided {given}."
        )
    return _ACTIVATIONS[given]


_ACTIVATIONS = {"relu": tf.nn.relu, "tanh": tf.tanh, "sigmoid": tf.sigmoid}


def _optimizer(given: Any, rate: float) -> Any:
    if isinstance(given, str):
        return layers.OPTIMIZER_CLS_NAMES[given](learning_rate=rate)
    return given() if callable(given) else given


def _linear_rate(columns: Sequence[Any]) -> float:
    return min(_LINEAR_RATE, 1.0 / math.sqrt(len(columns)))


def _optimized(
    loss: tf.Tensor, name: str, optimizer: Any, rate: float, clip: float | None, **more: Any
) -> Any:
    return layers.optimize_loss(
        loss,
        _v1.train.get_global_step(),
        learning_rate=rate,
        optimizer=optimizer,
        clip_gradients=clip,
        name=name,
        summaries=[],
        **more,
    )


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
