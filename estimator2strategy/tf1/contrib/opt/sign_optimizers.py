"""Optimizers of `tf.contrib.opt` of TF 1.15 that look at signs (arXiv:1709.07417).

The functions make factors that fall as training goes on, for `sign_decay_fn`: each returns a
function of the global step, which returns a float32 scalar.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from estimator2strategy.tf1.contrib.opt.optimizers_of_1_15 import kernel_update

_v1 = tf.compat.v1


def get_linear_decay_fn(decay_steps: int) -> Callable[[Any], tf.Tensor]:
    """From 1 down to 0 at `decay_steps`."""

    def linear_decay_fn(global_step: Any) -> tf.Tensor:
        return 1.0 - _done(global_step, decay_steps, "linear_decay") / decay_steps

    return linear_decay_fn


def get_cosine_decay_fn(
    decay_steps: int, num_periods: float = 0.5, zero_after: float | None = None
) -> Callable[[Any], tf.Tensor]:
    """`0.5 (1 + cos(2 pi num_periods step / decay_steps))`; 0 after `zero_after` periods."""

    def cosine_decay_fn(global_step: Any) -> tf.Tensor:
        periods = num_periods * (_done(global_step, decay_steps, "cosine_decay") / decay_steps)
        decayed = 0.5 * (1.0 + tf.cos(2.0 * math.pi * periods))
        return decayed if zero_after is None else tf.where(periods >= zero_after, 0.0, decayed)

    return cosine_decay_fn


def get_restart_decay_fn(
    decay_steps: int, num_periods: float = 1, zero_after: float | None = None
) -> Callable[[Any], tf.Tensor]:
    """`num_periods` falls from 1 to 0, each half a cosine; 0 after `zero_after` of them."""

    def restart_decay_fn(global_step: Any) -> tf.Tensor:
        steps = num_periods * _done(global_step, decay_steps, "cosine_decay")
        # The remainder of the steps: that of a quotient may be of the period before.
        fraction = tf.math.floormod(steps, decay_steps) / decay_steps
        decayed = 0.5 * (1.0 + tf.cos(math.pi * fraction))
        if zero_after is None:
            return decayed
        return tf.where(steps / decay_steps >= zero_after, 0.0, decayed)

    return restart_decay_fn


def _done(global_step: Any, decay_steps: int, name: str) -> tf.Tensor:
    """The steps that are done, at most all."""
    if global_step is None:
        raise ValueError(f"global_step is required for {name}.")
    return tf.cast(tf.minimum(global_step, decay_steps), tf.float32)


class _SignOptimizer(_v1.train.Optimizer):
    """Gradient descent with steps that depend on a sign: that of gradient times momentum."""

    _kernel = ""
    _number = ""  # the name of `_factor` as an argument of the kernel

    def __init__(
        self,
        learning_rate: Any,
        factor: Any,
        beta: float,
        sign_decay_fn: Callable[[Any], Any] | None,
        use_locking: bool,
        name: str,
    ):
        super().__init__(use_locking, name)
        self._given = {"lr": learning_rate, "beta": beta, self._number: factor}
        self._sign_decay_fn = sign_decay_fn
        self._tensors: dict[str, tf.Tensor] = {}

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> Any:
        """`Optimizer.apply_gradients`; `sign_decay_fn` gets the global step."""
        if self._sign_decay_fn is not None:
            self._given["sign_decay"] = self._sign_decay_fn(global_step)
        return super().apply_gradients(grads_and_vars, global_step, name)

    def _create_slots(self, var_list: Any) -> None:
        for variable in var_list:
            self._zeros_slot(variable, "m", self._name)

    def _prepare(self) -> None:
        given = {"sign_decay": 1.0, **self._given}
        self._tensors = {key: tf.convert_to_tensor(v, name=key) for key, v in given.items()}

    def _numbers(self, dtype: Any) -> dict[str, tf.Tensor]:
        return {key: tf.cast(value, dtype) for key, value in self._tensors.items()}

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        numbers = self._numbers(var.dtype.base_dtype)
        slots = {"m": self.get_slot(var, "m")}
        return kernel_update(
            self._kernel, var, slots, grad=grad, use_locking=self._use_locking, **numbers
        )

    _resource_apply_dense = _apply_dense

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._resource_apply_sparse(grad.values, var, grad.indices)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        n = self._numbers(var.dtype.base_dtype)
        m = self.get_slot(var, "m")
        with tf.control_dependencies([_v1.assign(m, n["beta"] * m)]):
            moved = _v1.scatter_add(m, indices, (1 - n["beta"]) * grad)
        with tf.control_dependencies([moved]):
            same = n["sign_decay"] * tf.sign(tf.gather(m, indices)) * tf.sign(grad)
        return _v1.scatter_sub(var, indices, n["lr"] * self._scale(same, n) * grad)

    def _scale(self, same: tf.Tensor, n: dict[str, tf.Tensor]) -> tf.Tensor:
        """The factor of a gradient; `same` is 1 where it has the sign of the momentum, else -1."""
        raise NotImplementedError


class AddSignOptimizer(_SignOptimizer):
    """Steps of `learning_rate * (alpha + sign_decay * sign) * gradient`.

    Args:
        learning_rate: A number, or a scalar tensor.
        alpha: The part that does not depend on the sign.
        beta: Decay of the momentum.
        sign_decay_fn: Makes a factor for the sign of the global step; 1 by default.
        use_locking: Passed on to the kernel.
        name: Of ops and slots.
    """

    _kernel, _number = "ApplyAddSign", "alpha"

    def __init__(
        self,
        learning_rate: Any = 0.1,
        alpha: float = 1.0,
        beta: float = 0.9,
        sign_decay_fn: Callable[[Any], Any] | None = None,
        use_locking: bool = False,
        name: str = "AddSignOptimizer",
    ):
        super().__init__(learning_rate, alpha, beta, sign_decay_fn, use_locking, name)

    def _scale(self, same: tf.Tensor, n: dict[str, tf.Tensor]) -> tf.Tensor:
        return n["alpha"] + same


class PowerSignOptimizer(_SignOptimizer):
    """Steps of `learning_rate * base ** (sign_decay * sign) * gradient`.

    Args: see `AddSignOptimizer`; `base` is above 0.
    """

    _kernel, _number = "ApplyPowerSign", "logbase"

    def __init__(
        self,
        learning_rate: Any = 0.1,
        base: float = math.e,
        beta: float = 0.9,
        sign_decay_fn: Callable[[Any], Any] | None = None,
        use_locking: bool = False,
        name: str = "PowerSignOptimizer",
    ):
        super().__init__(learning_rate, math.log(base), beta, sign_decay_fn, use_locking, name)

    def _scale(self, same: tf.Tensor, n: dict[str, tf.Tensor]) -> tf.Tensor:
        return tf.exp(n["logbase"] * same)
