"""Variables of a strategy: one with a copy for each replica, and no value yet."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator2strategy.engine import _tf_private

# Three classes, none derived from another: of TF 2, of its first versions, and of TF 1.
_STRATEGIES = (
    tf.distribute.TPUStrategy,
    tf.distribute.experimental.TPUStrategy,
    tf.compat.v1.distribute.experimental.TPUStrategy,
)


def is_tpu(strategy: tf.distribute.Strategy | None) -> bool:
    """True if `strategy` compiles what it runs for TPU cores."""
    return isinstance(strategy, _STRATEGIES)


def uninitialized_variable(
    strategy: tf.distribute.Strategy | None,
    name: str,
    shape: tf.TensorShape,
    dtype: tf.DType,
    trainable: bool = False,
) -> tf.Variable:
    """A variable of a strategy: one copy per replica, each with a life of its own, no value yet.

    A copy is changed by its own replica only, and the first one is what is saved: ON_READ,
    ONLY_FIRST_REPLICA. Without a strategy it is an ordinary variable.
    """
    if strategy is None:
        return _tf_private.UninitializedVariable(
            name=name, shape=shape, dtype=dtype, trainable=trainable
        )

    eager = tf.executing_eagerly()
    copies = 0

    def without_value(next_creator: Any, name: str, **kwargs: Any) -> tf.Variable:
        nonlocal copies
        del next_creator  # it would want an initial value
        copies += 1
        # Only the first one's name is told. For each name TensorFlow builds a kernel, 0.6 ms: for
        # 600 variables on 256 cores that would be a minute and a half.
        named = {"name": name} if copies == 1 or not eager else {}
        return _tf_private.UninitializedVariable(**named, **kwargs)

    # The strategy asks the creator outside of its scope for each core's copy.
    with tf.variable_creator_scope(without_value), strategy.scope():
        return tf.Variable(
            None,
            trainable=trainable,
            name=name,
            shape=shape,
            dtype=dtype,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
        )
