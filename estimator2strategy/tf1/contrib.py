"""The parts of `tf.contrib` (TF 1.15) that TPUEstimator programs use."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from estimator2strategy.estimator import tpu as _estimator_tpu

_v1 = tf.compat.v1


class TPUClusterResolver(tf.distribute.cluster_resolver.TPUClusterResolver):
    """Like TF 1.15's: an empty name means this machine, and touches no network."""

    def __new__(cls, tpu: Any = None, *args: Any, **kwargs: Any):
        return super().__new__(cls) if tpu else _LocalResolver()


class _LocalResolver:
    """Stands for the devices of this machine, whatever they are."""

    def master(self, *unused: Any, **unused_kwargs: Any) -> str:
        return ""

    get_master = master

    def cluster_spec(self) -> None:
        return None

    def get_job_name(self) -> None:
        return None


def layer_norm(
    inputs: tf.Tensor,
    center: bool = True,
    scale: bool = True,
    activation_fn: Callable | None = None,
    reuse: bool | None = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    begin_norm_axis: int = 1,
    begin_params_axis: int = -1,
    scope: Any = None,
) -> tf.Tensor:
    """Layer normalisation over the axes from `begin_norm_axis` on; variables `beta`, `gamma`.

    Without a `scope` each call makes its own: LayerNorm, LayerNorm_1, ...

    Source: `tf.contrib.layers.layer_norm`, TF 1.15.
    """
    with _v1.variable_scope(scope, "LayerNorm", [inputs], reuse=reuse) as variables:
        inputs = tf.convert_to_tensor(inputs)
        shape = inputs.shape.as_list()[begin_params_axis:]
        dtype = inputs.dtype.base_dtype

        def parameter(name: str, initializer: Any) -> tf.Tensor:
            collections = [_v1.GraphKeys.GLOBAL_VARIABLES, _v1.GraphKeys.MODEL_VARIABLES]
            return _v1.get_variable(
                name,
                shape,
                dtype,
                initializer,
                trainable=trainable,
                collections=collections + list(variables_collections or []),
            )

        beta = parameter("beta", _v1.zeros_initializer()) if center else None
        gamma = parameter("gamma", _v1.ones_initializer()) if scale else None
        axes = list(range(begin_norm_axis % len(inputs.shape), len(inputs.shape)))
        mean, variance = _v1.nn.moments(inputs, axes, keep_dims=True)
        # Half precision has no room for 1e-12.
        epsilon = 1e-3 if dtype == tf.float16 else 1e-12
        outputs = tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, epsilon)
        outputs.set_shape(inputs.shape)
        if activation_fn is not None:
            outputs = activation_fn(outputs)
        if outputs_collections:
            _v1.add_to_collections(outputs_collections, outputs)
        del variables
        return outputs


def batch_and_drop_remainder(batch_size: int) -> Callable:
    """`dataset.apply` function: batches of exactly `batch_size`."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def _module(name: str, **members: Any) -> types.ModuleType:
    module = types.ModuleType(f"{__name__}.{name}")
    vars(module).update(members)
    return module


_experimental = _v1.data.experimental
_estimator_names = {name: getattr(_estimator_tpu, name) for name in _estimator_tpu.__all__}

tpu = _module(
    "tpu",
    CrossShardOptimizer=_v1.tpu.CrossShardOptimizer,
    bfloat16_scope=_v1.tpu.bfloat16_scope,
    cross_replica_sum=_v1.tpu.cross_replica_sum,
    **_estimator_names,
)
cluster_resolver = _module("cluster_resolver", TPUClusterResolver=TPUClusterResolver)
layers = _module("layers", layer_norm=layer_norm)
data = _module(
    "data",
    AUTOTUNE=_experimental.AUTOTUNE,
    batch_and_drop_remainder=batch_and_drop_remainder,
    map_and_batch=_experimental.map_and_batch,
    parallel_interleave=_experimental.parallel_interleave,
    shuffle_and_repeat=_experimental.shuffle_and_repeat,
)
