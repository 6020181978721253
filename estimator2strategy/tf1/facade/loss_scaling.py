"""`tf.keras.mixed_precision.experimental` of TF 1.15: a loss scale as an argument.

tf-keras keeps the scale in its optimizer, by the same names in checkpoints. It always scales the
loss of a model whose policy is "mixed_float16". What it cannot do is refused where it is asked for.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras

from estimator2strategy.engine.wrong_argument import wrong_argument
from estimator2strategy.errors import UnsupportedError

_scales = tf.compat.v1.mixed_precision
_DEFAULT = "USE_DEFAULT"
_FLOAT16 = "mixed_float16"


def LossScaleOptimizer(opt: tf_keras.optimizers.Optimizer, loss_scale: Any) -> Any:  # noqa: N802
    """An optimizer that scales the loss, and takes the scale out of the gradients again.

    Source: `tf.keras.mixed_precision.experimental.LossScaleOptimizer`, TF 1.15; compared with it.

    Args:
        opt: The optimizer that applies the gradients.
        loss_scale: A number, "dynamic", or a `tf.train.experimental.FixedLossScale`.

    Returns:
        tf-keras's optimizer, whose `loss_scale` is a tensor, and no function.

    Raises:
        UnsupportedError: It is a `DynamicLossScale`, which has made its variables already.
        ValueError: It is no scale, or a number below 1.
    """
    if isinstance(loss_scale, _scales.DynamicLossScale):
        raise wrong_argument(
            "loss_scale of LossScaleOptimizer may not be a DynamicLossScale: its variables exist "
            "already, and tf-keras's optimizer makes its own",
            loss_scale,
            'Pass "dynamic" for DynamicLossScale(). For others use '
            "tf.keras.mixed_precision.LossScaleOptimizer(optimizer, initial_scale=..., "
            "dynamic_growth_steps=...); its multiplier is 2.",
            UnsupportedError,
        )
    if loss_scale == "dynamic":
        return tf_keras.mixed_precision.LossScaleOptimizer(opt)
    scale = _fixed(loss_scale)
    if scale is None:
        raise wrong_argument(
            "loss_scale of LossScaleOptimizer must be a scale",
            loss_scale,
            'Pass a number, "dynamic" or a FixedLossScale.',
        )
    return tf_keras.mixed_precision.LossScaleOptimizer(opt, dynamic=False, initial_scale=scale)


class Policy(tf_keras.mixed_precision.Policy):
    """The dtypes in which Keras layers compute and keep their variables.

    Source: `tf.keras.mixed_precision.experimental.Policy`, TF 1.15. Layers took no notice of the
    loss scale; a Model did when it was compiled.

    Raises:
        UnsupportedError: `loss_scale` is not what a Model of tf-keras does under this policy.
    """

    def __init__(self, name: str, loss_scale: Any = _DEFAULT):
        same = (_DEFAULT, "dynamic") if name == _FLOAT16 else (_DEFAULT, None)
        if not any(loss_scale is value or loss_scale == value for value in same):
            raise wrong_argument(
                f'loss_scale of Policy("{name}") must be left out: tf-keras scales the loss of a '
                'Model under "mixed_float16", and under no other policy',
                loss_scale,
                "Leave it out: layers take no notice of it. For a Model, give compile a "
                "tf.keras.mixed_precision.experimental.LossScaleOptimizer(optimizer, loss_scale); "
                "a scale of 1 is none.",
                UnsupportedError,
            )
        super().__init__(name)


def _fixed(loss_scale: Any) -> float | None:
    """A scale that does not change, as a number; None if it is no such scale."""
    if isinstance(loss_scale, (int, float)):
        loss_scale = _scales.FixedLossScale(loss_scale)
    if not isinstance(loss_scale, _scales.FixedLossScale):
        return None
    return float(loss_scale.get_config()["loss_scale_value"])
