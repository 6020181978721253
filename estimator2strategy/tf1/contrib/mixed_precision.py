"""`tf.contrib.mixed_precision` of TF 1.15: loss scaling, to keep small float16 gradients."""

from __future__ import annotations

import abc
from typing import Any

import tensorflow as tf

from estimator2strategy.tf1.contrib import names_of

_v1 = tf.compat.v1

__getattr__ = names_of("mixed_precision", globals())


class LossScaleManager(abc.ABC):
    """Decides by what the loss is multiplied, and its gradients divided."""

    @abc.abstractmethod
    def get_loss_scale(self) -> Any:
        """The scale, a float32 scalar."""

    @abc.abstractmethod
    def update_loss_scale(self, finite_grads: tf.Tensor) -> Any:
        """An op that changes the scale, given whether all gradients are finite (bool scalar)."""


class FixedLossScaleManager(LossScaleManager):
    """Always the same scale.

    Raises:
        ValueError: It is below 1.
    """

    def __init__(self, loss_scale: float):
        if loss_scale < 1:
            raise ValueError("loss scale must be at least 1.")
        self._loss_scale = tf.convert_to_tensor(loss_scale, tf.float32)

    def get_loss_scale(self) -> tf.Tensor:
        return self._loss_scale

    def update_loss_scale(self, finite_grads: tf.Tensor) -> tf.Operation:
        return tf.no_op()


class ExponentialUpdateLossScaleManager(LossScaleManager):
    """Grows after good steps, shrinks after bad ones.

    Args:
        init_loss_scale: The first scale.
        incr_every_n_steps: After so many good steps in a row it is multiplied by `incr_ratio`,
            unless that is no finite float32.
        decr_every_n_nan_or_inf: After so many bad steps, in a row or not, by `decr_ratio`; it is
            never below 1.
        incr_ratio: Above 1.
        decr_ratio: Below 1.
    """

    def __init__(
        self,
        init_loss_scale: float,
        incr_every_n_steps: int,
        decr_every_n_nan_or_inf: int = 2,
        incr_ratio: float = 2,
        decr_ratio: float = 0.8,
    ):
        self._incr_every_n_steps = incr_every_n_steps
        self._decr_every_n_nan_or_inf = decr_every_n_nan_or_inf
        self._incr_ratio = incr_ratio
        self._decr_ratio = decr_ratio
        self._loss_scale = _v1.Variable(
            tf.convert_to_tensor(init_loss_scale, tf.float32), trainable=False, name="loss_scale"
        )
        self._num_good_steps = _v1.Variable(0, trainable=False, name="good_steps")
        self._num_bad_steps = _v1.Variable(0, trainable=False, name="bad_steps")

    def get_loss_scale(self) -> Any:
        return self._loss_scale

    def update_loss_scale(self, finite_grads: tf.Tensor) -> tf.Operation:
        good = tf.where(finite_grads, self._num_good_steps + 1, 0)
        bad = tf.where(finite_grads, self._num_bad_steps, self._num_bad_steps + 1)
        grows = finite_grads & (good >= self._incr_every_n_steps)
        shrinks = ~finite_grads & (bad >= self._decr_every_n_nan_or_inf)
        scale = tf.convert_to_tensor(self._loss_scale)
        grown, shrunk = scale * self._incr_ratio, tf.maximum(1.0, scale * self._decr_ratio)
        after = tf.where(grows & tf.math.is_finite(grown), grown, scale)
        changes = grows | shrinks
        return tf.group(
            _v1.assign(self._loss_scale, tf.where(shrinks, shrunk, after)),
            _v1.assign(self._num_good_steps, tf.where(changes, 0, good)),
            _v1.assign(self._num_bad_steps, tf.where(changes, 0, bad)),
        )


class LossScaleOptimizer(_v1.train.Optimizer):
    """Computes gradients of the scaled loss; a step with one that is not finite changes nothing.

    Args:
        opt: The optimizer that trains.
        loss_scale_manager: A `LossScaleManager`.
    """

    def __init__(self, opt: Any, loss_scale_manager: LossScaleManager):
        self._opt = opt
        self._loss_scale_manager = loss_scale_manager

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """`Optimizer.compute_gradients`, of the loss as it is."""
        scale = tf.convert_to_tensor(self._loss_scale_manager.get_loss_scale())
        loss = loss() if callable(loss) else loss
        scaled = loss * tf.cast(scale, loss.dtype.base_dtype)
        pairs = self._opt.compute_gradients(scaled, *args, **kwargs)
        inverse = 1 / scale
        return [(g if g is None else g * tf.cast(inverse, g.dtype), var) for g, var in pairs]

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> tf.Operation:
        """`Optimizer.apply_gradients`, where all gradients are finite; also updates the scale."""
        grads_and_vars = list(grads_and_vars)
        finite = [tf.reduce_all(tf.math.is_finite(g)) for g, _ in grads_and_vars if g is not None]
        all_finite = tf.reduce_all(finite)
        update = _v1.cond(
            all_finite,
            lambda: self._opt.apply_gradients(grads_and_vars, global_step, name),
            tf.no_op,
        )
        return tf.group(update, self._loss_scale_manager.update_loss_scale(all_finite))
