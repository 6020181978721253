"""`tf.contrib.estimator` of TF 1.15: copies of a model on the devices of a machine, in one graph.

Each copy, a tower, gets its part of the batch, and shares the variables of the first one.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import tensorflow as tf

from estimator2strategy.tf1.contrib.estimator.tower_specs import joined, split

_v1 = tf.compat.v1


def replicate_model_fn(
    model_fn: Callable[..., Any],
    loss_reduction: str | None = None,
    devices: Sequence[str] | None = None,
) -> Callable[..., Any]:
    """A model_fn that makes a tower on each device; `model_fn` itself, where there is one.

    Args:
        model_fn: Of an Estimator. Its optimizer must be a `TowerOptimizer` where it trains on
            several devices.
        loss_reduction: Of the losses of towers, a `tf.losses.Reduction`: SUM adds them up, any
            other, and by default, they are averaged. The loss of one tower stays as it is.
        devices: Their names; all GPUs by default, or the CPU.

    Raises:
        ValueError: `loss_reduction` is NONE. In a call: the batch does not divide among the
            devices, or the optimizer is no `TowerOptimizer`.

    Source: `tf.contrib.estimator.replicate_model_fn`, TF 1.15. Layers without a name share their
    variables too, as up to TF 1.9; TF 1.15 stopped with an error there.
    """
    if loss_reduction == _v1.losses.Reduction.NONE:
        raise ValueError(
            "Tower losses need to be reduced in some way, yet "
            f"{loss_reduction} reduction is specified."
        )
    names = list(devices or [device.name for device in tf.config.list_logical_devices("GPU")])
    if len(names) < 2:
        return model_fn
    takes = inspect.signature(model_fn).parameters

    def replicated(
        features: Any, labels: Any, mode: str, params: Any = None, config: Any = None
    ) -> Any:
        offered = {"mode": mode, "params": params, "config": config}
        given = {name: value for name, value in offered.items() if name in takes}
        towers = _Towers(len(names), loss_reduction == _v1.losses.Reduction.SUM)
        parts = split({"features": features, "labels": labels}, len(names))
        specs = []
        for device, part in zip(names, parts, strict=True):
            part = {key: value for key, value in part.items() if key in takes}
            with towers.next_on(device):
                spec = model_fn(**part, **given)
                if spec.train_op is not None and not towers.are_optimized:
                    raise ValueError(
                        "Please wrap optimizers with TowerOptimizer in order to use "
                        "replicate_model_fn with multiple `devices`."
                    )
                specs.append(spec._replace(loss=towers.scaled(spec.loss)))
        return joined(specs)

    return replicated


class _Towers:
    """The towers that are being made in a graph, and the gradients of those that are made."""

    def __init__(self, number: int, are_summed: bool):
        self.number = number
        self.are_optimized = False
        self._are_summed = are_summed
        self._made = 0
        self._gradients: list[list[Any]] = []  # of each tower, those of each call
        self._first: Any = None

    @contextlib.contextmanager
    def next_on(self, device: str) -> Iterator[None]:
        """Around the model_fn of a tower, in which the optimizers find these towers."""
        found = _v1.get_collection_ref(_TOWERS)
        scope = f"tower_{self._made}" if self._made else None
        # A scope that is entered again counts the names of layers anew.
        with (
            _v1.variable_scope(_v1.get_variable_scope(), reuse=bool(self._made) or None) as own,
            _v1.name_scope(scope) if scope else contextlib.nullcontext(),
            _v1.device(_except_variables(device)),
        ):
            self._first = self._first or (own, _v1.get_default_graph().get_name_scope() or None)
            self._gradients.append([])
            found.append(self)
            try:
                yield
            finally:
                found.clear()
        self._made += 1

    def scaled(self, loss: Any) -> Any:
        """The part of a tower's loss in that of all."""
        if loss is None or self._are_summed:
            return loss
        return tf.divide(loss, float(self.number), name="averaged_loss")

    def gathered(self, grads_and_vars: Sequence[Any]) -> list[Any] | None:
        """The sums over towers of the same call's gradients; None before the last tower.

        Raises:
            ValueError: A tower has called its optimizers in another way.
        """
        call = len(self._gradients[-1])
        self._gradients[-1].append(list(grads_and_vars))
        if self._made < self.number - 1:
            return None
        if any(len(tower) <= call for tower in self._gradients):
            raise ValueError(
                "Each invocation of model_fn was supposed to make the same optimizer calls."
            )
        of_variable: dict[Any, tuple[Any, list[Any]]] = {}
        for tower in self._gradients:
            for gradient, variable in tower[call]:
                if gradient is not None:
                    of_variable.setdefault(variable.ref(), (variable, []))[1].append(gradient)
        with _v1.name_scope("gradient_aggregating"):
            return [(_sum(parts), variable) for variable, parts in of_variable.values()]

    @contextlib.contextmanager
    def in_first(self) -> Iterator[None]:
        """Inside, ops and variables are named as in the first tower."""
        variables, names = self._first
        with _v1.variable_scope(variables), _v1.name_scope(names and names + "/"):
            yield


_TOWERS = "estimator2strategy_towers"


def _except_variables(device: str) -> Callable[[Any], str]:
    """A device function: ops go to `device`, variables to the CPU, where all towers read them."""

    def chosen(op: Any) -> str:
        where = "/CPU:0" if op.type in _VARIABLES else device
        return cast(
            str,
            (
                tf.DeviceSpec.from_string(where)
                .make_merged_spec(tf.DeviceSpec.from_string(op.device or ""))
                .to_string()
            ),
        )

    return chosen


_VARIABLES = ("Variable", "VariableV2", "VarHandleOp")


def _sum(gradients: list[Any]) -> Any:
    if not isinstance(gradients[0], tf.IndexedSlices):
        return tf.add_n(gradients)
    return tf.IndexedSlices(
        tf.concat([part.values for part in gradients], 0),
        tf.concat([part.indices for part in gradients], 0),
        gradients[0].dense_shape,
    )


class TowerOptimizer(_v1.train.Optimizer):
    """An optimizer that applies, in the last tower, the sum of the gradients of all towers.

    Outside of `replicate_model_fn`, and for one device, it is the optimizer that it was given.

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
        return cast(str, self._wrapped.get_name())

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        for towers in _v1.get_collection(_TOWERS):
            loss = towers.scaled(loss)
        return self._wrapped.compute_gradients(loss, *args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, **kwargs: Any) -> Any:
        """Updates the variables; before the last tower, an op that only computes the gradients."""
        kept = _v1.get_collection(_TOWERS)
        if not kept:
            return self._wrapped.apply_gradients(grads_and_vars, global_step, **kwargs)
        (towers,) = kept
        towers.are_optimized = True
        own = list(grads_and_vars)
        gathered = towers.gathered(own)
        if gathered is None:
            return tf.group(*[g for g, _ in own if g is not None], name="train_op_placeholder")
        with towers.in_first():
            return self._wrapped.apply_gradients(gathered, global_step, **kwargs)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        return self._wrapped.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        return self._wrapped.get_slot_names(*args, **kwargs)

    def variables(self) -> Any:
        return self._wrapped.variables()
