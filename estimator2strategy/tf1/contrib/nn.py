"""`tf.contrib.nn` of TF 1.15: a softplus, and derivatives along a direction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.tf1.contrib import names_of

_v1 = tf.compat.v1

__getattr__ = names_of("nn")


def fwd_gradients(
    ys: Sequence[tf.Tensor],
    xs: Sequence[tf.Tensor],
    grad_xs: Sequence[Any] | None = None,
    assert_unused: bool = False,
) -> list[Any]:
    """The derivatives of `ys` as `xs` move along `grad_xs`, each of the shape of its y.

    The gradient is linear in what it is multiplied by. Its own gradient is the derivative sought.

    Args:
        ys: Tensors.
        xs: What they depend on.
        grad_xs: The direction, one for each x; ones by default.
        assert_unused: True: a step fails if it computes the gradients in between.

    Source: `tf.contrib.nn.python.ops.fwd_gradients`, TF 1.15.
    """
    us = [tf.zeros_like(y) + float("nan") for y in ys]
    gradients = [
        tf.zeros_like(x) if g is None else tf.convert_to_tensor(g)
        for x, g in zip(xs, _v1.gradients(ys, xs, grad_ys=us), strict=True)
    ]
    if assert_unused:
        failing = _v1.Assert(False, [1], name="fwd_gradients")
        with tf.control_dependencies([failing]):
            gradients = list(tf.identity_n(gradients))
    for x, gradient in zip(xs, gradients, strict=True):
        gradient.set_shape(x.shape)
    return _v1.gradients(gradients, us, grad_ys=grad_xs)


def scaled_softplus(x: Any, alpha: Any, clip: Any = None, name: str | None = None) -> tf.Tensor:
    """`alpha ln(1 + exp(x / alpha))`: a softplus that is a relu as `alpha` tends to 0.

    Args:
        x: Of a floating point type.
        alpha: Its smoothness, above 0.
        clip: The largest result; None: there is none.
        name: Of the name scope.
    """
    with _v1.name_scope(name, "scaled_softplus"):
        x = tf.convert_to_tensor(x, name="x")
        alpha = tf.convert_to_tensor(alpha, x.dtype, name="alpha")
        y = alpha * tf.nn.softplus(x / alpha)
        return y if clip is None else tf.minimum(y, tf.convert_to_tensor(clip, x.dtype))
