"""The model_fns of canned Estimators, for programs that call them in a model_fn of theirs.

Source: tensorflow_estimator 1.15 and 2.15 canned/dnn.py, linear.py, dnn_linear_combined.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.errors import UnsupportedError
from estimator2strategy.estimator.canned import combined, dnn, linear
from estimator2strategy.estimator.canned.networks import Activation, Linear
from estimator2strategy.estimator.run_config import RunConfig


def dnn_model_fn(
    features: Any,
    labels: Any,
    mode: str,
    head: Any,
    hidden_units: Sequence[int],
    feature_columns: Sequence[Any],
    optimizer: Any = "Adagrad",
    activation_fn: Activation = tf.nn.relu,
    dropout: float | None = None,
    input_layer_partitioner: Callable[..., Any] | None = None,
    config: RunConfig | None = None,
    use_tpu: bool = False,
    batch_norm: bool = False,
) -> Any:
    """The spec of a deep network; with `use_tpu` a TPUEstimatorSpec."""
    network = dnn.network_of(locals())
    return dnn.model_fn_v1(head, network, optimizer, use_tpu)(features, labels, mode, config)


def linear_model_fn(
    features: Any,
    labels: Any,
    mode: str,
    head: Any,
    feature_columns: Sequence[Any],
    optimizer: Any,
    partitioner: Callable[..., Any] | None,
    config: RunConfig | None,
    sparse_combiner: str = "sum",
) -> Any:
    """The spec of a linear model."""
    network = Linear(tuple(feature_columns), sparse_combiner, partitioner)
    return linear.model_fn_v1(head, network, optimizer)(features, labels, mode, config)


def dnn_linear_combined_model_fn(
    features: Any,
    labels: Any,
    mode: str,
    head: Any,
    linear_feature_columns: Sequence[Any] | None = None,
    linear_optimizer: Any = "Ftrl",
    dnn_feature_columns: Sequence[Any] | None = None,
    dnn_optimizer: Any = "Adagrad",
    dnn_hidden_units: Sequence[int] | None = None,
    dnn_activation_fn: Activation = tf.nn.relu,
    dnn_dropout: float | None = None,
    input_layer_partitioner: Callable[..., Any] | None = None,
    config: RunConfig | None = None,
    batch_norm: bool = False,
    linear_sparse_combiner: str = "sum",
) -> Any:
    """The spec of the sum of a linear model and a deep network."""
    parts = combined.parts_of(locals())
    return combined.model_fn_v1(head, parts)(features, labels, mode, config)


def dnn_model_fn_v2(
    features: Any,
    labels: Any,
    mode: str,
    head: Any,
    hidden_units: Sequence[int],
    feature_columns: Sequence[Any],
    optimizer: Any = "Adagrad",
    activation_fn: Activation = tf.nn.relu,
    dropout: float | None = None,
    config: RunConfig | None = None,
    use_tpu: bool = False,
    batch_norm: bool = False,
) -> Any:
    """The spec of a deep network of TF 2."""
    if use_tpu:
        raise UnsupportedError("dnn_model_fn_v2(use_tpu=True) is not supported: leave it out.")
    network = dnn.network_of(locals())
    return dnn.model_fn_v2(head, network, optimizer)(features, labels, mode)


def linear_model_fn_v2(
    features: Any,
    labels: Any,
    mode: str,
    head: Any,
    feature_columns: Sequence[Any],
    optimizer: Any,
    config: RunConfig | None = None,
    sparse_combiner: str = "sum",
) -> Any:
    """The spec of a linear model of TF 2."""
    network = Linear(tuple(feature_columns), sparse_combiner)
    return linear.model_fn_v2(head, network, optimizer)(features, labels, mode)
