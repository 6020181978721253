"""The Keras metric that stands for a recorded `(value, update)` pair, as an object.

    metrics = metric_objects(graph, {"accuracy": (value, update), ...}, calls)
    model.compile(metrics=[metrics["accuracy"]])

`Estimator.keras_metrics` hands these out, and `keras_model` counts with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from estimator2strategy.engine.metrics.convert import convert
from estimator2strategy.engine.metrics.replayed import replayed_metric
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.worlds import modern_world

tf1 = tf.compat.v1


class KerasMetric(NamedTuple):
    """A Keras metric that can stand for a recorded pair.

    Attributes:
        metric: The object.
        inputs: Names of the recorded tensors whose values update it.
        update: `update(values)` adds a batch.
    """

    metric: keras.metrics.Metric
    inputs: tuple[str, ...]
    update: Callable[[Sequence[tf.Tensor]], None]


def metric_objects(
    graph: tf.Graph, metrics: Mapping[str, tuple[Any, Any]], calls: Sequence[Any]
) -> dict[str, keras.metrics.Metric]:
    """A fresh Keras metric for each pair, each with variables of its own.

    A pair that has no Keras metric is left out, with a warning: its value or its update depends on
    more than the metric's own variables and the batch.

    Args:
        graph: The recorded graph.
        metrics: Name -> (value, update) in the graph.
        calls: The observed `tf.metrics` calls that made them.
    """
    recorded = RecordedGraph(graph)
    by_name = {name: keras_metric_of(name, recorded, *metrics[name], calls) for name in metrics}
    missing = sorted(name for name, metric in by_name.items() if metric is None)
    if missing:
        tf1.logging.warning(
            "No Keras metric for %s: what they are made of is more than variables of their own and "
            "the batch. `evaluate` computes them in the recorded graph.",
            ", ".join(missing),
        )
    return {name: metric.metric for name, metric in by_name.items() if metric is not None}


def keras_metric_of(
    name: str, recorded: RecordedGraph, value: Any, update: Any, calls: Sequence[Any]
) -> KerasMetric | None:
    """The Keras metric for one pair: a class of Keras's or ours, else a replay, else None."""
    if not isinstance(value, tf.Tensor):
        return None
    with modern_world():
        return _converted(name, value, update, calls) or _replayed(name, recorded, value, update)


def _converted(name: str, value: Any, update: Any, calls: Sequence[Any]) -> KerasMetric | None:
    converted = convert(name, value, update, calls)
    if converted is None:
        return None
    metric = converted.build()
    inputs = tuple(tensor.name for tensor in converted.inputs)
    return KerasMetric(metric, inputs, lambda values: converted.update(metric, values))


def _replayed(
    name: str, recorded: RecordedGraph, value: tf.Tensor, update: Any
) -> KerasMetric | None:
    metric = replayed_metric(name, recorded, value, update)
    if metric is None:
        return None
    return KerasMetric(metric, metric.inputs, lambda values: metric.update_state(*values))
