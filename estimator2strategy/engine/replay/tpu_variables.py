"""Variables of a strategy: one with a copy for each replica, no value yet; values for all cores."""

from __future__ import annotations

from collections.abc import Sequence
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


def to_all_cores(variables: Sequence[Sequence[tf.Variable]], cores: Sequence[str]) -> None:
    """Gives each copy of a variable the value of its first one; leaves out those without a value.

        core 0 ─ read ─▶ CPU of each host ─ assign ─▶ its cores

    An eager op for each variable and core would be 150,000 calls for 600 variables on 256 cores.
    Here each host gets the values once, and one function, traced once for all hosts, assigns them.

    Args:
        variables: The copies of each variable, core by core.
        cores: The cores' devices.
    """
    if not variables:
        return
    have_values = _have_values([copies[0].handle for copies in variables]).numpy()
    variables = [copies for copies, has in zip(variables, have_values, strict=True) if has]
    first = [copies[0].handle for copies in variables]
    dtypes = tuple(copies[0].dtype for copies in variables)
    for host, numbers in _by_host(cores).items():
        with tf.device(host):
            values = _values(first, dtypes)
        _assign(values, [[copies[number].handle for number in numbers] for copies in variables])


def _by_host(cores: Sequence[str]) -> dict[str, list[int]]:
    """CPU of a host -> the numbers of its cores."""
    numbers: dict[str, list[int]] = {}
    for number, core in enumerate(map(tf.DeviceSpec.from_string, cores)):
        host = core.replace(device_type="CPU", device_index=0)
        numbers.setdefault(host.to_string(), []).append(number)
    return numbers


@tf.function(autograph=False)  # type: ignore[untyped-decorator]
def _have_values(handles: Sequence[tf.Tensor]) -> tf.Tensor:
    return tf.stack([tf.raw_ops.VarIsInitializedOp(resource=handle) for handle in handles])


@tf.function(autograph=False)  # type: ignore[untyped-decorator]
def _values(handles: Sequence[tf.Tensor], dtypes: Sequence[tf.DType]) -> list[tf.Tensor]:
    return [
        # A read stays where its variable is. What has no place of its own is where the call is.
        tf.identity(tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype))
        for handle, dtype in zip(handles, dtypes, strict=True)
    ]


@tf.function(autograph=False)  # type: ignore[untyped-decorator]
def _assign(values: Sequence[tf.Tensor], handles: Sequence[Sequence[tf.Tensor]]) -> None:
    for value, of_cores in zip(values, handles, strict=True):
        for handle in of_cores:
            tf.raw_ops.AssignVariableOp(resource=handle, value=value)
