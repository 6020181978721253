"""The metrics of a metric_fn, without the model around it, as Keras metrics."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from estimator2strategy.engine.metrics.objects import KerasMetric, keras_metric_of
from estimator2strategy.engine.metrics.observe import observe_metric_calls
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.user_code import location
from estimator2strategy.engine.worlds import legacy_world, modern_world, recording
from estimator2strategy.engine.wrong_argument import checked, shown, wrong_argument
from estimator2strategy.estimator.specs import call_on_host, checked_eval_metric_ops
from estimator2strategy.keras_model.argument_rules import METRIC_RULES

tf1 = tf.compat.v1


class EvalMetric(keras.metrics.Metric):
    """One metric of a metric_fn, which counts what metric_fn is given.

    Args:
        counted: The Keras metric that stands for the recorded pair.
        inputs_of: From metric_fn's tensors, flat, to what updates that metric.
        tensors: metric_fn's tensors, a list or a dict.
    """

    def __init__(self, counted: KerasMetric, inputs_of: Callable[..., Any], tensors: Any):
        super().__init__(name=counted.metric.name)
        self.metric = counted.metric
        self._update = counted.update
        self._inputs_of = inputs_of
        self._names = list(tensors) if isinstance(tensors, dict) else None
        self._count = len(tf.nest.flatten(tensors))

    def update_state(self, *tensors: Any, **named: Any) -> None:
        """Adds a batch.

        Args:
            tensors: The values of metric_fn's list, in its order.
            named: The values of metric_fn's dict.

        Raises:
            ValueError: These are not metric_fn's tensors.
        """
        if named.get("sample_weight", self) is None:  # Keras passes it to each metric
            del named["sample_weight"]
        if self._names is not None and set(named) == set(self._names) and not tensors:
            tensors = tuple(named[name] for name in self._names)
        elif named or self._names is not None:
            wanted = ", ".join(f"{name}=" for name in self._names or ()) or "values by position"
            raise ValueError(
                f"update_state of {self.name}: pass {wanted}, as metric_fn takes them."
            )
        flat = tf.nest.flatten(list(tensors))
        if len(flat) != self._count:
            raise wrong_argument(
                f"update_state of {self.name} takes {self._count} tensors",
                len(flat),
                "Pass those of metric_fn, in their order.",
            )
        self._update(self._inputs_of(*flat))

    def result(self) -> Any:
        return self.metric.result()

    def reset_state(self) -> None:
        self.metric.reset_state()


@checked(METRIC_RULES)
def keras_metrics(
    metric_fn: Callable[..., Any], tensors: Sequence[Any] | dict[str, Any]
) -> dict[str, keras.metrics.Metric]:
    """The metrics of an `eval_metrics` tuple `(metric_fn, tensors)` as Keras metrics.

        metrics = keras_metrics(metric_fn, [labels, logits])
        for labels, logits in batches:
            for metric in metrics.values():
                metric.update_state(labels, logits)

    metric_fn is called once, on placeholders. A metric that is a `tf.metrics` function's counts as
    the Keras metric with the same numbers; any other replays what metric_fn has recorded.

    Args:
        metric_fn: Returns a dict of `tf.metrics` pairs, or of metric objects.
        tensors: The list or the dict that it is called with: tensors, arrays, or TensorSpecs. Of
            tensors and arrays the first axis, the batch, may have any size later.

    Returns:
        Name -> a Keras metric, whose `update_state` takes the values of `tensors`: by position
        those of a list, by keyword those of a dict. What no Keras metric can stand for is left out,
        with a warning.

    Raises:
        TypeError: An argument, or what metric_fn returns, has the wrong type.
    """
    _check_fit(metric_fn, tensors)
    with legacy_world(), recording(None) as graph, observe_metric_calls() as calls:
        feeds = tf.nest.map_structure(_placeholder, tensors)
        made_by_fn = call_on_host((metric_fn, feeds))
        if not isinstance(made_by_fn, dict):
            raise TypeError(
                "metric_fn must return a dict. eval_metric_ops must be a dict, given: "
                f"{shown(made_by_fn)}"
            )
        pairs = checked_eval_metric_ops(made_by_fn)
    recorded = RecordedGraph(graph)
    made = {name: keras_metric_of(name, recorded, *pair, calls) for name, pair in pairs.items()}
    missing = [name for name, counted in made.items() if counted is None]
    if missing:
        tf1.logging.warning(
            "No Keras metric for %s: what they are made of is more than variables of their own and "
            "the tensors of metric_fn.",
            ", ".join(missing),
        )
    names = [feed.name for feed in tf.nest.flatten(feeds)]
    return {
        name: EvalMetric(counted, _inputs_of(graph, counted.inputs, names), tensors)
        for name, counted in made.items()
        if counted is not None
    }


def _check_fit(metric_fn: Callable[..., Any], tensors: Any) -> None:
    """Raises TypeError if metric_fn does not take tensors of these names, or so many."""
    try:
        signature = inspect.signature(metric_fn)
    except ValueError:
        return  # of functions written in C
    try:
        signature.bind(**tensors) if isinstance(tensors, dict) else signature.bind(*tensors)
    except TypeError as error:
        raise TypeError(f"tensors do not fit {location(metric_fn)}: {error}") from None


def _inputs_of(graph: tf.Graph, inputs: Sequence[str], feeds: Sequence[str]) -> Callable[..., Any]:
    """A function from the values of `feeds` to those of `inputs`."""
    with modern_world():
        function = Replay.of_graph(graph).function(inputs, feeds=feeds)
    dtypes = [graph.get_tensor_by_name(name).dtype for name in feeds]

    def inputs_of(*values: Any) -> Any:
        return function(*map(tf.convert_to_tensor, values, dtypes))

    return inputs_of


def _placeholder(leaf: Any) -> tf.Tensor:
    if isinstance(leaf, tf.TensorSpec):
        return tf1.placeholder(leaf.dtype, leaf.shape)
    value = tf.type_spec_from_value(leaf) if tf.is_tensor(leaf) else tf.constant(leaf)
    shape = value.shape.as_list() if value.shape.rank is not None else None
    return tf1.placeholder(value.dtype, [None, *shape[1:]] if shape else shape)
