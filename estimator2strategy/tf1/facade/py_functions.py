"""`tf.py_func` and `tf.numpy_function`, with the arrays that TF 1.15 made of lists."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1


def py_func(
    func: Callable[..., Any],
    inp: Any,
    Tout: Any,  # noqa: N803
    stateful: bool = True,
    name: Any = None,
) -> Any:
    """See `tf.compat.v1.py_func`."""
    return tf1.py_func(_lists_as_before(func, Tout), inp, Tout, stateful, name)


def numpy_function(
    func: Callable[..., Any],
    inp: Any,
    Tout: Any,  # noqa: N803
    name: Any = None,
) -> Any:
    """See `tf.compat.v1.numpy_function`."""
    return tf1.numpy_function(_lists_as_before(func, Tout), inp, Tout, name=name)


def _lists_as_before(func: Callable[..., Any], types: Any) -> Callable[..., Any]:
    """`func` with lists of `float_list.value` as float64, which they were up to protobuf 4.

    Newer ones say that they are float32, and the op refuses what is not of `Tout`.
    """
    expected = list(types) if isinstance(types, list | tuple) else [types]
    if tf.float64 not in map(tf.as_dtype, expected):
        return func

    @functools.wraps(func)
    @tf.autograph.experimental.do_not_convert
    def call(*args: Any) -> Any:
        result = func(*args)
        if not isinstance(result, list | tuple):
            return _as_before(result, expected[0])
        if len(result) != len(expected):
            return result  # the op says so
        return [_as_before(value, dtype) for value, dtype in zip(result, expected, strict=True)]

    return call


def _as_before(value: Any, dtype: Any) -> Any:
    if tf.as_dtype(dtype) != tf.float64 or isinstance(value, np.ndarray | np.generic):
        return value
    array = np.asarray(value, order="C")
    return array.astype(np.float64) if array.dtype == np.float32 else value
