"""Drop-in for `tf.estimator.experimental`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.user_code import argument_names, location
from estimator2strategy.estimator.canned.kmeans import KMeansClustering as KMeans
from estimator2strategy.estimator.canned.networks import (
    dnn_logit_fn_builder,
    linear_logit_fn_builder,
)
from estimator2strategy.estimator.canned.recurrent_estimators import (
    RNNClassifierV2 as RNNClassifier,
)
from estimator2strategy.estimator.canned.recurrent_estimators import RNNEstimatorV2 as RNNEstimator
from estimator2strategy.estimator.canned.sdca import LinearSDCA
from estimator2strategy.estimator.checkpoint_step import make_stop_at_checkpoint_step_hook
from estimator2strategy.estimator.early_stopping import (
    make_early_stopping_hook,
    stop_if_higher_hook,
    stop_if_lower_hook,
    stop_if_no_decrease_hook,
    stop_if_no_increase_hook,
)
from estimator2strategy.estimator.export import build_raw_supervised_input_receiver_fn
from estimator2strategy.estimator.in_memory_evaluator import InMemoryEvaluatorHook

__all__ = [
    "InMemoryEvaluatorHook",
    "KMeans",
    "LinearSDCA",
    "RNNClassifier",
    "RNNEstimator",
    "build_raw_supervised_input_receiver_fn",
    "call_logit_fn",
    "dnn_logit_fn_builder",
    "linear_logit_fn_builder",
    "make_early_stopping_hook",
    "make_stop_at_checkpoint_step_hook",
    "stop_if_higher_hook",
    "stop_if_lower_hook",
    "stop_if_no_decrease_hook",
    "stop_if_no_increase_hook",
]


def call_logit_fn(
    logit_fn: Callable[..., Any], features: Any, mode: str, params: Any, config: Any
) -> tf.Tensor | dict[str, tf.Tensor]:
    """Calls a function that makes logits, as the building block of a model_fn.

    Args:
        logit_fn: Called with `features` and with those of the others that it takes, by name.
        features: Dict of name to tensor.
        mode: A ModeKeys.
        params: Hyperparameters.
        config: A RunConfig.

    Returns:
        What logit_fn returns.

    Raises:
        ValueError: That is no tensor and no dict of string to tensor.

    Source: `tf.estimator.experimental.call_logit_fn`, tensorflow_estimator 2.15.
    """
    names = argument_names(logit_fn)
    given = {"mode": mode, "params": params, "config": config}
    logits = logit_fn(features=features, **{k: v for k, v in given.items() if k in names})
    parts = logits if isinstance(logits, dict) else {"": logits}
    if all(isinstance(k, str) and isinstance(v, tf.Tensor) for k, v in parts.items()):
        return logits
    raise ValueError(
        "logit_fn should return a Tensor or a dictionary mapping strings to Tensors.  "
        f"{location(logit_fn)} returned: {logits}"
    )
