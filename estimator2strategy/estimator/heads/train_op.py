"""The train op of a head, from whichever optimizer there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.estimator.heads import head_checks

tf1 = tf.compat.v1


def create_estimator_spec_train_op(
    head_name: str | None,
    optimizer: Any = None,
    trainable_variables: Sequence[tf.Variable] | None = None,
    train_op_fn: Callable[[tf.Tensor], Any] | None = None,
    update_ops: Sequence[Any] | None = None,
    regularized_training_loss: tf.Tensor | None = None,
    loss_reduction: str = "sum_over_batch_size",
) -> Any:
    """Makes the train op; for the arguments see `Head.create_estimator_spec`.

    Raises:
        ValueError: Not one of `optimizer` and `train_op_fn` is given; the optimizer is of another
            kind; there are no trainable variables.
    """
    del head_name
    head_checks.validate_update_ops(update_ops)
    with tf1.name_scope(""), tf1.name_scope("training"):
        if optimizer is None and train_op_fn is None:
            raise ValueError("train_op_fn and optimizer cannot both be None.")
        if optimizer is not None and train_op_fn is not None:
            raise ValueError("train_op_fn and optimizer cannot both be set.")
        if train_op_fn is not None:
            train_op = train_op_fn(regularized_training_loss)
        elif isinstance(optimizer, tf1.train.Optimizer):
            if update_ops is None:
                update_ops = tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)
            train_op = optimizer.minimize(
                regularized_training_loss, tf1.train.get_global_step(), trainable_variables
            )
        else:
            _check_can_train(optimizer)
            head_checks.validate_trainable_variables(trainable_variables)
            loss = share_of_replica(regularized_training_loss, loss_reduction)
            (train_op,) = optimizer.get_updates(loss, trainable_variables)[:1]
        return tf.group(train_op, *update_ops) if update_ops else train_op


def _check_can_train(optimizer: Any) -> None:
    import tf_keras

    optimizers = (tf_keras.optimizers.Optimizer, tf_keras.optimizers.legacy.Optimizer)
    if not (isinstance(optimizer, optimizers) and hasattr(optimizer, "get_updates")):
        raise ValueError(
            "The given optimizer is not a tf_keras.optimizers.Optimizer instance that works in a "
            f"graph. Received optimizer of type {type(optimizer)}. Use one of "
            "tf_keras.optimizers.legacy, or of tf.compat.v1.train."
        )


def share_of_replica(loss: Any, loss_reduction: str) -> Any:
    """Under a strategy gradients are summed: a mean of each replica counts for its share."""
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    if loss_reduction == "sum_over_batch_size" and replicas > 1:
        return loss * (1.0 / replicas)
    return loss
