"""`tf.contrib.estimator` of TF 1.15: copies of a model on the devices of a machine, by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.errors import UnsupportedError

_v1 = tf.compat.v1


def replicate_model_fn(
    model_fn: Callable, loss_reduction: str | None = None, devices: Sequence[str] | None = None
) -> Callable:
    """`model_fn` itself, where it would get one copy.

    Args:
        model_fn: Of an Estimator.
        loss_reduction: Of the losses of copies, a `tf.losses.Reduction`; by default that by
            non-zero weights. The loss of one copy stays as it is.
        devices: Their names; all GPUs by default, or the CPU.

    Raises:
        ValueError: `loss_reduction` is NONE.
        UnsupportedError: There are several devices.

    Source: `tf.contrib.estimator.replicate_model_fn`, TF 1.15.
    """
    if loss_reduction == _v1.losses.Reduction.NONE:
        raise ValueError(
            "Tower losses need to be reduced in some way, yet "
            f"{loss_reduction} reduction is specified."
        )
    number = len(devices or tf.config.list_logical_devices("GPU"))
    if number > 1:
        raise UnsupportedError(
            f"tf.contrib.estimator.replicate_model_fn: {number} devices would each get a part of "
            "the batch, which is not supported.\n"
            "  Give the Estimator model_fn itself, and RunConfig(train_distribute="
            "tf.distribute.MirroredStrategy(devices)). Each replica then takes a batch of its "
            f"own: divide the batch size of input_fn by {number}."
        )
    return model_fn


class TowerOptimizer(_v1.train.Optimizer):
    """An optimizer as it is, which for one copy of a model is all that there is to do.

    Args:
        optimizer_or_optimizer_fn: The optimizer, or a function that makes it at its first use.

    Source: `tf.contrib.estimator.TowerOptimizer`, TF 1.15.
    """

    def __init__(self, optimizer_or_optimizer_fn: Any):
        self._given = optimizer_or_optimizer_fn

    @property
    def _wrapped(self) -> Any:
        if not isinstance(self._given, _v1.train.Optimizer):
            self._given = self._given()
        return self._given

    def get_name(self) -> str:
        return self._wrapped.get_name()

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        return self._wrapped.compute_gradients(loss, *args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, **kwargs: Any) -> Any:
        return self._wrapped.apply_gradients(grads_and_vars, global_step, **kwargs)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        return self._wrapped.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        return self._wrapped.get_slot_names(*args, **kwargs)

    def variables(self) -> Any:
        return self._wrapped.variables()
