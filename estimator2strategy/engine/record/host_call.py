"""Parts of a recording's host graph: `host_call` of a TPUEstimatorSpec, metrics of evaluations."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.graph import SUMMARIES, RecordedGraph
from estimator2strategy.engine.plan.rewrites import SINGLE_REPLICA, Rewrite
from estimator2strategy.engine.replay.importer import GraphImporter
from estimator2strategy.engine.replay.splice import Splice
from estimator2strategy.engine.replay.state import State
from estimator2strategy.engine.replay.step_context import StepContext
from estimator2strategy.engine.user_code import location, user_line
from estimator2strategy.errors import RecordingError

tf1 = tf.compat.v1

LOSS = "loss"
GLOBAL_STEP = tf1.GraphKeys.GLOBAL_STEP


@contextlib.contextmanager
def refusing_v1_summaries(function: Callable[..., Any], name: str) -> Iterator[None]:
    """A context for calling a function of the host that must write its summaries itself.

    Raises:
        RecordingError: It makes summaries of TF1, which nobody writes.

    Source: `CatchInvalidHostcallFunctions`, tensorflow_estimator 2.15 tpu_estimator.py.
    """
    graph = tf1.get_default_graph()
    before = len(graph.get_operations())
    yield
    for op in graph.get_operations()[before:]:
        if op.type in SUMMARIES:
            raise RecordingError(
                "Please use tf.contrib.summary instead of tf.summary inside of host_calls.\n"
                f"  {name} {location(function)} makes {op.name!r} at {user_line(op.traceback)}\n"
                "  tf.contrib.summary is tf.summary of TensorFlow 2, on a "
                "tf.summary.create_file_writer(...).as_default()."
            )


def every_n_steps(
    steps: int,
    fetches: Sequence[Any],
    inputs: Sequence[tf.Tensor],
    rewrite: Rewrite = SINGLE_REPLICA,
) -> tuple[tf.Operation, Splice]:
    """Makes the results of a host_call run at steps 0, n, 2n, ... of each execution.

    Args:
        steps: `TPUConfig.experimental_host_call_every_n_steps`.
        fetches: The tensors and ops.
        inputs: The arguments of the host_call.
        rewrite: The change to its nodes.

    Returns:
        The op that stands for it in the host graph, and what it stands for.
    """
    with tf1.name_scope("host_call"):
        op = tf.no_op(name="step")
        done = tf1.placeholder(tf.bool, [], name="done")
    ops = [fetch if isinstance(fetch, tf.Operation) else fetch.op for fetch in fetches]
    names = tuple(fetched.name for fetched in ops)
    fed = [tensor.name for tensor in inputs]

    def trace(
        recorded: RecordedGraph, state: State, values: Sequence[tf.Tensor], context: StepContext
    ) -> list[tf.Tensor]:
        def call() -> tf.Tensor:
            importer = GraphImporter(
                recorded,
                state.handle,
                feeds=dict(zip(fed, values, strict=True)),
                rewrite=rewrite,
            )
            for name in fed:
                importer.wait_with_variables(input_node(name))
            importer.fetch([], names)
            return tf.constant(True)

        if context.index is None:
            return [call()]
        now = tf.equal(context.index % steps, 0)
        return [tf.cond(now, call, lambda: tf.constant(False))]

    return op, Splice(op.name, tuple(fed), (done.name,), trace, ops=names)


def metric_pairs(spec: Any) -> dict[str, tuple[tf.Tensor, Any]]:
    """Name -> (value tensor, update op or tensor) of all metrics, `loss` among them.

    Raises:
        ValueError: model_fn declares a metric of a reserved name.

    Source: `_verify_and_create_loss_metric`, tensorflow_estimator 2.15.
    """
    declared = dict(spec.eval_metric_ops or {})
    if LOSS in declared:
        raise ValueError(
            f'Metric with name "{LOSS}" is not allowed, because Estimator already defines a '
            "default metric with the same name."
        )
    if GLOBAL_STEP in declared:
        raise ValueError(
            "Metric with name `global_step` is not allowed, because Estimator already defines a "
            "default metric with the same name."
        )
    declared[LOSS] = tf1.metrics.mean(spec.loss)
    return {name: _pair(metric) for name, metric in sorted(declared.items())}


def _pair(metric: Any) -> tuple[Any, Any]:
    """(value, update) of a `tf.metrics` pair or of a tf-keras metric that model_fn has updated."""
    if isinstance(metric, (tuple, list)):
        value, update = metric
        return value, tf.group(*tf.nest.flatten(update)) if _nested(update) else update
    return metric.result(), tf.group(*metric.updates)


def _nested(update: Any) -> bool:
    return isinstance(update, (tuple, list, dict))
