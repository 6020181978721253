"""Private parts of TF 1's heads, for programs that write a head of their own.

Source: tensorflow_estimator 1.15 canned/head.py and head/base_head.py.
"""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from estimator2strategy.estimator.heads import head_checks, v1

tf1 = tf.compat.v1
_ABSTRACT = "Calling an abstract method."


class Head(abc.ABC):  # noqa: B024 (see below)
    """The interface of TF 1's heads.

    A subclass need not implement all of it: Python 3 ignored the `__metaclass__` of the original.

    Source: `_Head`, tensorflow_estimator 1.15 canned/head.py.
    """

    @property
    def name(self) -> str | None:
        """Appended to the keys of metrics and summaries."""
        raise NotImplementedError(_ABSTRACT)

    @property
    def logits_dimension(self) -> int:
        """Size of the last dimension of the logits."""
        raise NotImplementedError(_ABSTRACT)

    def create_loss(self, features: Any, mode: str, logits: Any, labels: Any) -> Any:
        """The loss, and what it is made of: a `LossSpec`."""
        raise NotImplementedError(_ABSTRACT)

    def create_estimator_spec(
        self,
        features: Any,
        mode: str,
        logits: Any,
        labels: Any = None,
        optimizer: Any = None,
        train_op_fn: Callable[..., Any] | None = None,
        regularization_losses: Any = None,
    ) -> Any:
        """The spec that a model_fn returns.

        Raises:
            NotImplementedError: A subclass implements neither this nor the spec for TPUs.
        """
        arguments = (features, mode, logits, labels, optimizer, train_op_fn, regularization_losses)
        try:
            return self._create_tpu_estimator_spec(*arguments).as_estimator_spec()
        except NotImplementedError as error:
            raise NotImplementedError(
                "Subclasses of _Head must implement `create_estimator_spec()` or "
                "_create_tpu_estimator_spec()."
            ) from error

    def _create_tpu_estimator_spec(self, *arguments: Any, **named: Any) -> Any:
        raise NotImplementedError("TPUEstimatorSpec not available for this model head.")


Head.register(v1._V1)  # type: ignore[type-abstract]
Head.register(v1._Multi)


binary_head = v1.summed(v1.binary_classification_head)
multi_class_head = v1.summed(v1.multi_class_head)
regression_head = v1.summed(v1.regression_head)


def summary_key(head_name: str | None, val: str) -> str:
    """The key of a metric, with the name of its head if it has one."""
    return f"{val}/{head_name}" if head_name else val


# Of TF 2 a loss_fn may take loss_reduction, too.
validate_loss_fn_args = functools.partial(head_checks.validate_loss_fn_args, optional=("features",))


def indicator_labels_mean(labels: Any, weights: Any = None, name: str | None = None) -> Any:
    """The mean of labels that are 0 or 1."""
    return tf1.metrics.mean(tf.cast(labels, tf.float32), weights, name=name)


def predictions_mean(predictions: Any, weights: Any = None, name: str | None = None) -> Any:
    """The mean of predictions."""
    return tf1.metrics.mean(tf.cast(predictions, tf.float32), weights, name=name)


def auc(
    labels: Any, predictions: Any, weights: Any = None, curve: str = "ROC", name: str | None = None
) -> Any:
    """The area under a curve."""
    predictions = tf.cast(predictions, tf.float32)
    return tf1.metrics.auc(labels, predictions, weights, curve=curve, name=name)


def update_metric_with_broadcast_weights(eval_metric: Any, values: Any, weights: Any) -> None:
    """Adds values to a Keras metric; a column of weights counts for every column of theirs."""
    values = tf.cast(values, tf.float32)
    if weights is not None:
        weights = weights * tf.ones_like(values)
    eval_metric.update_state(values=values, sample_weight=weights)
