"""Puts Keras metrics in the place of recorded `tf.metrics` pairs.

Only the two tensors of a pair are replaced. `metric.update_state(...)`, on the inputs of the legacy
metric, takes the place of the update op, and `metric.result()` that of the value. Hooks that fetch
either get the same numbers as before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.metrics.objects import KerasMetric, keras_metric_of
from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay.splice import Splice

tf1 = tf.compat.v1


def metric_splices(
    graph: tf.Graph, metrics: Mapping[str, tuple[Any, Any]], calls: Sequence[Any]
) -> tuple[Splice, ...]:
    """Splices for each metric that a Keras metric can stand for, with equal results.

    Args:
        graph: The recorded graph.
        metrics: Name -> (value, update) in the graph.
        calls: The observed `tf.metrics` calls that made them.
    """
    recorded = RecordedGraph(graph)
    by_keras = keras_metrics(recorded, metrics, calls)
    tf1.logging.info(
        "Metrics computed by Keras metrics: %s; in the recorded graph: %s.",
        ", ".join(by_keras) or "none",
        ", ".join(name for name in metrics if name not in by_keras) or "none",
    )
    batch = _batch(recorded, [update for _, update in metrics.values()])
    splices: list[Splice] = []
    for name, keras_metric in by_keras.items():
        splices += _splices_of(keras_metric, *metrics[name], batch)
    return tuple(splices)


def _batch(recorded: RecordedGraph, updates: Iterable[Any]) -> tuple[str, ...]:
    """Names of tensors that are there if the input had a batch for the step."""
    behind = recorded.ancestors(map(_node, updates))
    return tuple(f"{name}:0" for name in behind if recorded.takes_batch(name))


def keras_metrics(
    recorded: RecordedGraph, metrics: Mapping[str, tuple[Any, Any]], calls: Sequence[Any]
) -> dict[str, KerasMetric]:
    """Keras metrics for those pairs that have one: a class of Keras's or ours, else a replay."""
    candidates = {}
    for name, (value, update) in metrics.items():
        if isinstance(value, tf.Tensor) and _updates_to(value, update):
            candidate = keras_metric_of(name, recorded, value, update, calls)
            if candidate:
                candidates[name] = candidate
    return {name: candidates[name] for name in _independent(recorded, metrics, candidates)}


def _updates_to(value: tf.Tensor, update: Any) -> bool:
    """True if an update op returns the metric so far, so that its stand-in may return that too.

    Nearly all do. `tf.metrics.mean_iou` is one that does not: it returns a confusion matrix.
    """
    if isinstance(update, tf.Operation):
        return True
    return bool(update.dtype == value.dtype and update.shape.is_compatible_with(value.shape))


def _splices_of(
    keras_metric: KerasMetric, value: tf.Tensor, update: Any, batch: tuple[str, ...]
) -> list[Splice]:
    def result() -> tf.Tensor:
        tensor = tf.cast(keras_metric.metric.result(), value.dtype)
        return tf.reshape(tensor, value.shape) if value.shape.is_fully_defined() else tensor

    # Whoever fetches the update's tensor wants the metric so far.
    outputs = () if isinstance(update, tf.Operation) else (update.name,)

    def update_then_result(
        recorded: Any, state: Any, values: Sequence[tf.Tensor], context: Any
    ) -> list[Callable[[], tf.Tensor]]:
        del recorded, state, context
        # Where the input has ended nothing of the step may happen, counting it included. (By way of
        # a group: a call that takes the values would wait for them, but not what it is inlined to.)
        there = tf.group(*values)
        with tf.control_dependencies([there]), tf.name_scope(_scope(keras_metric.metric.name)):
            keras_metric.update(values[: len(keras_metric.inputs)])
        return [result for _ in outputs]

    return [
        Splice(
            _node(update),
            # A count of batches needs none of their tensors, but has to wait for the batch.
            keras_metric.inputs or batch,
            outputs,
            update_then_result,
            reset=keras_metric.metric.reset_state,
        ),
        Splice(_node(value), (), (value.name,), lambda *_: [result()], only_reads=True),
    ]


def _scope(name: str) -> str:
    """A name for the nodes of an update, so that an error at one of them tells the metric."""
    return "metric/" + re.sub(r"[^\w.-]", "_", name)


def _independent(
    recorded: RecordedGraph,
    metrics: Mapping[str, tuple[Any, Any]],
    candidates: Mapping[str, KerasMetric],
) -> list[str]:
    """Names of the candidates whose recorded variables nothing else reads.

    An F1 made of a precision's and a recall's variables, say, needs them kept up to date.
    """
    needs = {
        name: recorded.variables_behind(map(_node, tf.nest.flatten(metrics[name])))
        for name in metrics
    }
    fed = {
        name: recorded.variables_behind(map(input_node, keras_metric.inputs))
        for name, keras_metric in candidates.items()
    }
    chosen = set(candidates)
    while True:
        used = set().union(
            *(needs[name] for name in metrics if name not in chosen), *(fed[n] for n in chosen)
        )
        own = {name: needs[name] - fed[name] for name in chosen}
        shared = {
            name
            for name in chosen
            if own[name] & used or any(own[name] & own[o] for o in chosen if o != name)
        }
        if not shared:
            return [name for name in candidates if name in chosen]
        chosen -= shared


def _node(value_or_update: Any) -> str:
    operation = getattr(value_or_update, "op", value_or_update)
    return str(operation.name)
