"""Evaluation: what model_fn declared becomes metrics, a loop over batches, results and events."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from estimator2strategy import _tf_private
from estimator2strategy.metrics.splices import metric_splices
from estimator2strategy.record.recording import Recording
from estimator2strategy.replay.session import Step
from estimator2strategy.runtime.lookahead import Iterations, IterationsPerLoop, Lookahead
from estimator2strategy.runtime.monitored import ReplaySessionCreator

tf1 = tf.compat.v1
Hook: TypeAlias = tf1.train.SessionRunHook
LOSS = "loss"
GLOBAL_STEP = tf1.GraphKeys.GLOBAL_STEP


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


def evaluate(
    recording: Recording,
    metrics: Mapping[str, tuple[Any, Any]],
    calls: Sequence[Any],
    checkpoint_path: str | None,
    hooks: Sequence[Hook],
) -> dict[str, Any]:
    """Runs the recorded evaluation until a hook stops it or the input ends.

    Must be called with `recording.graph` as the default graph.

    Args:
        metrics: Name -> (value, update), in the recorded graph; see `metric_pairs`.
        calls: The `tf.metrics` calls that were observed; those become Keras metrics.

    Returns:
        Name -> numpy value, `global_step` included.

    Source: `_evaluate_once`, tensorflow/python/training/evaluation.py.
    """
    spec = recording.spec
    splices = (*recording.splices, *metric_splices(recording.graph, metrics, calls))
    recording = dataclasses.replace(recording, splices=splices)
    eval_step = _tf_private.get_or_create_eval_step()
    updates = [update for _, update in metrics.values()]
    eval_op = tf.group(*updates, tf1.assign_add(eval_step, 1, use_locking=True))
    with tf.control_dependencies([eval_op]):
        batches_done = tf.identity(eval_step.read_value())
    finals = {name: value for name, (value, _) in metrics.items()}
    finals[GLOBAL_STEP] = tf1.train.get_global_step()
    for hook in hooks:
        if isinstance(hook, _tf_private.StopAfterNEvalsHook):
            hook._set_evals_completed_tensor(batches_done)
    final_hook = tf1.train.FinalOpsHook(finals)
    all_hooks = [*recording.input_hooks, *hooks, *(spec.evaluation_hooks or []), final_hook]
    tf1.logging.info("Starting evaluation at " + time.strftime("%Y-%m-%dT%H:%M:%S"))
    started = time.time()
    creator = ReplaySessionCreator(recording, checkpoint_path=checkpoint_path)
    with tf1.train.MonitoredSession(session_creator=creator, hooks=all_hooks) as monitored:
        # Several cores evaluate all batches in one call, as a TPU did.
        whole = IterationsPerLoop(sys.maxsize, "count")
        several = recording.iterations is not None
        pace = Iterations(whole, all_hooks) if several else Lookahead(all_hooks)
        _loop(monitored, creator.session, eval_op, pace)
    tf1.logging.info(f"Inference Time : {time.time() - started:0.5f}s")
    tf1.logging.info("Finished evaluation at " + time.strftime("%Y-%m-%d-%H:%M:%S"))
    return final_hook.final_ops_values


def _loop(monitored, session, eval_op: tf.Operation, pace: Lookahead | Iterations) -> None:
    session.step = Step(eval_op.name)
    batches = 0
    while not monitored.should_stop():
        session.steps_ahead = pace.steps(batches)
        monitored.run(eval_op)
        pace.ran(session.steps_run)
        batches += session.steps_run


def write_results(folder: str, results: Mapping[str, Any], checkpoint_path: str | None) -> None:
    """Logs results, and writes them as events where TensorBoard looks for them.

    Must be called in graph mode: FileWriters are refused in eager mode.

    Source: `_write_dict_to_summary`, tensorflow_estimator 2.15.
    """
    step = int(results[GLOBAL_STEP])
    shown = {k: v for k, v in sorted(results.items()) if not isinstance(v, bytes)}
    text = ", ".join(f"{name} = {value}" for name, value in shown.items())
    tf1.logging.info("Saving dict for global step %d: %s", step, text)
    writer = tf1.summary.FileWriterCache.get(folder)
    summary = tf1.Summary()
    for name, value in results.items():
        if name != GLOBAL_STEP and value is not None:
            _add_value(summary, name, value)
    writer.add_summary(summary, step)
    if checkpoint_path:
        tf1.logging.info(
            "Saving 'checkpoint_path' summary for global step %d: %s", step, checkpoint_path
        )
        path = tf1.Summary()
        tensor = tf.make_tensor_proto(checkpoint_path, tf.string)
        path.value.add(tag="checkpoint_path", tensor=tensor)
        writer.add_summary(path, step)
    writer.flush()


def _add_value(summary: tf1.Summary, name: str, value: Any) -> None:
    """Adds one result: a number, a vector (as a tensor), or a serialized Summary (as its parts)."""
    if isinstance(value, (float, int, np.floating, np.integer)):
        summary.value.add(tag=name, simple_value=float(value))
    elif isinstance(value, bytes):
        try:
            parts = tf1.Summary.FromString(value)
        except Exception:  # protobuf's DecodeError, whichever implementation is installed
            tf1.logging.warn("Skipping summary for %s, cannot parse string to Summary.", name)
            return
        for i, part in enumerate(parts.value):
            part.tag = f"{name}/{i}"
        summary.value.extend(parts.value)
    elif isinstance(value, np.ndarray):
        summary.value.add(tag=name, tensor=tf.make_tensor_proto(value))
    else:
        tf1.logging.warn(
            "Skipping summary for %s, must be a float, np.float32, np.int64, np.int32 or int or "
            "np.ndarray or a serialized string of Summary.",
            name,
        )
