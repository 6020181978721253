"""`tf.contrib.opt` of TF 1.15: optimizers with the interface of `tf.train.Optimizer`.

If TensorFlow has a kernel for an update, the kernel does it. Sparse gradients have unique indices,
because `tf.train.Optimizer` first sums the gradients of each row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf

_v1 = tf.compat.v1


class DecoupledWeightDecayExtension:
    """Put before an optimizer class: weights decay by themselves, not through the loss.

        class AdamW(DecoupledWeightDecayExtension, tf.train.AdamOptimizer): ...

    A variable loses `weight_decay` times its value before its gradient is applied. The learning
    rate has no part in it: a schedule has to be given to both. Of a sparsely updated variable only
    rows with a gradient decay. (Loshchilov & Hutter, arXiv:1711.05101.)

    Args:
        weight_decay: A number, a scalar tensor, or a function that returns one.
        **kwargs: For the optimizer.
    """

    def __init__(self, weight_decay: Any, **kwargs: Any):
        self._weight_decay = weight_decay
        self._weight_decay_tensor: Any = None
        self._decay_var_list: list[Any] = []
        super().__init__(**kwargs)

    def minimize(self, *args: Any, decay_var_list: Any = None, **kwargs: Any) -> Any:
        """`Optimizer.minimize`; all variables decay, as TF 1.15 lost `decay_var_list` here."""
        return super().minimize(*args, **kwargs)  # type: ignore[misc]

    def apply_gradients(self, *args: Any, decay_var_list: Any = None, **kwargs: Any) -> Any:
        """`Optimizer.apply_gradients`; of `decay_var_list`, if given, only those decay."""
        self._decay_var_list = list(decay_var_list or ())
        return super().apply_gradients(*args, **kwargs)  # type: ignore[misc]

    def _prepare(self) -> None:
        decay = self._weight_decay
        decay = decay() if callable(decay) else decay
        self._weight_decay_tensor = tf.convert_to_tensor(decay, name="weight_decay")
        super()._prepare()  # type: ignore[misc]

    def _decayed(self, var: Any, indices: Any = None) -> Any:
        """A context in which `var`, or its rows, have decayed."""
        if self._decay_var_list and not any(var is v for v in self._decay_var_list):
            return tf.control_dependencies([])
        factor = tf.cast(self._weight_decay_tensor, var.dtype.base_dtype)
        if indices is None:
            decay = _v1.assign_sub(var, factor * var)
        else:
            decay = _v1.scatter_sub(var, indices, factor * tf.gather(var, indices))
        return tf.control_dependencies([decay])

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        with self._decayed(var):
            return super()._apply_dense(grad, var)  # type: ignore[misc]

    def _resource_apply_dense(self, grad: Any, var: Any) -> Any:
        with self._decayed(var):
            return super()._resource_apply_dense(grad, var)  # type: ignore[misc]

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        with self._decayed(var, grad.indices):
            return super()._apply_sparse(grad, var)  # type: ignore[misc]

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        with self._decayed(var, indices):
            return super()._resource_apply_sparse(grad, var, indices)  # type: ignore[misc]


def extend_with_decoupled_weight_decay(base_optimizer: type) -> type:
    """The class `base_optimizer` with decoupled weight decay, its first argument."""

    class OptimizerWithDecoupledWeightDecay(DecoupledWeightDecayExtension, base_optimizer):
        pass

    return OptimizerWithDecoupledWeightDecay


class MomentumWOptimizer(DecoupledWeightDecayExtension, _v1.train.MomentumOptimizer):
    """SGDW: `tf.train.MomentumOptimizer` with decoupled weight decay."""

    def __init__(
        self,
        weight_decay: Any,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "MomentumW",
        use_nesterov: bool = False,
    ):
        super().__init__(
            weight_decay,
            learning_rate=learning_rate,
            momentum=momentum,
            use_locking=use_locking,
            name=name,
            use_nesterov=use_nesterov,
        )


class AdamWOptimizer(DecoupledWeightDecayExtension, _v1.train.AdamOptimizer):
    """`tf.train.AdamOptimizer` with decoupled weight decay."""

    def __init__(
        self,
        weight_decay: Any,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "AdamW",
    ):
        super().__init__(
            weight_decay,
            learning_rate=learning_rate,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            use_locking=use_locking,
            name=name,
        )


def kernel_update(name: str, var: Any, slots: dict[str, Any], **kwargs: Any) -> Any:
    """TensorFlow's own update of a variable: the kernel `name` of reference variables, or its twin
    of resource variables."""
    if hasattr(var, "handle"):
        memory = {key: variable.handle for key, variable in {"var": var, **slots}.items()}
        return getattr(tf.raw_ops, f"Resource{name}")(**memory, **kwargs)
    memory = {key: variable.op.outputs[0] for key, variable in {"var": var, **slots}.items()}
    return getattr(tf.raw_ops, name)(**memory, **kwargs)


class LARSOptimizer(_v1.train.Optimizer):
    """Layer-wise adaptive rate scaling (arXiv:1708.03888); sparse gradients get plain momentum.

    The rate of a layer is `learning_rate * eeta * |w| / (|g| + weight_decay * |w| + epsilon)`.

    Args:
        skip_list: Parts of names; variables that have one of them are neither scaled nor decayed.

    Raises:
        ValueError: `momentum` or `weight_decay` is negative.
    """

    def __init__(
        self,
        learning_rate: Any,
        momentum: Any = 0.9,
        weight_decay: float = 0.0001,
        eeta: float = 0.001,
        epsilon: float = 0.0,
        name: str = "LARSOptimizer",
        skip_list: Sequence[str] | None = None,
        use_nesterov: bool = False,
    ):
        if momentum < 0.0:
            raise ValueError(f"momentum should be positive: {momentum}")
        if weight_decay < 0.0:
            raise ValueError(f"weight_decay should be positive: {weight_decay}")
        super().__init__(use_locking=False, name=name)
        self._learning_rate = learning_rate
        self._momentum = momentum
        self._weight_decay = weight_decay
        self._eeta = eeta
        self._epsilon = epsilon
        self._skip_list = skip_list
        self._use_nesterov = use_nesterov

    def _prepare(self) -> None:
        rate, momentum = self._learning_rate, self._momentum
        rate = rate() if callable(rate) else rate
        self._learning_rate_tensor = tf.convert_to_tensor(rate, name="learning_rate")
        momentum = momentum() if callable(momentum) else momentum
        self._momentum_tensor = tf.convert_to_tensor(momentum, name="momentum")

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        for var in var_list:
            self._zeros_slot(var, "momentum", self._name)

    def compute_lr(self, grad: Any, var: Any) -> tuple[Any, Any]:
        """The rate for `var`, and its gradient with the decay added."""
        rate = self._learning_rate() if callable(self._learning_rate) else self._learning_rate
        if any(part in var.name for part in self._skip_list or ()):
            return rate, grad
        weights, gradient = tf.norm(var), tf.norm(grad)
        # A layer that is all zeros, or gets no gradient, is not scaled.
        ratio = tf.where(
            (weights > 0) & (gradient > 0),
            self._eeta * weights / (gradient + self._weight_decay * weights + self._epsilon),
            tf.ones_like(weights),
        )
        return rate * ratio, grad + self._weight_decay * var

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        rate, grad = self.compute_lr(grad, var)
        return kernel_update(
            "ApplyMomentum",
            var,
            {"accum": self.get_slot(var, "momentum")},
            lr=tf.ones([], var.dtype.base_dtype),
            grad=grad * rate,
            momentum=tf.cast(self._momentum_tensor, var.dtype.base_dtype),
            use_nesterov=self._use_nesterov,
        )

    _resource_apply_dense = _apply_dense

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._resource_apply_sparse(grad.values, var, grad.indices)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        return kernel_update(
            "SparseApplyMomentum",
            var,
            {"accum": self.get_slot(var, "momentum")},
            lr=tf.cast(self._learning_rate_tensor, grad.dtype),
            grad=grad,
            indices=indices,
            momentum=tf.cast(self._momentum_tensor, grad.dtype),
            use_nesterov=self._use_nesterov,
        )


class _AdamFamily(_v1.train.AdamOptimizer):
    """Adam's hyperparameters, as tensors of a variable's type."""

    def _numbers(self, dtype: Any) -> dict[str, Any]:
        beta1_power, beta2_power = self._get_beta_accumulators()
        numbers = {
            "beta1_power": beta1_power,
            "beta2_power": beta2_power,
            "lr": self._lr_t,
            "beta1": self._beta1_t,
            "beta2": self._beta2_t,
            "epsilon": self._epsilon_t,
        }
        return {name: tf.cast(value, dtype) for name, value in numbers.items()}

    def _rate(self, n: dict[str, Any]) -> Any:
        return n["lr"] * tf.sqrt(1 - n["beta2_power"]) / (1 - n["beta1_power"])

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._resource_apply_sparse(grad.values, var, grad.indices)


class LazyAdamOptimizer(_AdamFamily):
    """Adam that leaves the moments of a sparsely updated variable's other rows as they are."""

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        n = self._numbers(var.dtype.base_dtype)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        m_rows = n["beta1"] * tf.gather(m, indices) + (1 - n["beta1"]) * grad
        v_rows = n["beta2"] * tf.gather(v, indices) + (1 - n["beta2"]) * tf.square(grad)
        step = self._rate(n) * m_rows / (tf.sqrt(v_rows) + n["epsilon"])
        return tf.group(
            _v1.scatter_update(m, indices, m_rows),
            _v1.scatter_update(v, indices, v_rows),
            _v1.scatter_sub(var, indices, step),
        )


class NadamOptimizer(_AdamFamily):
    """Adam with Nesterov momentum (Dozat, 2015)."""

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return kernel_update(
            "ApplyAdam",
            var,
            {slot: self.get_slot(var, slot) for slot in ("m", "v")},
            grad=grad,
            use_locking=self._use_locking,
            use_nesterov=True,
            **self._numbers(grad.dtype.base_dtype),
        )

    _resource_apply_dense = _apply_dense

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        n = self._numbers(var.dtype.base_dtype)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        with tf.control_dependencies([_v1.assign(m, n["beta1"] * m)]):
            m_update = _v1.scatter_add(m, indices, (1 - n["beta1"]) * grad)
        with tf.control_dependencies([_v1.assign(v, n["beta2"] * v)]):
            v_update = _v1.scatter_add(v, indices, (1 - n["beta2"]) * tf.square(grad))
        with tf.control_dependencies([m_update, v_update]):
            m_bar = (1 - n["beta1"]) * grad + n["beta1"] * tf.gather(m, indices)
            step = self._rate(n) * m_bar / (tf.sqrt(tf.gather(v, indices)) + n["epsilon"])
            return _v1.scatter_sub(var, indices, step)


class AdaMaxOptimizer(_v1.train.AdamOptimizer):
    """Adam with the largest gradient so far in place of their mean square (arXiv:1412.6980, 7.1).

    Of a sparsely updated variable only rows with a gradient change.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        use_locking: bool = False,
        name: str = "AdaMax",
    ):
        super().__init__(learning_rate, beta1, beta2, epsilon, use_locking, name)

    def _beta1_power(self) -> Any:
        return self._get_non_slot_variable("beta1_power", graph=_v1.get_default_graph())

    def _create_slots(self, var_list: Sequence[Any]) -> None:
        first = min(var_list, key=lambda variable: variable.name)
        self._create_non_slot_variable(self._beta1, name="beta1_power", colocate_with=first)
        for variable in var_list:
            self._zeros_slot(variable, "m", self._name)
            self._zeros_slot(variable, "v", self._name)

    def _numbers(self, dtype: Any) -> dict[str, Any]:
        numbers = {
            "beta1_power": self._beta1_power(),
            "lr": self._lr_t,
            "beta1": self._beta1_t,
            "beta2": self._beta2_t,
            "epsilon": self._epsilon_t,
        }
        return {name: tf.cast(value, dtype) for name, value in numbers.items()}

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        slots = {slot: self.get_slot(var, slot) for slot in ("m", "v")}
        numbers = self._numbers(grad.dtype.base_dtype)
        return kernel_update(
            "ApplyAdaMax", var, slots, grad=grad, use_locking=self._use_locking, **numbers
        )

    _resource_apply_dense = _apply_dense

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return self._resource_apply_sparse(grad.values, var, grad.indices)

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        n = self._numbers(var.dtype.base_dtype)
        m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
        mean = n["beta1"] * tf.gather(m, indices) + (1 - n["beta1"]) * grad
        largest = tf.maximum(n["beta2"] * tf.gather(v, indices), tf.abs(grad))
        step = n["lr"] / (1 - n["beta1_power"]) * mean / (largest + n["epsilon"])
        with tf.control_dependencies([step]):
            return tf.group(
                _v1.scatter_sub(var, indices, step),
                _v1.scatter_update(m, indices, mean),
                _v1.scatter_update(v, indices, largest),
            )

    def _finish(self, update_ops: Sequence[Any], name_scope: str) -> Any:
        with tf.control_dependencies(update_ops):
            power = self._beta1_power()
            update = power.assign(power * self._beta1_t, use_locking=self._use_locking)
        return tf.group(*update_ops, update, name=name_scope)


class MovingAverageOptimizer(_v1.train.Optimizer):
    """Keeps moving averages of what `opt` trains; `swapping_saver` saves them as the variables.

    Args:
        opt: The optimizer that trains.
        average_decay: Of `tf.train.ExponentialMovingAverage`.
        num_updates: Of `tf.train.ExponentialMovingAverage`.
        sequential_update: True if the averages are updated after the variables, not beside them.
    """

    def __init__(
        self,
        opt: Any,
        average_decay: float = 0.9999,
        num_updates: Any = None,
        sequential_update: bool = True,
    ):
        self._optimizer = opt
        self._ema = _v1.train.ExponentialMovingAverage(average_decay, num_updates=num_updates)
        self._swapped_variable_name_map: dict[str, str] | None = None
        self._sequential_update = sequential_update

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """The gradients of `opt`."""
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Any, global_step: Any = None, name: str | None = None
    ) -> tf.Operation:
        """Applies gradients with `opt`, then updates the averages.

        An iterator (`zip(...)`) can be walked once: as in TF 1.15 nothing is averaged then.
        """
        train = self._optimizer.apply_gradients(grads_and_vars, global_step=global_step, name=name)
        trained = [var for grad, var in grads_and_vars if grad is not None]
        if isinstance(grads_and_vars, Iterator):
            _v1.logging.warn(
                "MovingAverageOptimizer averages nothing, as in TF 1.15, because grads_and_vars is "
                "a %s, which can be walked only once. Give apply_gradients a list: "
                "list(zip(...)). Its checkpoints then have the averages too.",
                type(grads_and_vars).__name__,
            )
        with tf.control_dependencies([train] if self._sequential_update else []):
            update = self._ema.apply(trained)
        averages = [self._ema.average(var) for var in trained]
        pairs = [(v.op.name, a.op.name) for v, a in zip(trained, averages, strict=True)]
        self._swapped_variable_name_map = dict(pairs + [(a, v) for v, a in pairs])
        return tf.group(train, update, name="train_with_avg")

    def swapping_saver(
        self, var_list: Any = None, name: str = "swapping_saver", **kwargs: Any
    ) -> Any:
        """A Saver under whose names averages and variables have changed places.

        Use it while training; an ordinary Saver then restores the averages as the variables.

        Args:
            var_list: As for `tf.train.Saver`.
            name: Of the saver.
            **kwargs: For `tf.train.Saver`.

        Raises:
            RuntimeError: Nothing was minimized yet.
            ValueError: `var_list` has a variable and not its average.
        """
        if self._swapped_variable_name_map is None:
            raise RuntimeError(
                "Must call apply_gradients or minimize before creating the swapping_saver"
            )
        if var_list is None:
            var_list = _v1.global_variables()
        if not isinstance(var_list, dict):
            var_list = _by_saved_name(var_list)
        by_name = {
            part.op.name if parts is not saved else name: part
            for name, saved in var_list.items()
            for parts in [saved if isinstance(saved, list) else [saved]]
            for part in parts
        }

        def swapped(name: str, var: Any) -> Any:
            other = self._swapped_variable_name_map.get(name)  # type: ignore[union-attr]
            if other is not None and other not in by_name:
                raise ValueError(
                    f"Variable to swap {other} is not part of variables to save. "
                    "This breaks MovingAverageOptimizer."
                )
            return var if other is None else by_name[other]

        saved = {
            name: [swapped(part.op.name, part) for part in var]
            if isinstance(var, list)
            else swapped(name, var)
            for name, var in var_list.items()
        }
        return _v1.train.Saver(saved, name=name, **kwargs)


def _by_saved_name(variables: Sequence[Any]) -> dict[str, Any]:
    """Variables by the names that a Saver gives them: slices of one variable are one list."""
    by_name: dict[str, Any] = {}
    for var in variables:
        part = var._get_save_slice_info()
        if part is None:
            by_name[var.op.name] = var
        else:
            by_name.setdefault(part.full_name, []).append(var)
    return by_name


def clip_gradients_by_global_norm(
    gradients_variables: Iterable[tuple[Any, Any]], clip_norm: Any = 20.0
) -> tuple[list[tuple[Any, Any]], tf.Tensor]:
    """The pairs with gradients clipped together to `clip_norm`; their norm before that."""
    gradients_variables = list(gradients_variables)
    gradients = [gradient for gradient, _ in gradients_variables]
    norm = _v1.global_norm(gradients)
    clipped, _ = _v1.clip_by_global_norm(gradients, clip_norm, use_norm=norm)
    return [(c, var) for c, (_, var) in zip(clipped, gradients_variables, strict=True)], norm
