"""The host's part of a TPUEstimator: results of the replicas, the Scaffold, the log of training."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.record.host_call import every_n_steps
from estimator2strategy.engine.record.replicated import RecordedReplicas
from estimator2strategy.engine.runtime import jax_hosts
from estimator2strategy.engine.runtime.hooks import ExamplesPerSecondHook, HostCallHook
from estimator2strategy.engine.runtime.lookahead import IterationsPerLoop, LoopUnit
from estimator2strategy.engine.user_code import location, user_line
from estimator2strategy.estimator.specs import call_on_host, checked_eval_metric_ops
from estimator2strategy.estimator.tpu_config import InputPipelineConfig
from estimator2strategy.estimator.tpu_context import Deployment

tf1 = tf.compat.v1


def outfed(replicas: RecordedReplicas, tensors: Any, deployment: Deployment) -> Any:
    """Host stand-ins for a list or dict of what the cores computed."""
    same = deployment.pipeline is InputPipelineConfig.BROADCAST
    return tf.nest.map_structure(replicas.first if same else replicas.concat, tensors)


def without_padding(
    predictions: dict[str, tf.Tensor], replicas: RecordedReplicas, deployment: Deployment
) -> dict[str, tf.Tensor]:
    """Predictions without those for examples that filled the last batch up."""
    padding = replicas.fed.padding or []
    if deployment.pipeline is InputPipelineConfig.BROADCAST:
        padding = padding[:1]
    real = tf.equal(tf.concat(padding, 0), 0)
    return {k: tf.compat.v1.boolean_mask(v, real) for k, v in predictions.items()}


def eval_metrics_of(
    replicas: RecordedReplicas, deployment: Deployment
) -> dict[str, tuple[Any, Any]]:
    """Name -> (value, update): what metric_fn makes of what all cores computed."""
    function, tensors = replicas.spec.eval_metrics
    stand_ins = outfed(replicas, tensors, deployment)
    with replicas.on_host(function, "metric_fn") as results:
        metrics = checked_eval_metric_ops(call_on_host((function, stand_ins)))
        results += tf.nest.flatten(metrics)
    return metrics


def host_call_hooks(
    replicas: RecordedReplicas, deployment: Deployment, every: int
) -> list[HostCallHook]:
    """The hook that runs the spec's host_call, where there is one.

    In training it runs `every` so many steps, and only if it is given tensors.
    """
    trains = deployment.mode == ModeKeys.TRAIN
    host_call = getattr(replicas.spec, "host_call", None)
    if host_call is None or (trains and not host_call[1]):
        return []
    function, tensors = host_call
    stand_ins = outfed(replicas, tensors, deployment)
    with replicas.on_host(function, "host_call") as results:
        fetches = call_on_host((function, stand_ins))
        results += [fetch for fetch in tf.nest.flatten(fetches) if fetch is not None]
    if trains and every > 1:
        inputs = tf.nest.flatten(stand_ins)
        fetches, splice = every_n_steps(every, results, inputs, jax_hosts.rewrite_on_host())
        replicas.later.append(splice)
    return [HostCallHook(fetches)]


def scaffold_of(spec: Any, replicas: RecordedReplicas) -> tf1.train.Scaffold | None:
    """Calls scaffold_fn, on the host.

    Raises:
        ValueError: It returns no Scaffold, or uses what the cores compute from a batch.
    """
    scaffold_fn = getattr(spec, "scaffold_fn", None)
    if scaffold_fn is None:
        return None
    graph = tf1.get_default_graph()
    before = len(graph.get_operations())
    scaffold = scaffold_fn()
    if scaffold is None:
        raise ValueError("TPUEstimatorSpec.scaffold_fn returns None, which is not allowed")
    capture = replicas.capture(since=before)
    if capture and capture.user:
        raise ValueError(
            f"scaffold_fn {location(scaffold_fn)}: op {capture.user.name} depends on a TPU "
            "computation, which is not allowed. It was made at "
            f"{user_line(capture.user.traceback)}. What the cores compute reaches the host through "
            "a host_call."
        )
    if replicas.left_out and scaffold.summary_op is None:
        summary = replicas.left_out[0].op
        raise ValueError(
            f"scaffold_fn {location(scaffold_fn)}: Scaffold.finalize merges all summaries, and "
            f"{summary.name} depends on a TPU computation, which is not allowed. It was made at "
            f"{user_line(summary.traceback)}. Make it in a host_call."
        )
    return scaffold


@dataclasses.dataclass(frozen=True)
class TrainingLog:
    """The hooks that log a training.

    Attributes:
        log_every: `RunConfig.log_step_count_steps`; None: nothing is logged.
        iterations: `TPUConfig.iterations_per_loop`.
        batch_size: The global batch size, in examples.
        output_dir: A folder for summaries of the rates; None: no summaries.
    """

    log_every: int | None
    iterations: IterationsPerLoop
    batch_size: int | None
    output_dir: str | None

    def hooks(self, loss: tf.Tensor, *, on_host: bool) -> list[tf1.train.SessionRunHook]:
        """The hooks that log.

        The rates come every `log_every / iterations` steps, on the host too: that is how the
        original reads `log_step_count_steps`. It did not log the loss on the host; we do.

        Args:
            loss: Scalar.
            on_host: True if hooks see every step, and not only every execution.

        Source: `TPUEstimator.__init__` and `_augment_model_fn`, tensorflow_estimator 2.15.
        """
        iterations, log_every = self.iterations, self.log_every
        if not log_every:
            return []
        tensors = {"loss": loss, "step": tf1.train.get_global_step()}
        if iterations.unit is LoopUnit.SECONDS:
            every = {"every_n_secs": iterations.value}
            loss_hook = tf1.train.LoggingTensorHook(tensors, **every)
            rates = ExamplesPerSecondHook(
                self.batch_size, every_n_steps=None, output_dir=self.output_dir, **every
            )
            return [loss_hook, rates]
        runs = math.ceil(log_every / iterations.value)
        rates = ExamplesPerSecondHook(
            self.batch_size, every_n_steps=runs, output_dir=self.output_dir
        )
        if not on_host:
            rates._set_steps_per_run(iterations.value)
        every_n_iter = log_every if on_host else runs
        return [tf1.train.LoggingTensorHook(tensors, every_n_iter=every_n_iter), rates]
