"""`tf.layers` of TF 1.15, from tf-keras.

tf-keras draws the initial weights of a layer that names no initializer from Python's own random
numbers; TF 1.15 drew them from the graph's seed (`RunConfig.tf_random_seed`). So the initializer
that TF 1.15 would have taken is named here.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from typing import Any

import tensorflow as tf
from tf_keras.api._v1.keras.__internal__.legacy import layers as _layers

# Arguments of layers that mean `get_variable`'s default initializer where they are None.
_WEIGHTS = ("kernel_initializer", "depthwise_initializer", "pointwise_initializer")


def _named(function: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """`arguments` with TF 1.15's initializers where the call leaves them open."""
    for name in inspect.signature(function).parameters:
        if name in _WEIGHTS and arguments.get(name) is None:
            arguments[name] = tf.compat.v1.glorot_uniform_initializer()
    return arguments


def _function(function: Any) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(function).bind(*args, **kwargs)
        with warnings.catch_warnings():
            # Told to use tf.keras.layers, at every call: that is for the migration guide to say.
            warnings.filterwarnings("ignore", "`tf.layers.", UserWarning)
            return function(**_named(function, dict(bound.arguments)))

    return call


def _layer(cls: Any) -> type:
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = inspect.signature(cls.__init__).bind(self, *args, **kwargs)
        arguments = dict(bound.arguments)
        arguments.pop("self")
        extra = arguments.pop("kwargs", {})
        cls.__init__(self, **_named(cls.__init__, arguments), **extra)

    return type(cls.__name__, (cls,), {"__init__": init, "__doc__": cls.__doc__})


def _public(value: Any) -> Any:
    if inspect.isclass(value):
        takes_weights = set(_WEIGHTS) & set(inspect.signature(value.__init__).parameters)
        return _layer(value) if takes_weights else value
    return _function(value) if inspect.isfunction(value) else value


__all__ = [name for name in dir(_layers) if not name.startswith("_")]
globals().update({name: _public(getattr(_layers, name)) for name in __all__})
