"""Puts Keras metrics in the place of recorded `tf.metrics` pairs.

Only the pair's two tensors are replaced: the update op by `metric.update_state(...)` on the values
the legacy metric was given, the value op by `metric.result()`. Hooks that fetch either get what
they always got.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from estimator2strategy.metrics.convert import ConvertedMetric, convert
from estimator2strategy.plan.graph import RecordedGraph, input_node
from estimator2strategy.record.legacy import modern_world
from estimator2strategy.replay.splice import Splice


def metric_splices(
    graph: tf.Graph, metrics: Mapping[str, tuple[Any, Any]], calls: Sequence[Any]
) -> tuple[Splice, ...]:
    """A pair of splices for each metric that a Keras metric can stand for, with equal results.

    Args:
        graph: The recorded graph.
        metrics: Name -> (value, update) in the graph.
        calls: The observed `tf.metrics` calls that made them.
    """
    recorded = RecordedGraph(graph)
    converted = {
        name: found
        for name, (value, update) in metrics.items()
        if (found := convert(name, value, update, calls))
    }
    splices: list[Splice] = []
    for name in _independent(recorded, metrics, converted):
        with modern_world():
            metric = converted[name].build()
        splices += _splices_of(metric, converted[name], *metrics[name])
    return tuple(splices)


def _splices_of(
    metric: keras.metrics.Metric, converted: ConvertedMetric, value: tf.Tensor, update: tf.Tensor
) -> tuple[Splice, Splice]:
    def result() -> tf.Tensor:
        tensor = tf.cast(metric.result(), value.dtype)
        return tf.reshape(tensor, value.shape) if value.shape.is_fully_defined() else tensor

    def update_then_result(_, values: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        converted.update(metric, values)
        return [result()]

    inputs = tuple(tensor.name for tensor in converted.inputs)
    return (
        Splice(update.op.name, inputs, (update.name,), update_then_result),
        Splice(value.op.name, (), (value.name,), lambda *_: [result()]),
    )


def _independent(
    recorded: RecordedGraph,
    metrics: Mapping[str, tuple[Any, Any]],
    converted: Mapping[str, ConvertedMetric],
) -> list[str]:
    """Names of the converted metrics whose variables nothing else reads.

    An F1 made of a precision and a recall, say, needs their recorded variables kept up to date.
    """
    chosen = set(converted)
    state = {name: _variables(recorded, *map(_node, metrics[name])) for name in converted}
    state = {
        name: found - _variables(recorded, *(input_node(t.name) for t in converted[name].inputs))
        for name, found in state.items()
    }
    while True:
        used: set[str] = set()
        for name, pair in metrics.items():
            if name not in chosen:
                used |= _variables(recorded, *map(_node, pair))
        for name in chosen:
            used |= _variables(recorded, *(input_node(t.name) for t in converted[name].inputs))
        shared = {name for name in chosen if state[name] & used}
        if not shared:
            return [name for name in converted if name in chosen]
        chosen -= shared


def _node(value_or_update: Any) -> str:
    operation = getattr(value_or_update, "op", value_or_update)
    return operation.name


def _variables(recorded: RecordedGraph, *nodes: str) -> set[str]:
    return {n for n in recorded.ancestors(nodes) if recorded[n].op == "VarHandleOp"}
