"""The `tensorflow` of TF 1.15, on today's: `import estimator2strategy.tf1 as tf`.

`tf.compat.v1` is the base. What it lacks or what Keras 3 took from it is put back: `tf.layers`,
`tf.keras` and `tf.nn.rnn_cell` (from tf-keras, whatever TF_USE_LEGACY_KERAS says), `tf.estimator`,
and the parts of `tf.contrib` that TPU programs use.
"""

from __future__ import annotations

import importlib
import types
from typing import Any

import tensorflow as _tensorflow

_v1 = _tensorflow.compat.v1

# Name -> module to import at first use.
_MODULES = {
    "contrib": "estimator2strategy.tf1.contrib",
    "estimator": "estimator2strategy.estimator",
    "keras": "tf_keras.api._v1.keras",
    "layers": "tf_keras.api._v1.keras.__internal__.legacy.layers",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value = importlib.import_module(_MODULES[name])
    elif name == "nn":
        value = _with_rnn_cells()
    else:
        value = getattr(_v1, name)
    globals()[name] = value
    return value


def _with_rnn_cells() -> types.ModuleType:
    """`tf.nn`, whose `rnn_cell` is a Keras 3 stub in `tf.compat.v1`."""
    nn = types.ModuleType(f"{__name__}.nn", _v1.nn.__doc__)
    for name in vars(_v1.nn):
        if not name.startswith("_") and name != "rnn_cell":
            setattr(nn, name, getattr(_v1.nn, name))
    nn.rnn_cell = importlib.import_module("tf_keras.api._v1.keras.__internal__.legacy.rnn_cell")
    return nn
