"""Calls model_fn with those of Estimator's arguments that it declares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.user_code import argument_names, location

tf1 = tf.compat.v1


def call_model_fn(
    model_fn: Callable, features: Any, labels: Any, mode: str, params: Any, config: Any
) -> Any:
    """Calls the model_fn of an Estimator; returns what it returns.

    Raises:
        ValueError: It takes no labels, and there are some.

    Source: `Estimator._call_model_fn`, tensorflow_estimator 2.15.
    """
    names = argument_names(model_fn)
    if labels is not None and "labels" not in names:
        raise ValueError("model_fn does not take labels, but input_fn returns labels.")
    available = {"labels": labels, "mode": mode, "params": params, "config": config}
    tf1.logging.info("Calling model_fn.")
    spec = model_fn(features=features, **{k: v for k, v in available.items() if k in names})
    tf1.logging.info("Done calling model_fn.")
    return spec


def not_a_spec(spec: Any, model_fn: Callable) -> ValueError:
    """The error for what a model_fn returned and should not have."""
    return ValueError(
        f"model_fn should return an EstimatorSpec, but {location(model_fn)} "
        f"returned {type(spec).__name__}."
    )
