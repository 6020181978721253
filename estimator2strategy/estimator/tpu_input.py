"""Calls a TPUEstimator's input_fn, as `TPUConfig.per_host_input_for_training` says for cores."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.record import feeding
from estimator2strategy.engine.record.input_fn import call_input_fn
from estimator2strategy.engine.user_code import argument_names, location
from estimator2strategy.estimator.calling import set_param
from estimator2strategy.estimator.tpu_config import InputPipelineConfig
from estimator2strategy.estimator.tpu_context import Deployment, TPUContext


def call_tpu_input_fn(
    input_fn: Callable[..., Any],
    deployment: Deployment,
    params: Any,
    config: Any,
    invocation: int | None = None,
    host: int = 0,
) -> Any:
    """Calls the input_fn of a TPUEstimator; returns what it returns.

    Args:
        params: Hyperparameters; input_fn gets a copy, with what TPUEstimator adds.
        config: The RunConfig; likewise.
        invocation: Which of the calls for the cores this is; None: it is the one for the host.
        host: Index of the host that feeds these cores.

    Raises:
        ValueError: It takes no params.
    """
    if "params" not in argument_names(input_fn):
        raise ValueError(
            f"input_fn {location(input_fn)} does not include params argument, required by "
            'TPUEstimator to pass batch size as params["batch_size"]'
        )
    params = copy.deepcopy(params)
    if deployment.input_batch_size is not None:
        set_param(params, "batch_size", deployment.input_batch_size)
    if invocation is not None:
        set_param(params, "context", TPUContext(deployment, invocation, host))
    available = {"mode": deployment.mode, "params": params, "config": copy.deepcopy(config)}
    return call_input_fn(input_fn, available)


def input_of_replicas(
    call: Callable[[int, int], Any], deployment: Deployment, batch_axis: Sequence[int] | None
) -> feeding.Fed:
    """The input of all replicas; each host takes the batches of its own, on itself.

    Where hosts are processes of their own, it is that of this host's replicas.

    Args:
        call: `call(invocation, host)` calls the user's input_fn.
        batch_axis: As of TPUEstimator.

    Raises:
        UnsupportedError: Another host is to call a Python function, of a generator for example.
    """
    parts, numbers = [], []
    for index, host in enumerate(deployment.feeding_hosts):
        if deployment.here not in (None, index):
            continue
        numbers.append(host.replicas)
        with tf.compat.v1.device(host.device):
            parts.append(_fed_from(index, len(host.replicas), call, deployment, batch_axis))
    feeding.check_no_python_elsewhere(tf.compat.v1.get_default_graph())
    return feeding.together(parts, numbers)


def _fed_from(
    host: int,
    num_replicas: int,
    call: Callable[[int, int], Any],
    deployment: Deployment,
    batch_axis: Sequence[int] | None,
) -> feeding.Fed:
    """The input of a host's replicas."""
    pipeline = deployment.pipeline
    predicts = deployment.mode == ModeKeys.PREDICT
    if predicts and pipeline is InputPipelineConfig.PER_HOST_V1 and batch_axis is not None:
        raise TypeError("For mode PREDICT, batch_axis is not supported yet.")
    if pipeline is InputPipelineConfig.PER_SHARD_V1:  # never in prediction
        first = host * num_replicas
        return feeding.per_shard([call(first + i, host) for i in range(num_replicas)])
    result = call(host, host)
    if predicts:
        batch_size = deployment.input_batch_size or 0  # validate() saw that it is given
        if pipeline is InputPipelineConfig.BROADCAST:
            return feeding.padded_broadcast(result, num_replicas, batch_size)
        whole = pipeline is not InputPipelineConfig.PER_HOST_V2
        return feeding.padded(result, num_replicas, batch_size, whole)
    if pipeline is InputPipelineConfig.PER_HOST_V2:
        return feeding.per_host_v2(result, num_replicas)
    if pipeline is InputPipelineConfig.BROADCAST:
        return feeding.broadcast(result, num_replicas)
    sliced = pipeline is InputPipelineConfig.SLICED
    return feeding.per_host(result, num_replicas, None if sliced else batch_axis)
