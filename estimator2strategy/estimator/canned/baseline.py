"""Predictions that ignore the features: `BaselineClassifier` and its kin, of TF 1 and (V2) TF 2.

They learn the distribution, or the mean, of the labels. A useful model is better than that.

    estimator = BaselineClassifier(n_classes=3)
    estimator.train(input_fn)

Source: tensorflow_estimator 2.15 canned/baseline.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.estimator.canned import construction
from estimator2strategy.estimator.canned.construction import (
    Arguments,
    CannedEstimator,
    ModelFn,
    canned,
)
from estimator2strategy.estimator.canned.optimizers import (
    get_optimizer_instance,
    get_optimizer_instance_v2,
)
from estimator2strategy.estimator.heads.head_checks import numeric_column
from estimator2strategy.estimator.heads.train_op import share_of_replica

tf1 = tf.compat.v1

_LEARNING_RATE = 0.3


def _logits(
    features: Mapping[str, Any], units: int, weight_column: Any
) -> tuple[tf.Tensor, tf.Variable]:
    """The same float32 [units] for each example of the batch; and these alone."""
    sizes = [
        tf.shape(feature)[0] for name, feature in features.items() if name != _key_of(weight_column)
    ]
    checks = [tf1.debugging.assert_equal(sizes[0], size) for size in sizes[1:]]
    with tf1.variable_scope("baseline"):
        bias = tf1.get_variable("bias", [units], initializer=tf1.zeros_initializer())
        with tf.control_dependencies(checks):
            return tf.multiply(bias, tf.ones([sizes[0], units])), bias


def _key_of(weight_column: Any) -> str | None:
    return None if weight_column is None else numeric_column(weight_column).key


def _model_fn(head: Any, optimizer: Any, weight_column: Any = None) -> ModelFn:
    def train_op_fn(loss: tf.Tensor) -> Any:
        instance = get_optimizer_instance(optimizer, _LEARNING_RATE)
        return instance.minimize(loss, global_step=tf1.train.get_global_step())

    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        logits, _ = _logits(features, head.logits_dimension, weight_column)
        return head.create_estimator_spec(
            features=features, mode=mode, logits=logits, labels=labels, train_op_fn=train_op_fn
        )

    return model_fn


def _model_fn_v2(head: Any, optimizer: Any, weight_column: Any = None) -> ModelFn:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        logits, bias = _logits(features, head.logits_dimension, weight_column)
        if mode == ModeKeys.TRAIN:
            instance = get_optimizer_instance_v2(optimizer, _LEARNING_RATE)
            instance.iterations = tf1.train.get_or_create_global_step()

        def train_op_fn(loss: tf.Tensor) -> Any:
            return instance.get_updates(share_of_replica(loss, head.loss_reduction), [bias])[0]

        return head.create_estimator_spec(
            features=features, mode=mode, logits=logits, labels=labels, train_op_fn=train_op_fn
        )

    return model_fn


def _arguments(
    given: Arguments, head_of: Callable[[Arguments], Any], make_model_fn: Callable[..., ModelFn]
) -> tuple[Any, ...]:
    # As in the original, only classifiers leave the weights out of the features they count.
    weight_column = given["weight_column"] if "n_classes" in given else None
    model_fn = make_model_fn(head_of(given), given["optimizer"], weight_column)
    return construction.estimator_arguments(given, model_fn)


@canned(
    "tf.compat.v1.estimator.BaselineClassifier", _arguments, construction.classifier_v1, _model_fn
)
class BaselineClassifier(CannedEstimator):
    """The distribution of classes, whatever the features are.

    Args:
        model_dir: As for `Estimator`.
        n_classes: Number of classes.
        weight_column: Name of the feature, or numeric column, that weights examples.
        label_vocabulary: Names of the classes, where labels are strings.
        optimizer: "Adagrad", "Adam", "Ftrl", "RMSProp" or "SGD" (with a learning rate of 0.3), an
            optimizer of `tf.compat.v1.train`, or a function that returns one.
        config: As for `Estimator`.
        loss_reduction: A `tf.compat.v1.losses.Reduction`: how losses of examples become one.

    Raises:
        ValueError: An argument is not as above.
    """


@canned(
    "tf.compat.v1.estimator.BaselineRegressor", _arguments, construction.regressor_v1, _model_fn
)
class BaselineRegressor(CannedEstimator):
    """The mean of the labels, whatever the features are.

    Args:
        label_dimension: Number of values per example.
        weight_column: Name of the feature, or numeric column, that weights examples, or each of
            their values.

    The other arguments are those of `BaselineClassifier`.
    """


@canned("tf.compat.v1.estimator.BaselineEstimator", _arguments, construction.given_head, _model_fn)
class BaselineEstimator(CannedEstimator):
    """Logits that do not depend on the features, under any head.

    Args:
        head: A head of `tf.estimator` or of `tf.contrib.estimator`.

    The other arguments are those of `BaselineClassifier`.
    """


@canned("tf.estimator.BaselineClassifier", _arguments, construction.classifier_v2, _model_fn_v2)
class BaselineClassifierV2(CannedEstimator):
    """`BaselineClassifier` of TF 2.

    Args:
        optimizer: A name as above; an optimizer of tf-keras; or a function that returns one.
        loss_reduction: "sum_over_batch_size" or "sum".

    The other arguments are those of `BaselineClassifier`.
    """


@canned("tf.estimator.BaselineRegressor", _arguments, construction.regressor_v2, _model_fn_v2)
class BaselineRegressorV2(CannedEstimator):
    """`BaselineRegressor` of TF 2; `optimizer` and `loss_reduction` as of the classifier."""


@canned("tf.estimator.BaselineEstimator", _arguments, construction.given_head, _model_fn_v2)
class BaselineEstimatorV2(CannedEstimator):
    """`BaselineEstimator` of TF 2, for heads of `tf.estimator`."""
