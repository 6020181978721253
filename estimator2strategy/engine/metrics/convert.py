"""From a recorded `(value, update_op)` pair to the Keras metric that gives the same number.

    from estimator2strategy.engine.metrics import observe_metric_calls

    with observe_metric_calls() as calls:
        pairs = metric_fn(**tensors)
    converted = {key: convert(key, *pair, calls) for key, pair in pairs.items()}

A pair is converted only when it is, untouched, what one observed call returned, and when all
that the call depended on is known. Everything else is None, for the generic replay of the
recorded graph: slower, and right by construction.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from estimator2strategy.engine.metrics import shapes
from estimator2strategy.engine.metrics.keras_classes import LegacyMetric, keras_metric_for
from estimator2strategy.engine.metrics.metric_table import MetricRow, find
from estimator2strategy.engine.metrics.observe import ObservedCall


@dataclasses.dataclass(frozen=True)
class ConvertedMetric:
    """A legacy metric that has become a Keras metric.

    Attributes:
        name: Key of the metric in the program's dict.
        function: Name of the `tf.compat.v1.metrics` function, such as 'accuracy'.
        inputs: Tensors of the recorded graph whose values of each batch update the metric. A
            SparseTensor appears as its indices, values and dense_shape.
        build: Makes a fresh Keras metric with its variables. Call it eagerly, not below a
            v1 `tf.Graph`.
        structure: Legacy parameter name to the tensor (or SparseTensor) among the inputs.
    """

    name: str
    function: str
    inputs: tuple[tf.Tensor, ...]
    build: Callable[[], keras.metrics.Metric]
    structure: Mapping[str, Any] = dataclasses.field(repr=False)

    def update(self, metric: keras.metrics.Metric, values: Sequence[Any]) -> None:
        """Adds one batch to `metric`; eagerly or in a `tf.function`, also inside its loops.

        Args:
            metric: The result of `build`.
            values: Values of `inputs`, in that order, with the dtypes they have there. Axes of
                unknown size in `inputs`, such as the batch's, may differ from call to call.
        """
        if not isinstance(metric, LegacyMetric):
            raise TypeError(f"{metric} was not made by ConvertedMetric.build.")
        pinned = [_as(tensor, value) for tensor, value in zip(self.inputs, values, strict=True)]
        named = tf.nest.pack_sequence_as(self.structure, pinned, expand_composites=True)
        metric.accumulate(named)


def _as(recorded: tf.Tensor, value: Any) -> tf.Tensor:
    """`value` with the dtype and at least the static rank that v1 took its decisions on."""
    value = tf.convert_to_tensor(value, dtype=recorded.dtype)
    return tf.ensure_shape(value, recorded.shape) if value.shape.rank is None else value


class _UnconvertibleError(Exception):
    """Something that a call depended on is not known, or has no equal in Keras."""


def convert(
    name: str, value: Any, update: Any, calls: Sequence[ObservedCall]
) -> ConvertedMetric | None:
    """The Keras metric for a recorded pair.

    Args:
        name: Key of the metric in the program's dict.
        value: First element of its pair, a tensor of the recorded graph.
        update: Second element: what the metric function returned, or that converted to a tensor
            in the same graph.
        calls: The calls that `observe_metric_calls` noted while the pair was made.

    Returns:
        None when the pair is not just what a known function returned, or when the call had
        effects or arguments that a Keras metric does not reproduce: collections, control
        dependencies, variables, unknown ranks.
    """
    call = _call_that_returned(value, update, calls)
    row = find(call.function) if call else None
    if call is None or row is None or keras.backend.backend() != "tensorflow":
        return None
    try:
        _require_no_side_effects(call)
        options = {key: _constant(call.arguments[key]) for key in _recorded_options(row)}
        constants, structure = _split(row, call.arguments, value.graph)
        options.update(_facts(row, call.arguments))
    except _UnconvertibleError:
        return None

    def build() -> keras.metrics.Metric:
        return keras_metric_for(call.function, name=name, **options, **constants)

    inputs = tuple(tf.nest.flatten(structure, expand_composites=True))
    return ConvertedMetric(name, call.function, inputs, build, structure)


def _call_that_returned(
    value: Any, update: Any, calls: Sequence[ObservedCall]
) -> ObservedCall | None:
    for call in reversed(calls):
        if call.value is value and _is_update(update, call.update):
            return call
    return None


def _is_update(update: Any, returned: Any) -> bool:
    if update is returned:
        return True
    made, op = getattr(returned, "op", None), getattr(update, "op", update)
    if made is None or not isinstance(op, tf.Operation):
        return False
    # The update may come as its op, or as a tensor: some functions return the result of an
    # `assign_add`, whose conversion to a tensor is a read that waits for the assignment.
    return op is made or _reads_what_assigns(op, made)


def _reads_what_assigns(op: tf.Operation, made: tf.Operation) -> bool:
    return (
        (op.type, made.type) == ("ReadVariableOp", "AssignAddVariableOp")
        and op.inputs[0] is made.inputs[0]
        and made in op.control_inputs
    )


def _require_no_side_effects(call: ObservedCall) -> None:
    collections = ("metrics_collections", "updates_collections")
    if call.controlled or any(call.arguments.get(name) for name in collections):
        raise _UnconvertibleError


def _recorded_options(row: MetricRow) -> tuple[str, ...]:
    return () if row.function == "mean_tensor" else row.options


def _facts(row: MetricRow, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Options that v1 reads from static shapes."""
    if row.function != "mean_tensor":
        return {}
    values = arguments["values"]
    shape = values.shape if tf.is_tensor(values) else tf.TensorShape(np.shape(values))
    if not shape.is_fully_defined():
        raise _UnconvertibleError
    return {"shape": tuple(shape.as_list())}


def _constant(option: Any) -> Any:
    """A Python value equal to the option: None, str, number or a list of numbers."""
    if option is None or isinstance(option, str | bool | int | float):
        return option
    if isinstance(option, np.ndarray | np.generic):
        return option.tolist()
    if isinstance(option, list | tuple):
        return [_constant(element) for element in option]
    try:
        return operator.index(option)  # tf.compat.v1.Dimension
    except TypeError:
        raise _UnconvertibleError from None


def _split(
    row: MetricRow, arguments: Mapping[str, Any], graph: tf.Graph
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The row's tensor arguments as constants, and as tensors of the graph, both by name."""
    constants, structure = {}, {}
    for name in row.tensors:
        argument = arguments[name]
        if argument is None:
            continue
        if isinstance(argument, tf.SparseTensor) and not (row.sparse_labels and name == "labels"):
            raise _UnconvertibleError
        if isinstance(argument, tf.SparseTensor) or _is_symbolic(argument):
            structure[name] = _of_known_rank(argument, graph)
        else:
            constants[name] = _array(argument)
    return constants, structure


def _is_symbolic(argument: Any) -> bool:
    return isinstance(argument, tf.Tensor) and not hasattr(argument, "numpy")


def _of_known_rank(tensor: Any, graph: tf.Graph) -> Any:
    try:
        shapes.rank_of(tensor)
    except ValueError:
        raise _UnconvertibleError from None
    # A tensor of a function inside of the graph cannot be fetched from outside.
    if any(part.graph is not graph for part in tf.nest.flatten(tensor, expand_composites=True)):
        raise _UnconvertibleError
    return tensor


def _array(argument: Any) -> Any:
    """A constant as it was given, so that converting it to a tensor has the outcome it had."""
    if isinstance(argument, tf.Tensor):  # eager
        return argument.numpy()
    plain = (bool, int, float, str, bytes, np.ndarray, np.generic)
    if not all(isinstance(element, plain) for element in tf.nest.flatten(argument)):
        raise _UnconvertibleError
    return argument
