"""`tf.contrib.nn` of TF 1.15: a softplus, a dropout, and derivatives along a direction."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, cast

import tensorflow as tf

from estimator2strategy.tf1.contrib import names_of

_v1 = tf.compat.v1

__getattr__ = names_of("nn", globals())


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
    return cast(list[Any], _v1.gradients(gradients, us, grad_ys=grad_xs))


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


_LEAST_SELU = -1.7580993408473766


def alpha_dropout(
    x: Any,
    keep_prob: Any,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
) -> tf.Tensor:
    """Dropout after a SELU (arXiv:1706.02515): mean and variance stay as they are.

    Args:
        x: Of a floating point type.
        keep_prob: The probability that an element is kept.
        noise_shape: Shape of what is drawn, by default that of `x`.
        seed: Of the random op.
        name: Of the name scope.

    Raises:
        ValueError: `keep_prob` is not in (0, 1].
    """
    with _v1.name_scope(name, "alpha_dropout", [x]):
        x = tf.convert_to_tensor(x, name="x")
        if isinstance(keep_prob, numbers.Real) and not 0 < float(keep_prob) <= 1:
            raise ValueError(
                f"keep_prob must be a scalar tensor or a float in the range (0, 1], got {keep_prob}"
            )
        keep = tf.convert_to_tensor(keep_prob, x.dtype, name="keep_prob")
        if tf.get_static_value(keep) == 1:
            return x
        shape = tf.shape(x) if noise_shape is None else noise_shape
        drawn = tf.random.uniform(shape, dtype=x.dtype, seed=seed)
        kept = tf.cast(drawn >= 1 - keep, x.dtype)
        dropped = x * kept + _LEAST_SELU * (1 - kept)
        scale = (keep + keep * (1 - keep) * _LEAST_SELU**2) ** -0.5
        return scale * dropped - scale * _LEAST_SELU * (1 - keep)
