"""Calls a model_fn with those of TPUEstimator's arguments that it declares."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.record.model_fn import not_a_spec
from estimator2strategy.engine.user_code import argument_names, location
from estimator2strategy.engine.wrong_argument import wrong_argument
from estimator2strategy.estimator.specs import EstimatorSpec, TPUEstimatorSpec
from estimator2strategy.estimator.tpu_context import Deployment, TPUContext

tf1 = tf.compat.v1


def call_tpu_model_fn(
    model_fn: Callable[..., Any],
    features: Any,
    labels: Any,
    deployment: Deployment,
    params: Any,
    config: Any,
    use_tpu: bool = False,
) -> Any:
    """Calls the model_fn of a TPUEstimator; returns the spec as it is.

    Args:
        deployment: The devices that it runs on.
        params: Hyperparameters; model_fn gets a copy, with what TPUEstimator adds.
        use_tpu: Makes `params['use_tpu']` true on the host too.

    Raises:
        ValueError: It takes no labels, and there are some; or it takes no params.
    """
    names = argument_names(model_fn)
    if labels is not None and "labels" not in names:
        raise ValueError("model_fn does not take labels, but input_fn returns labels.")
    if "params" not in names:
        raise wrong_argument(
            f"model_fn {location(model_fn)} does not include params argument, required "
            "by TPUEstimator to pass batch size as params['batch_size']",
            names,
            "Let model_fn take params.",
        )
    params = copy.deepcopy(params)
    set_param(params, "use_tpu", use_tpu or not deployment.on_host)
    if deployment.model_batch_size is not None:
        set_param(params, "batch_size", deployment.model_batch_size)
    if not deployment.on_host:
        set_param(params, "context", TPUContext(deployment))
    available = {"labels": labels, "mode": deployment.mode, "params": params, "config": config}
    arguments = {name: value for name, value in available.items() if name in names}
    return model_fn(features=features, **arguments)


def checked_spec(spec: Any, model_fn: Callable[..., Any]) -> EstimatorSpec:
    """The EstimatorSpec that model_fn returned, or that its TPUEstimatorSpec is on one device.

    Raises:
        ValueError: It is neither.
    """
    if isinstance(spec, TPUEstimatorSpec):
        spec = spec.as_estimator_spec()
    if not isinstance(spec, EstimatorSpec):
        raise not_a_spec(spec, model_fn)
    return spec


def set_param(params: Any, key: str, value: Any) -> None:
    """Sets a hyperparameter of a dict, or of a `tf.contrib.training.HParams`."""
    if not hasattr(params, "set_hparam"):
        params[key] = value
    elif key in params:
        params.set_hparam(key, value)
    else:
        params.add_hparam(key, value)
