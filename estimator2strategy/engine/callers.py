"""The code that asks, where an object's meaning depends on it and Python gives only its frame.

A dimension of a `TensorShape`, and `==` on tensors, have operators of one class for all code.
Keras 2 has one class of layers and models for all code, which look at switches when one is made or
compiled, and this package has one class of each canned Estimator and exporter. A new thread does
not know who has started it. All else is decided by the graph or by the facade's own functions: see
`engine/behavior.py`.

Each function looks at the frames above it until it finds one that is not of the library which
asks, however many there are. Code asks as TF 1.15's if it is a legacy module (of `e2s run`, of
`legacy.import_module`), or if its module holds the facade or names of it, under any name, and does
not hold today's `tensorflow` as well.
"""

from __future__ import annotations

import sys
import weakref
from types import CodeType, FrameType
from typing import Any

import tensorflow as tf

from estimator2strategy.engine import _tf_switches, legacy_code

_OURS = (__name__, _tf_switches.__name__)
# Decorators of functions, by which TensorFlow and this package call their own.
_BETWEEN = ("contextlib", "functools")
# By identity, for dimensions are read often.
_SHAPES = frozenset(
    id(vars(sys.modules[name])) for name in (*_OURS, "tensorflow.python.framework.tensor_shape")
)


def asks_for_dimensions() -> bool:
    """True if TF 1.15's code asks a TensorShape: TensorFlow's and Keras's own gets ints."""
    frame: FrameType | None = sys._getframe(1)
    while frame and id(frame.f_globals) in _SHAPES:
        frame = frame.f_back
    return _is_tf115s(frame)


def asks_for_sizes() -> bool:
    """True if TF 1.15's code makes a shape, be it through functions of TensorFlow or a library."""
    return _is_tf115s(_outside("tensorflow.", "tf_keras.", "tf_slim.", "estimator2strategy."))


def asks_for_identity() -> bool:
    """True if TF 1.15's code compares or hashes a tensor, be it through TensorFlow's functions."""
    return _is_tf115s(_outside("tensorflow."))


def asks_for_keras() -> bool:
    """True if TF 1.15's code makes or compiles what Keras 2, or an object of TensorFlow, asks."""
    return _is_tf115s(_outside("tf_keras.", "tensorflow.", "estimator2strategy."))


def asks_for_notices() -> bool:
    """True if TF 1.15's code calls what TensorFlow now logs a notice about."""
    libraries = ("tf_keras.", "tensorflow.", "tf_slim.", "logging", "absl.", "estimator2strategy.")
    return _is_tf115s(_outside(*libraries))


def makes_estimator() -> bool:
    """True if TF 1.15's code makes an Estimator, or an exporter: its module holds the facade."""
    frame = _outside("estimator2strategy.")
    if frame is None:
        return False
    mark = frame.f_builtins.get(legacy_code.MARK)
    if mark is not None:
        return bool(mark == legacy_code.TF115)
    return legacy_code.holds_facade(frame.f_globals) or legacy_code.imports_facade(frame.f_code)


def runs_in_thread() -> bool:
    """True if TF 1.15's code, or a thread of a Coordinator, is what the current thread runs."""
    looper = tf.compat.v1.train.LooperThread.run.__code__
    frame: FrameType | None = sys._getframe(1)
    while frame:
        if frame.f_code is looper or _is_marked(frame):
            return True
        frame = frame.f_back
    return False


def _outside(*modules: str) -> FrameType | None:
    """The innermost frame whose module's name starts with none of `modules`, nor is ours."""
    frame: FrameType | None = sys._getframe(1)
    skipped = (*modules, *_OURS, *_BETWEEN)
    while frame and frame.f_globals.get("__name__", "").startswith(skipped):
        frame = frame.f_back
    return frame


def _is_marked(frame: FrameType) -> bool:
    return frame.f_builtins.get(legacy_code.MARK) == legacy_code.TF115


def _is_tf115s(frame: FrameType | None) -> bool:
    if frame is None:
        return False
    mark = frame.f_builtins.get(legacy_code.MARK)
    if mark is not None:
        return bool(mark == legacy_code.TF115)
    code, names = frame.f_code, frame.f_globals
    kept = _known.get(id(code))
    if kept is None or kept[0]() is not code or kept[1:3] != (id(names), len(names)):
        kept = weakref.ref(code), id(names), len(names), _is_tf115s_module(code, names)
        _known[id(code)] = kept
    return kept[3]


# The identity of a function's code -> the code while it lives (its own hash is of all that is in
# it), its module's globals, how many they were, and the answer then.
_known: dict[int, tuple[weakref.ref[CodeType], int, int, bool]] = {}


def _is_tf115s_module(code: CodeType, names: dict[str, Any]) -> bool:
    modern = any(value is tf for value in tuple(names.values()))
    return (not modern and legacy_code.holds_facade(names)) or legacy_code.imports_facade(code)
