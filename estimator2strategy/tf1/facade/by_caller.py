"""Lets TensorFlow and Keras 2 answer by the code that asks: TF 1.15's finds what it expects.

Each function may be called again; what it switches on stays so. `engine/_tf_switches.py` has the
switches, `engine/callers.py` knows who asks.

A legacy program calls layers, feature columns and cells that newer releases call deprecated. Each
first call logs a notice of two or three lines. Here they work, and their replacements do not fit a
program of TensorFlow 1, so that one line stands for all notices.
"""

from __future__ import annotations

import functools
import logging
import os
import re
import sys
import types
import warnings
from collections.abc import Callable
from typing import Any

import tensorflow as tf
import wrapt

from estimator2strategy.engine import _tf_switches, behavior, callers, legacy_code, patches

VARIABLE = "E2S_DEPRECATIONS"

# Lines of `tensorflow/python/util/deprecation.py` begin with the place of a call; the cells of
# TensorFlow 1 log a notice of their own.
_LOGGED = re.compile(
    r"From %s: .* deprecated|`tf\.nn\.rnn_cell\.\w+` is deprecated|Please fix your imports\. Module"
)
# Warnings of tf-keras when it makes a layer or a cell of TensorFlow 1.
_WARNED = re.compile(
    r"`(tf\.layers|tf\.nn\.rnn_cell|[Ll]ayer)\..*` is deprecated and will be removed"
)


class _Notices(logging.Filter):
    """Holds back notices of deprecation; all other records pass.

    Args:
        is_legacy: Says of the code that calls what is deprecated now if its notices are held back.
    """

    def __init__(self, is_legacy: Callable[[], bool]):
        super().__init__()
        self._is_legacy = is_legacy

    def filter(self, record: logging.LogRecord) -> bool:
        if not (isinstance(record.msg, str) and _LOGGED.match(record.msg)) or not self._is_legacy():
            return True
        _say_so()
        return False


@functools.cache
def install() -> None:
    """Holds back notices of deprecation in this process, unless E2S_DEPRECATIONS is set."""
    if _are_wanted():
        return
    patches.noted("notices of deprecation")
    logging.getLogger("tensorflow").addFilter(_Notices(lambda: True))
    shown = warnings.showwarning

    def show(message: Any, category: Any, *place: Any, **options: Any) -> None:
        if _WARNED.match(str(message)):
            _say_so()
        else:
            shown(message, category, *place, **options)

    patches.put("notices of deprecation", warnings, "showwarning", show)


@functools.cache
def install_for(is_legacy: Callable[[], bool]) -> None:
    """As `install`, for logged notices about the code that `is_legacy` answers for alone."""
    if not _are_wanted():
        patches.noted("notices of deprecation")
        logging.getLogger("tensorflow").addFilter(_Notices(is_legacy))


def _are_wanted() -> bool:
    return os.environ.get(VARIABLE, "0") not in ("", "0")


@functools.cache
def _say_so() -> None:
    sys.stderr.write(
        "e2s: TensorFlow's notices of deprecation are not shown: this program need not change. "
        f"To see them: {VARIABLE}=1\n"
    )


def tell_tensors_apart() -> None:
    """From now on TF 1.15's code gets its shapes and its equality of tensors."""
    _tf_switches.tensor_shapes_by(callers.asks_for_dimensions)
    _tf_switches.tensor_equality_by(callers.asks_for_identity)
    _sizes_may_be_floats()
    _parallel_calls_may_be_int32()
    # Averages of tensors, which are no variables, are variables of their own.
    _build_as_their_maker(tf.compat.v1.train.ExponentialMovingAverage, "apply")


def hold_notices_back() -> None:
    """From now on TensorFlow does not tell TF 1.15's code that what it calls is deprecated."""
    install_for(callers.asks_for_notices)


@functools.cache
def tell_keras_apart() -> None:
    """The same for Keras 2, from when it is imported, be it by code of TF 2 alone."""
    wrapt.register_post_import_hook(lambda _: _keras_is_there(), "tf_keras")


@functools.cache
def _keras_is_there() -> None:
    _tf_switches.keras_moments_may_lack_a_mask()
    _layers_can_be_applied()
    _tf_switches.keras_loops_keep_all_outputs()
    _tf_switches.keras_dtypes_by(callers.asks_for_keras)
    _tf_switches.keras_saves_as_hdf5_by(callers.asks_for_keras)
    _tf_switches.keras_initializers_by_graph(behavior.is_of_tf2)
    _tf_switches.keras_metric_names_by(callers.asks_for_keras)
    _tf_switches.keras_layer_names_by(callers.asks_for_keras)
    # Layers and cells of TF 1 may be called by other code than that which made them.
    _tf_switches.layers_of_tf1_build_as(_maker_of, behavior.entered)


def _build_as_their_maker(cls: type, methods: str) -> None:
    _tf_switches.calls_build_as(cls, methods.split(), _maker_of, behavior.entered)


def _maker_of(made: object) -> behavior.Behavior | None:
    """The behaviour of the code that makes an object now, or that has defined its class."""
    is_tf115s = behavior.is_entered() or callers.asks_for_keras() or _is_tf115s(type(made))
    return behavior.TF115 if is_tf115s else None


def _is_tf115s(cls: type) -> bool:
    """True if TF 1.15's code has defined `cls`, or a class that it derives from."""
    own = (base for base in cls.__mro__ if not base.__module__.startswith(_LIBRARIES))
    methods = (
        next((m for m in vars(base).values() if isinstance(m, types.FunctionType)), None)
        for base in own
    )
    return any(map(legacy_code.is_of_tf115, filter(None, methods)))


_LIBRARIES = ("builtins", "tensorflow.", "tf_keras.")


@functools.cache
def _sizes_may_be_floats() -> None:
    """Shapes of TF 1.15 took what `int` takes: `units / 2` of Python 3, and digits of a file."""
    cls = tf.compat.v1.Dimension
    before = cls.__init__

    @functools.wraps(before)
    def init(self: Any, value: Any) -> None:
        try:
            before(self, value)
        except TypeError:
            if not callers.asks_for_sizes():
                raise
            size = int(value)
            if size != value and not isinstance(value, str | bytes):
                raise ValueError(f"Ambiguous dimension: {value}") from None
            before(self, size)

    patches.put("sizes", cls, "__init__", init)


@functools.cache
def _parallel_calls_may_be_int32() -> None:
    """`Dataset.map` of TF 1.15 took int32 tensors for `num_parallel_calls`, where now int64 is due.

    TF 2's code may give them, too: without this it gets an error.
    """
    cls = tf.compat.v1.data.Dataset
    before = cls.map

    @functools.wraps(before)
    def map_(
        self: Any, map_func: Any, num_parallel_calls: Any = None, *args: Any, **kwargs: Any
    ) -> Any:
        if tf.is_tensor(num_parallel_calls) and num_parallel_calls.dtype == tf.int32:
            num_parallel_calls = tf.cast(num_parallel_calls, tf.int64)
        return before(self, map_func, num_parallel_calls, *args, **kwargs)

    patches.put("parallel calls", cls, "map", map_)


def _layers_can_be_applied() -> None:
    """`layer.apply(inputs)` of TF 1.15, which is `layer(inputs)`: Keras 2 dropped it later."""
    import tf_keras

    def apply(layer: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        return layer(inputs, *args, **kwargs)

    if not hasattr(tf_keras.layers.Layer, "apply"):
        patches.put("keras apply", tf_keras.layers.Layer, "apply", apply)
