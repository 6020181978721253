"""The networks of canned Estimators: from features to logits.

Source: tensorflow_estimator 2.15 canned/dnn.py, linear.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.estimator.canned import columns
from estimator2strategy.estimator.run_config import RunConfig

tf1 = tf.compat.v1

Activation: TypeAlias = Callable[[tf.Tensor], tf.Tensor] | str | None

# Bytes under which variables are not cut up among parameter servers: of features, of layers.
_LARGE = 64 << 20
SMALL = 256 << 10


def partitioner(config: RunConfig | None, min_slice_size: int = _LARGE) -> Callable[..., Any]:
    """The function that splits variables among the parameter servers; most stay whole."""
    servers = config.num_ps_replicas if config else 0
    return cast(
        Callable[..., Any], tf1.min_max_variable_partitioner(servers, min_slice_size=min_slice_size)
    )


@dataclasses.dataclass(frozen=True)
class Dnn:
    """A deep network: the arguments of the Estimators that have one."""

    hidden_units: Sequence[int]
    feature_columns: Sequence[Any]
    activation_fn: Activation = tf.nn.relu
    dropout: float | None = None
    batch_norm: bool = False
    input_layer_partitioner: Callable[..., Any] | None = None

    @classmethod
    def from_arguments(
        cls, hidden_units: Iterable[int] | None, feature_columns: Any, *others: Any
    ) -> Dnn:
        """From what programs give: iterables that may be read once, or None."""
        sizes = () if hidden_units is None else tuple(hidden_units)
        return cls(sizes, tuple(feature_columns or ()), *others)

    def cut(self, config: RunConfig | None) -> Dnn:
        """With a partitioner."""
        cut = self.input_layer_partitioner or partitioner(config)
        return dataclasses.replace(self, input_layer_partitioner=cut)

    def logits(self, features: Mapping[str, Any], mode: str, units: int) -> tf.Tensor:
        """float32 [batch, units]; variables are in the variable scope of the moment, as in TF 1."""
        scope = tf1.variable_scope(
            "input_from_feature_columns", partitioner=self.input_layer_partitioner
        )
        training = mode == ModeKeys.TRAIN
        with scope:
            net = columns.input_layer(features, self.feature_columns, "input_layer", training)
        return self._layers(net, training, units)

    def logits_v2(
        self, features: Mapping[str, Any], mode: str, units: int
    ) -> tuple[tf.Tensor, list[tf.Variable], list[Any]]:
        """(float32 [batch, units], variables to train, update ops), as in TF 2.

        Shared embeddings are not among the variables: TF 2 did not train them either.
        """
        columns.check_v2(self.feature_columns)
        training = mode == ModeKeys.TRAIN
        scope = "dnn/input_from_feature_columns/input_layer"
        net = columns.input_layer(features, self.feature_columns, scope, training)
        with tf1.variable_scope("dnn", auxiliary_name_scope=False):
            logits = self._layers(net, training, units)
        variables = tf1.get_collection(tf1.GraphKeys.TRAINABLE_VARIABLES, "dnn/")
        return logits, variables, tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)

    def _layers(self, net: tf.Tensor, training: bool, units: int) -> tf.Tensor:
        for index, size in enumerate(self.hidden_units):
            with tf1.variable_scope(f"hiddenlayer_{index}") as scope:
                # Programs give what they split a flag into: layers took "128" too.
                net = _activated(self.activation_fn, _dense(net, int(size)))
                if self.dropout and training:
                    net = tf.nn.dropout(net, rate=self.dropout)
                if self.batch_norm:
                    net = _batch_normalized(net, f"batchnorm_{index}", training)
            add_layer_summary(net, scope.name)
        with tf1.variable_scope("logits") as scope:
            logits = _dense(net, units)
        add_layer_summary(logits, scope.name)
        return logits


def _dense(net: tf.Tensor, units: int) -> tf.Tensor:
    shape = [net.shape.as_list()[-1], units]
    kernel = tf1.get_variable("kernel", shape, initializer=tf1.glorot_uniform_initializer())
    bias = tf1.get_variable("bias", [units], initializer=tf1.zeros_initializer())
    return tf.nn.bias_add(tf.matmul(net, kernel), bias)


def _activated(activation: Any, net: tf.Tensor) -> tf.Tensor:
    if isinstance(activation, str):
        import tf_keras

        activation = tf_keras.activations.get(activation)
    return net if activation is None else activation(net)


def _batch_normalized(net: tf.Tensor, name: str, training: bool) -> tf.Tensor:
    from tf_keras.api._v1.keras.__internal__.legacy import layers

    layer = layers.BatchNormalization(momentum=0.999, name=name, _scope=name)
    return layer(net, training=training)


def add_layer_summary(value: tf.Tensor, tag: str) -> None:
    """Summaries of what a layer gives."""
    tf1.summary.scalar(f"{tag}/fraction_of_zero_values", tf.math.zero_fraction(value))
    tf1.summary.histogram(f"{tag}/activation", value)


def dnn_logit_fn_builder(
    units: int,
    hidden_units: Sequence[int],
    feature_columns: Sequence[Any],
    activation_fn: Callable[[tf.Tensor], tf.Tensor],
    dropout: float | None,
    input_layer_partitioner: Callable[..., Any] | None,
    batch_norm: bool,
) -> Callable[[Mapping[str, Any], str], tf.Tensor]:
    """A deep network for a model_fn of one's own.

    Args:
        units: Number of logits.
        hidden_units, feature_columns, activation_fn, dropout, input_layer_partitioner, batch_norm:
            As for `DNNClassifier`.

    Returns:
        `logit_fn(features, mode)` -> float32 [batch, units].

    Raises:
        ValueError: `units` is no int.
    """
    if not isinstance(units, int):
        raise ValueError(f"units must be an int.  Given type: {type(units)}")
    network = Dnn(
        hidden_units, feature_columns, activation_fn, dropout, batch_norm, input_layer_partitioner
    )

    def dnn_logit_fn(features: Mapping[str, Any], mode: str) -> tf.Tensor:
        return network.logits(features, mode, units)

    return dnn_logit_fn


@dataclasses.dataclass(frozen=True)
class Linear:
    """A linear model: the arguments of the Estimators that have one."""

    feature_columns: Sequence[Any]
    sparse_combiner: str = "sum"
    partitioner: Callable[..., Any] | None = None

    def model(self, features: Mapping[str, Any], units: int) -> columns.LinearSums:
        """That of TF 1; variables are in the variable scope of the moment."""
        return self._model(features, units, "linear_model")

    def model_v2(self, features: Mapping[str, Any], units: int) -> columns.LinearSums:
        """That of TF 2."""
        columns.check_v2(self.feature_columns)
        return self._model(features, units, "linear/linear_model")

    def _model(self, features: Mapping[str, Any], units: int, scope: str) -> columns.LinearSums:
        model = columns.linear_model(
            features, self.feature_columns, units, self.sparse_combiner, scope
        )
        _summarize(model, units)
        return model


def _summarize(model: columns.LinearSums, units: int) -> None:
    bias = _parts(model.bias)
    if units > 1:
        tf1.summary.histogram("bias", bias)
    else:
        tf1.summary.scalar("bias", bias[0][0])
    tf1.summary.scalar("fraction_of_zero_weights", fraction_of_zero(model.weights))


def fraction_of_zero(variables: Any) -> tf.Tensor:
    """The fraction of all weights that are 0, in variables that may be nested in lists."""
    weights = _parts(variables)
    total = tf.add_n([tf.size(w, out_type=tf.int64) for w in weights])
    others = tf.add_n([tf.math.count_nonzero(w) for w in weights])
    return tf.cast(total - others, tf.float32) / tf.cast(total, tf.float32)


def _parts(variables: Any) -> list[tf.Variable]:
    """Variables one by one; those that were cut up, by their parts."""
    if isinstance(variables, tf.Variable):
        return [variables]
    return [part for variable in variables for part in _parts(variable)]


def linear_logit_fn_builder(
    units: int, feature_columns: Iterable[Any], sparse_combiner: str = "sum"
) -> Callable[[Mapping[str, Any]], tf.Tensor]:
    """A linear model for a model_fn of one's own.

    Args:
        units: Number of logits.
        feature_columns, sparse_combiner: As for `LinearClassifier`.

    Returns:
        `logit_fn(features)` -> float32 [batch, units].
    """
    network = Linear(tuple(feature_columns), sparse_combiner)

    def linear_logit_fn(features: Mapping[str, Any]) -> tf.Tensor:
        return network.model(features, units).logits

    return linear_logit_fn
