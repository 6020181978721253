"""The batch of a model that has several towers, divided, and their EstimatorSpecs, joined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
