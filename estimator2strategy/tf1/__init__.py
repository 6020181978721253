"""The `tensorflow` of TF 1.15, on today's: `import estimator2strategy.tf1 as tf`.

`tf.compat.v1` is the base. What it lacks or what Keras 3 took from it is put back: `tf.layers`,
`tf.keras` and `tf.nn.rnn_cell` (from tf-keras, whatever TF_USE_LEGACY_KERAS says), `tf.estimator`,
and the parts of `tf.contrib` that TPU programs use.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable
from typing import Any

import tensorflow as _tensorflow

_v1 = _tensorflow.compat.v1
_LEGACY_KERAS = "tf_keras.api._v1.keras.__internal__.legacy"


def _module(path: str) -> Callable[[], Any]:
    return lambda: importlib.import_module(path)


class _Overlay(types.ModuleType):
    """A module of TensorFlow with some names replaced, each made at its first use."""

    def __init__(self, base: types.ModuleType, **own: Callable[[], Any]):
        super().__init__(base.__name__, base.__doc__)
        self.__dict__["_base"] = base
        self.__dict__["_own"] = own

    def __getattr__(self, name: str) -> Any:
        value = self._own[name]() if name in self._own else getattr(self._base, name)
        setattr(self, name, value)
        return value


def _tpu_cluster_resolver() -> Any:
    from estimator2strategy.tf1.contrib import TPUClusterResolver

    return TPUClusterResolver


def _cluster_resolvers() -> types.ModuleType:
    return _Overlay(_v1.distribute.cluster_resolver, TPUClusterResolver=_tpu_cluster_resolver)


# What this module has of its own; all else is `tf.compat.v1`'s.
_OWN: dict[str, Callable[[], Any]] = {
    # Programs say `import tensorflow.compat.v1 as tf` too, and must find the same there.
    "compat": lambda: _Overlay(
        _v1.compat, v1=lambda: sys.modules[__name__], v2=lambda: _tensorflow
    ),
    "contrib": _module("estimator2strategy.tf1.contrib"),
    "distribute": lambda: _Overlay(_v1.distribute, cluster_resolver=_cluster_resolvers),
    "estimator": _module("estimator2strategy.estimator"),
    "keras": _module("tf_keras.api._v1.keras"),
    "layers": _module("estimator2strategy.tf1.layers"),
    "nn": lambda: _Overlay(_v1.nn, rnn_cell=_module(f"{_LEGACY_KERAS}.rnn_cell")),
}


def __getattr__(name: str) -> Any:
    value = _OWN[name]() if name in _OWN else getattr(_v1, name)
    globals()[name] = value
    return value
