"""The variables of a legacy model as Keras variables, in a layer for each legacy scope."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import keras
import tensorflow as tf

from estimator2strategy.errors import UnsupportedError

tf1 = tf.compat.v1

# The scope of what only training needs: slots of optimizers, the global step.
TRAINING_STATE = "training_state"


@keras.saving.register_keras_serializable(package="estimator2strategy")
class VariableScope(keras.layers.Layer):
    """The variables of one legacy scope (`dense`, `bert/encoder/layer_0`) as a layer's weights.

    They have the order in which the legacy program made them: that of a Keras layer's.

    Args:
        scope: The scope; as the name of a layer its slashes are dots.
    """

    def __init__(self, scope: str):
        super().__init__(name=scope.replace("/", "."), autocast=False)
        self.scope = scope
        self.built = True

    def add(self, name: str, variable: tf.Variable) -> keras.Variable:
        """Adds the stand-in for a recorded variable, zero so far.

        Raises:
            UnsupportedError: Its shape is not known, or it holds no numbers.
        """
        if not variable.shape.is_fully_defined() or variable.dtype.base_dtype == tf.string:
            raise UnsupportedError(
                f"The variable {variable.op.name} ({variable.dtype.base_dtype.name}, shape "
                f"{variable.shape}) cannot be one of a Keras model, which holds numbers of a fixed "
                "shape. Use Estimator."
            )
        with _one_value_per_replica():
            return self.add_weight(
                shape=tuple(variable.shape.as_list()),
                dtype=variable.dtype.base_dtype.name,
                initializer="zeros",
                trainable=variable.trainable,
                autocast=False,
                name=name.replace("/", "."),
            )

    def call(self, *inputs: Any) -> Any:
        raise TypeError(f"{self.name} holds variables; call the model.")

    def save_own_variables(self, store: Any) -> None:
        """The model saves all variables by name."""

    def load_own_variables(self, store: Any) -> None:
        """The model loads all variables by name."""


@contextlib.contextmanager
def _one_value_per_replica() -> Iterator[None]:
    """Each replica changes its own copy, as each core of a TPU did; the host sees the first's."""

    def create(next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        kwargs["synchronization"] = tf.VariableSynchronization.ON_READ
        kwargs["aggregation"] = tf.VariableAggregation.ONLY_FIRST_REPLICA
        return next_creator(**kwargs)

    with tf.variable_creator_scope(create):
        yield


def scope_and_name(variable: str, all_variables: Iterable[str]) -> tuple[str, str]:
    """The scope that a variable belongs to, and its name in it.

    What belongs to another variable (its slots), or to no scope, is training state.

    Args:
        variable: Its legacy name.
        all_variables: The names of all.
    """
    scope, _, name = variable.rpartition("/")
    parts = variable.split("/")
    owners = {"/".join(parts[:i]) for i in range(1, len(parts))}
    if not scope or owners.intersection(all_variables):
        return TRAINING_STATE, variable
    return scope, name
