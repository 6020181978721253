"""tf-slim, the successor of `tf.contrib.slim` and `tf.contrib.layers`, on the TF 1.15 facade.

tf-slim 1.1 expects `tf.layers` and some names at places that TensorFlow 2.16 and Keras 3 emptied.
So its files are executed a second time, as modules of this package, which import the facade. The
installed package and TensorFlow stay as they are.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.machinery
import importlib.util
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

PREFIX = f"{__name__.rpartition('.')[0]}._"


def module(name: str, prefix: str = PREFIX) -> types.ModuleType:
    """Our own copy of a module of tf-slim: "tf_slim.layers.layers".

    Args:
        name: Of the module.
        prefix: Of the name that the copy has.

    Raises:
        ModuleNotFoundError: tf-slim is not installed, or has no such module.
    """
    own = prefix + name
    parent, _, last = name.rpartition(".")
    path = module(parent, prefix).__path__ if parent and own not in sys.modules else None
    if own in sys.modules:  # perhaps by now, as packages import what is in them
        return sys.modules[own]
    spec = importlib.machinery.PathFinder.find_spec(name, path)
    if spec is None:
        if parent:
            raise ModuleNotFoundError(f"tf-slim has no module {name}", name=name)
        raise ModuleNotFoundError(
            "This name of tf.contrib lives on in tf-slim, which is not installed: "
            "pip install tf-slim",
            name=name,
        )
    copy = importlib.util.module_from_spec(spec)
    # tf-slim looks itself up by this name.
    vars(copy).update(__name__=own, __builtins__=_BUILTINS)
    sys.modules[own] = copy
    try:
        loader: Any = spec.loader
        exec(loader.get_code(name), vars(copy))
    except BaseException:
        del sys.modules[own]
        raise
    if parent:
        setattr(module(parent, prefix), last, copy)
    return copy


# Names that tf-slim takes from modules of TensorFlow which no longer have them.
_LAYERS = "estimator2strategy.tf1.layers"
_MOVED = {
    "tensorflow.python.framework.ops": {
        "IndexedSlices": "tensorflow:IndexedSlices",
        "Tensor": "tensorflow:Tensor",
    },
    "tensorflow.python.layers.base": {"Layer": f"{_LAYERS}:Layer"},
    "tensorflow.python.layers.convolutional": {
        "Convolution1D": f"{_LAYERS}:Conv1D",
        "Convolution2D": f"{_LAYERS}:Conv2D",
        "Convolution2DTranspose": f"{_LAYERS}:Conv2DTranspose",
        "Convolution3D": f"{_LAYERS}:Conv3D",
        "Convolution3DTranspose": f"{_LAYERS}:Conv3DTranspose",
        "SeparableConvolution2D": f"{_LAYERS}:SeparableConv2D",
    },
    "tensorflow.python.layers.core": {
        name: f"{_LAYERS}:{name}" for name in ("Dense", "Dropout", "flatten")
    },
    "tensorflow.python.layers.normalization": {
        "BatchNormalization": f"{_LAYERS}:BatchNormalization"
    },
    "tensorflow.python.layers.pooling": {
        name: f"{_LAYERS}:{name}"
        for name in ("AveragePooling2D", "AveragePooling3D", "MaxPooling2D", "MaxPooling3D")
    },
    "tensorflow.python.ops.array_ops": {
        name: f"tensorflow.compat.v1:{name}" for name in ("stack", "unstack")
    },
    "tensorflow.python.ops.control_flow_ops": {
        name: f"tensorflow.compat.v1:{name}" for name in ("Assert", "case", "cond", "while_loop")
    },
    "tensorflow.python.ops.variable_scope": {"variable": "tensorflow.compat.v1:Variable"},
}


class _Overlay(types.ModuleType):
    """A module of TensorFlow, with the names put back that moved away."""

    def __getattr__(self, name: str) -> Any:
        moved = _MOVED[self.__name__]
        if name in moved:
            home, _, attribute = moved[name].partition(":")
            return getattr(importlib.import_module(home), attribute)
        return getattr(importlib.import_module(self.__name__), name)


class _Later(types.ModuleType):
    """A module that takes long to import, and that few programs need: imported at its first use."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


def _import_later(name: str) -> types.ModuleType:
    """`importlib.import_module`, for tf-slim's losses of metric learning: of `sklearn.metrics`."""
    if importlib.util.find_spec(name.partition(".")[0]) is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return _Later(name)


_IMPORTLIB = types.SimpleNamespace(import_module=_import_later)


def import_slim(
    name: str,
    globals: Mapping[str, Any] | None = None,  # noqa: A002
    locals: Mapping[str, Any] | None = None,  # noqa: A002
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Any:
    if name.partition(".")[0] == "tf_slim":
        imported = module(name)
        for part in fromlist or ():
            if part != "*" and not hasattr(imported, part):
                module(f"{name}.{part}")
        return imported if fromlist else module("tf_slim")
    if fromlist and f"{name}.{fromlist[0]}" in _MOVED:
        return types.SimpleNamespace(**{n: _Overlay(f"{name}.{n}") for n in fromlist})
    if name == "importlib":
        return _IMPORTLIB
    return builtins.__import__(name, globals, locals, fromlist, level)


_BUILTINS = {**vars(builtins), "__import__": import_slim}
