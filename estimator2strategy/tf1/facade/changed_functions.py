"""Functions and classes of TF 1.15 that do something else in today's TensorFlow, as they were.

Transposed convolutions have all of `output_shape` as their static shape. TF 2 takes the number of
examples from the input, which may be unknown where `output_shape` has it.

Cross entropies refuse arguments by position. Their first argument was `logits` in TF 0.x, and is
`labels` in today's TensorFlow, which would train such a program on another loss, and say nothing.

`RegisterGradient` takes a program's gradient for an op that had none then: TensorFlow has
registered gradients for more ops since, and refuses a second one.
"""

from __future__ import annotations

import functools
import inspect
import numbers
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import tensorflow as tf
from absl import flags

from estimator2strategy.engine import _tf_private, behavior
from estimator2strategy.engine.wrong_argument import wrong_argument
from estimator2strategy.tf1.facade.modes import v2_behavior_enabled
from estimator2strategy.tf1.facade.stand_ins import class_of_tf115

# The versions that programs see: they choose between their legacy and their TF2 code by them.
VERSION = "1.15.5"
KERAS_VERSION = "2.2.4-tf"

_v1 = tf.compat.v1.Variable


@behavior.entering
def _made(*args: Any, **kwargs: Any) -> Any:
    return _v1(*args, **kwargs)


class _AnyVariable(type):
    """Today's `get_variable` makes variables that are no `tf.compat.v1.Variable`."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is Variable:
            return _made(*args, **kwargs)
        return super().__call__(*args, **kwargs)

    def __instancecheck__(cls, instance: object) -> bool:
        if cls is Variable:
            return isinstance(instance, (_v1, tf.Variable))
        return super().__instancecheck__(instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        if cls is Variable:
            return issubclass(subclass, (_v1, tf.Variable))
        return super().__subclasscheck__(subclass)

    def __getattr__(cls, name: str) -> Any:
        return getattr(_v1, name)


class Variable(metaclass=_AnyVariable):
    """See `tf.compat.v1.Variable`."""

    _of_tf115 = True
    __doc__ = _v1.__doc__


def variable(*args: Any, **kwargs: Any) -> Any:
    """`variable_scope.variable`: `tf.Variable`, with the creators and collections of the scope."""
    return _made(*args, **kwargs)


# The ops that had a gradient in TF 1.15.
OF_TF115 = frozenset(Path(__file__).with_name("gradients.txt").read_text().split())
_replaceable = set(_tf_private.gradient_names()) - OF_TF115


class RegisterGradient:
    """Decorates the function that computes the gradient of an op.

    Args:
        op_type: The op's name, or the name for `Graph.gradient_override_map`.

    Raises:
        TypeError: `op_type` is no string.
        KeyError: TF 1.15 had registered a gradient of that name, or the program has.
    """

    def __init__(self, op_type: str):
        self._register = tf.RegisterGradient(op_type)
        self._op_type = op_type

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if self._op_type in _replaceable:
            _replaceable.remove(self._op_type)
            _tf_private.forget_gradient(self._op_type)
        return cast(Callable[..., Any], self._register(function))


class RegisterShape:
    """Decorates a shape function of an op; ops bring their own, as in TF 1.15."""

    def __init__(self, op_type: str):
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function


nn = tf.compat.v1.nn


def _with_output_shape(
    convolution: Callable[..., tf.Tensor], argument: str = "output_shape"
) -> Callable[..., tf.Tensor]:
    signature = inspect.signature(convolution)

    @functools.wraps(convolution)
    def call(*args: Any, **kwargs: Any) -> Any:
        output = convolution(*args, **kwargs)
        shape = _known(signature.bind(*args, **kwargs).arguments[argument])
        if not tf.executing_eagerly() and output.shape.is_compatible_with(shape):
            output.set_shape(shape)
        return output

    call.__signature__ = signature  # type: ignore[attr-defined]  # for getfullargspec
    return call


def _known(shape: Any) -> Any:
    """The shape that a tensor, or a list of integers and tensors, is known to hold; None if not."""
    if tf.is_tensor(shape):
        return tf.get_static_value(shape)
    sizes = [tf.get_static_value(size) if tf.is_tensor(size) else size for size in shape]
    return None if None in sizes else sizes


atrous_conv2d_transpose = _with_output_shape(nn.atrous_conv2d_transpose)
conv1d_transpose = _with_output_shape(nn.conv1d_transpose)
conv2d_backprop_input = _with_output_shape(nn.conv2d_backprop_input, "input_sizes")
conv2d_transpose = _with_output_shape(nn.conv2d_transpose)
conv_transpose = _with_output_shape(nn.conv_transpose)


def _by_name(cross_entropy: Callable[..., tf.Tensor]) -> Callable[..., tf.Tensor]:
    name = cross_entropy.__name__

    @functools.wraps(cross_entropy)
    def call(*args: Any, **kwargs: Any) -> tf.Tensor:
        if args and args[0] is not None:
            raise wrong_argument(
                f"Only call `{name}` with named arguments (labels=..., logits=..., ...)",
                args[0],
                "Name both. A program of TF 0.x gave the logits first.",
                ValueError,
            )
        return cross_entropy(*args[1:], **kwargs)

    # For `inspect.getfullargspec`.
    call.__signature__ = inspect.signature(cross_entropy)  # type: ignore[attr-defined]
    return call


sigmoid_cross_entropy_with_logits = _by_name(nn.sigmoid_cross_entropy_with_logits)
softmax_cross_entropy_with_logits = _by_name(nn.softmax_cross_entropy_with_logits)
sparse_softmax_cross_entropy_with_logits = _by_name(nn.sparse_softmax_cross_entropy_with_logits)

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


def moving_average_update(x: Any, value: Any, momentum: Any) -> Any:
    """Moves the variable `x` towards `value`, without a bias towards its first value.

    Source: `tf.keras.backend.moving_average_update`, TF 1.15; compared with it. tf-keras asks the
    process whether it is TF 2, where the average has a bias, and no variables of its own
    (`x/biased`, `x/local_step`), which checkpoints of TF 1.15 have.
    """
    return tf.__internal__.train.assign_moving_average(
        x, value, momentum, zero_debias=not v2_behavior_enabled()
    )


_Ftrl = tf.compat.v1.train.FtrlOptimizer


def _ftrl(learning_rate: Any, *args: Any, **kwargs: Any) -> tf.compat.v1.train.Optimizer:
    """Makes TensorFlow's own, also with a whole number for its learning rate.

    TensorFlow 2 compares the rate with a small fraction, which an integer tensor refuses.
    """
    if isinstance(learning_rate, numbers.Integral):
        learning_rate = float(learning_rate)
    return _Ftrl(learning_rate, *args, **kwargs)


FtrlOptimizer = class_of_tf115(_Ftrl, _ftrl)


def remove_training_nodes(input_graph: Any, protected_nodes: Any = None) -> Any:
    """Leaves out the nodes of a frozen graph that only training needs, as TF 1.15 did.

    TensorFlow's own function returns the nodes alone. That was the whole graph in TF 1.15, which
    wrote loops and conds as nodes. Today's are functions, so the graph needs its library as well.
    """
    smaller = tf.compat.v1.graph_util.remove_training_nodes(input_graph, protected_nodes)
    smaller.library.CopyFrom(input_graph.library)
    return smaller


class Flags(type(tf1.flags.FLAGS)):  # type: ignore[misc]
    """TensorFlow's own FLAGS: absl's, which parse the command line at the first use of a flag."""

    def __getattr__(self, name: str) -> Any:
        return _parse_flags if name == "_parse_flags" else super().__getattr__(name)


def _parse_flags(args: Sequence[str] | None = None) -> list[str]:
    """Parses flags, of the command line if `args` is None; returns the arguments that are none.

    Source: `_FlagValues._parse_flags`, TF 1.4 platform/flags.py.
    """
    given = sys.argv[1:] if args is None else args
    return flags.FLAGS([sys.argv[0], *given], known_only=True)[1:]


FLAGS = Flags(flags.FLAGS)
