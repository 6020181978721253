"""`tf.layers` of TF 1.15, from tf-keras, without its advice to use something else."""

from __future__ import annotations

import functools
import inspect
import warnings
from typing import Any

from tf_keras.api._v1.keras.__internal__.legacy import layers as _layers

from estimator2strategy.engine import behavior, patches


def _quiet(value: Any) -> Any:
    if not inspect.isfunction(value):
        return value

    @functools.wraps(value)
    def call(*args: Any, **kwargs: Any) -> Any:
        with behavior.entered(behavior.TF115), warnings.catch_warnings():
            # Told to use tf.keras.layers, at every call: that is for the migration guide to say.
            patches.noted("warnings of tf.layers")
            warnings.filterwarnings("ignore", "`tf.layers.", UserWarning)
            return value(*args, **kwargs)

    return call


__path__: list[str] = []  # what is below it is found; see `facade/deep_imports.py`
__all__ = [name for name in dir(_layers) if not name.startswith("_")]
globals().update({name: _quiet(getattr(_layers, name)) for name in __all__})
