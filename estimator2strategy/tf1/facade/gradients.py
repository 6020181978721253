"""`tf.RegisterGradient` of TF 1.15: a program's gradient for an op that had none then.

TensorFlow has registered gradients for more ops since, and refuses a second one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import tensorflow as tf

from estimator2strategy.engine import _tf_private

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
