"""Deep networks: `DNNClassifier`, `DNNRegressor`, `DNNEstimator`, of TF 1 and (V2) of TF 2.

Example:

    estimator = DNNClassifier(
        hidden_units=[64, 32],
        feature_columns=[tf.feature_column.numeric_column("size", shape=(2,))],
        n_classes=3)
    estimator.train(input_fn)

Source: tensorflow_estimator 2.15 canned/dnn.py.
"""

from __future__ import annotations

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
from estimator2strategy.estimator.canned.networks import SMALL, Dnn, partitioner
from estimator2strategy.estimator.canned.optimizers import (
    get_optimizer_instance,
    get_optimizer_instance_v2,
)

tf1 = tf.compat.v1

_LEARNING_RATE = 0.05


def model_fn_v1(head: Any, network: Dnn, optimizer: Any, use_tpu: bool = False) -> ModelFn:
    """The model_fn of TF 1; a TPU's variables stay whole."""
    make_spec = head._create_tpu_estimator_spec if use_tpu else head.create_estimator_spec

    def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
        instance = get_optimizer_instance(optimizer, _LEARNING_RATE)
        columns.check_features(features)
        cut = None if use_tpu else partitioner(config, SMALL)
        with tf1.variable_scope("dnn", partitioner=cut):
            model = network if use_tpu else network.cut(config)
            logits = model.logits(features, mode, head.logits_dimension)
            return make_spec(
                features=features, mode=mode, labels=labels, optimizer=instance, logits=logits
            )

    return model_fn


def model_fn_v2(head: Any, network: Dnn, optimizer: Any) -> ModelFn:
    """The model_fn of TF 2."""

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        columns.check_features(features)
        logits, variables, update_ops = network.logits_v2(features, mode, head.logits_dimension)
        instance = optimizer
        if mode == ModeKeys.TRAIN:
            instance = get_optimizer_instance_v2(optimizer)
            instance.iterations = tf1.train.get_or_create_global_step()
        return head.create_estimator_spec(
            features=features,
            mode=mode,
            labels=labels,
            optimizer=instance,
            logits=logits,
            trainable_variables=variables,
            update_ops=update_ops,
        )

    return model_fn


def network_of(given: Arguments) -> Dnn:
    """The network that the arguments describe."""
    return Dnn.from_arguments(
        given["hidden_units"],
        given["feature_columns"],
        given["activation_fn"],
        given["dropout"],
        given["batch_norm"],
        given.get("input_layer_partitioner"),
    )


def _arguments(
    given: Arguments, head_of: Callable[[Arguments], Any], make_model_fn: Callable[..., ModelFn]
) -> tuple[Any, ...]:
    head, network = head_of(given), network_of(given)
    return construction.estimator_arguments(given, make_model_fn(head, network, given["optimizer"]))


@canned("tf.compat.v1.estimator.DNNClassifier", _arguments, construction.classifier_v1, model_fn_v1)
class DNNClassifier(CannedEstimator):
    """Classes, by a deep network: sigmoid cross entropy for two, softmax for more.

    Args:
        hidden_units: Sizes of the hidden layers.
        feature_columns: Dense columns of `tf.feature_column`.
        model_dir: As for `Estimator`.
        n_classes: Number of classes.
        weight_column: Name of the feature, or numeric column, that weights examples.
        label_vocabulary: Names of the classes, where labels are strings.
        optimizer: "Adagrad", "Adam", "Ftrl", "RMSProp" or "SGD" (with a learning rate of 0.05), an
            optimizer of `tf.compat.v1.train`, or a function that returns one.
        activation_fn: Applied to each hidden layer.
        dropout: The part of a hidden layer's outputs that is dropped while training.
        input_layer_partitioner: Cuts up variables of columns; by default those over 64 MB, among
            the parameter servers of a cluster.
        config: As for `Estimator`.
        warm_start_from: As for `Estimator`.
        loss_reduction: A `tf.compat.v1.losses.Reduction`: how losses of examples become one.
        batch_norm: True if hidden layers are batch normalized.

    Raises:
        ValueError: An argument is not as above; while training, that features are no dict.
    """


@canned("tf.compat.v1.estimator.DNNRegressor", _arguments, construction.regressor_v1, model_fn_v1)
class DNNRegressor(CannedEstimator):
    """Real values, by a deep network: squared error.

    Args:
        label_dimension: Number of values per example.
        weight_column: Name of the feature, or numeric column, that weights examples, or each of
            their values.

    The other arguments are those of `DNNClassifier`.
    """


@canned("tf.compat.v1.estimator.DNNEstimator", _arguments, construction.given_head, model_fn_v1)
class DNNEstimator(CannedEstimator):
    """A deep network under any head.

    Args:
        head: A head of `tf.estimator` or of `tf.contrib.estimator`.

    The other arguments are those of `DNNClassifier`.
    """


@canned("tf.estimator.DNNClassifier", _arguments, construction.classifier_v2, model_fn_v2)
class DNNClassifierV2(CannedEstimator):
    """`DNNClassifier` of TF 2.

    Args:
        optimizer: A name as above, with the learning rate that its class has by default; an
            optimizer of tf-keras; or a function that returns one.
        loss_reduction: "sum_over_batch_size" or "sum".

    The other arguments are those of `DNNClassifier`.
    """


@canned("tf.estimator.DNNRegressor", _arguments, construction.regressor_v2, model_fn_v2)
class DNNRegressorV2(CannedEstimator):
    """`DNNRegressor` of TF 2; `optimizer` and `loss_reduction` are as of `DNNClassifierV2`."""


@canned("tf.estimator.DNNEstimator", _arguments, construction.given_head, model_fn_v2)
class DNNEstimatorV2(CannedEstimator):
    """`DNNEstimator` of TF 2, for heads of `tf.estimator`."""
