"""The host's work on results of the replicas: predictions, metrics and host calls."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.record.host_call import every_n_steps
from estimator2strategy.engine.record.replicated import RecordedReplicas
from estimator2strategy.engine.runtime import jax_hosts
from estimator2strategy.engine.runtime.hooks import HostCallHook
from estimator2strategy.estimator.specs import call_on_host, checked_eval_metric_ops
from estimator2strategy.estimator.tpu_config import InputPipelineConfig
from estimator2strategy.estimator.tpu_context import Deployment


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
