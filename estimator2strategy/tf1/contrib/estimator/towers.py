"""`tf.contrib.estimator` of TF 1.15: copies of a model on the devices of a machine, in one graph.

Each copy, a tower, gets its part of the batch, and shares the variables of the first one.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import tensorflow as tf

from estimator2strategy import estimator as core

_v1 = tf.compat.v1


def split(batch: Any, number: int) -> list[Any]:
    """As many parts of a nest of tensors, along their first dimensions.

    Raises:
        ValueError: A batch size is not a multiple of `number`.
    """
    tensors = tf.nest.flatten(batch)
    with _v1.name_scope("split_inputs"), _v1.device("/CPU:0"):
        of_each = [_parts(tensor, number) for tensor in tensors]
    return [tf.nest.pack_sequence_as(batch, part) for part in zip(*of_each, strict=True)]


def _parts(tensor: Any, number: int) -> Sequence[Any]:
    if tensor is None:
        return [None] * number
    if isinstance(tensor, tf.SparseTensor):
        return cast(Sequence[Any], _v1.sparse_split(sp_input=tensor, num_split=number, axis=0))
    tensor = tf.convert_to_tensor(tensor)
    size = tensor.shape[:1].as_list()[0]
    if size is not None and size % number:
        raise ValueError(
            f"Batch size {size} needs to be divisible by the number of GPUs, which is {number}."
        )
    return cast(Sequence[Any], tf.split(tensor, number))


def joined(towers: Sequence[Any]) -> Any:
    """The EstimatorSpec of a model of the specs of its towers."""
    with _v1.device("/CPU:0"):
        return _JOINED[towers[0].mode](towers)


def _in_training(towers: Sequence[Any]) -> Any:
    """The last tower's: it has the op that updates the variables by the gradients of all."""
    return towers[-1]._replace(loss=_loss(towers))


def _in_evaluation(towers: Sequence[Any]) -> Any:
    updates = [update for spec in towers for _, update in spec.eval_metric_ops.values()]
    with tf.control_dependencies(updates):
        add_up = _added_up(_v1.get_collection(_v1.GraphKeys.METRIC_VARIABLES), len(towers))
    metrics = {name: (value, add_up) for name, (value, _) in towers[0].eval_metric_ops.items()}
    return towers[0]._replace(loss=_loss(towers), eval_metric_ops=metrics)


def _loss(towers: Sequence[Any]) -> Any:
    return tf.add_n([spec.loss for spec in towers], name="loss")


def _added_up(variables: Sequence[Any], number: int) -> Any:
    """The op that moves what the metrics of the other towers have counted to those of the first.

    Raises:
        ValueError: The towers have not as many variables each.
    """
    each = len(variables) // number
    if len(variables) != each * number:
        raise ValueError(
            "Different `EstimatorSpec.eval_metric_ops` across `model_fn()` calls. "
            f"Expected {each * number} local variables, but got {len(variables)} instead."
        )
    done = []
    for first, *others in (variables[place::each] for place in range(each)):
        counted = tf.add_n([other.read_value() for other in others])
        with tf.control_dependencies([first.assign_add(counted).op]):
            done += [other.assign(tf.zeros_like(other)).op for other in others]
    return tf.group(*done)


def _in_prediction(towers: Sequence[Any]) -> Any:
    exports = [spec.export_outputs or {} for spec in towers]
    return towers[0]._replace(
        predictions=_side_by_side([spec.predictions for spec in towers]),
        export_outputs={
            name: _exported([export[name] for export in exports]) for name in exports[0]
        },
    )


def _side_by_side(predictions: Sequence[Any]) -> Any:
    if isinstance(predictions[0], Mapping):
        return {
            name: tf.concat([part[name] for part in predictions], 0, name=name)
            for name in predictions[0]
        }
    return tf.concat(predictions, 0)


def _exported(outputs: Sequence[Any]) -> Any:
    first = outputs[0]
    if isinstance(first, core.export.PredictOutput):
        return core.export.PredictOutput(_side_by_side([output.outputs for output in outputs]))
    if isinstance(first, core.export.RegressionOutput):
        return core.export.RegressionOutput(_side_by_side([output.value for output in outputs]))
    parts = {
        name: None
        if getattr(first, name) is None
        else _side_by_side([getattr(output, name) for output in outputs])
        for name in ("scores", "classes")
    }
    return core.export.ClassificationOutput(**parts)


_JOINED: dict[str, Callable[[Sequence[Any]], Any]] = {
    core.ModeKeys.TRAIN: _in_training,
    core.ModeKeys.EVAL: _in_evaluation,
    core.ModeKeys.PREDICT: _in_prediction,
}


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
        stacks = _v1.get_collection_ref(_TOWERS)
        scope = f"tower_{self._made}" if self._made else None
        # A scope that is entered again counts the names of layers anew.
        with (
            _v1.variable_scope(_v1.get_variable_scope(), reuse=bool(self._made) or None) as own,
            _v1.name_scope(scope) if scope else contextlib.nullcontext(),
            _v1.device(_except_variables(device)),
        ):
            self._first = self._first or (own, _v1.get_default_graph().get_name_scope() or None)
            self._gradients.append([])
            stacks.append(self)
            try:
                yield
            finally:
                stacks.clear()
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
