"""`tf.tpu.rewrite` and its kin in a plain Session, where TPU cores are emulated.

TensorFlow makes a TPU's graph of the computation, and a CPU has no kernels for that. On an emulated
core the computation is part of the graph around it. Without emulation TensorFlow's own functions
run, for programs that build graphs for a TPU without running them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, cast

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.runtime import devices
from estimator2strategy.engine.runtime.tpu_system import EMULATE_VARIABLE
from estimator2strategy.errors import DeviceError, UnsupportedError

_tpu = tf.compat.v1.tpu

# One of these is set where a program can reach a TPU over the network.
_TPU_VARIABLES = ("TPU_NAME", "TPU_WORKER_HOSTNAMES", "COLAB_TPU_ADDR", "XRT_TPU_CONFIG")


def initialize_system(embedding_config: Any = None, job: str | None = None) -> Any:
    """The op that starts the TPU and gives its topology; an empty string on emulated cores.

    Raises:
        DeviceError: There is no TPU, and none is emulated.
    """
    if devices.emulated_cores():
        return tf.constant("")
    if not any(map(os.environ.get, _TPU_VARIABLES)) and not tf.config.list_physical_devices("TPU"):
        raise DeviceError(
            "tpu.initialize_system: no TPU is attached. To run the computation on emulated cores: "
            "e2s run --emulate-tpu-cores=1 ..., or "
            f"{EMULATE_VARIABLE}=1 in the environment."
        )
    return _tpu.initialize_system(embedding_config, job)


def shutdown_system(job: str | None = None) -> Any:
    """The op that stops the TPU; nothing on emulated cores."""
    return tf.no_op() if devices.emulated_cores() else _tpu.shutdown_system(job)


def rewrite(computation: Callable[..., Any], inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
    """See `tf.compat.v1.tpu.rewrite`; on an emulated core `computation` joins the graph."""
    if not devices.emulated_cores():
        return _tpu.rewrite(computation, inputs, *args, **kwargs)
    return _on_host(computation, inputs or ())


def replicate(
    computation: Callable[..., Any], inputs: Any = None, *args: Any, **kwargs: Any
) -> list[Any]:
    """See `tf.compat.v1.tpu.replicate`.

    Raises:
        UnsupportedError: Cores are emulated, and it is for several.
    """
    if not devices.emulated_cores():
        return cast(list[Any], _tpu.replicate(computation, inputs, *args, **kwargs))
    of_cores = inputs or [[]]
    _one_core("replicate", len(of_cores))
    return [_on_host(computation, of_cores[0])]


def shard(
    computation: Callable[..., Any],
    inputs: Any = None,
    num_shards: int = 1,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """See `tf.compat.v1.tpu.shard`; outputs that are no vectors get a dimension for the shards.

    Raises:
        UnsupportedError: Cores are emulated, and `num_shards` is not 1.
    """
    if not devices.emulated_cores():
        return _tpu.shard(computation, inputs, num_shards, *args, **kwargs)
    _one_core("shard", num_shards)
    outputs = _on_host(computation, inputs or ())
    if isinstance(outputs, tf.Operation):
        return [outputs]
    everywhere = kwargs.get("outputs_from_all_shards", True)
    kept = everywhere if isinstance(everywhere, Sequence) else [everywhere] * len(outputs)
    return [
        tf.expand_dims(output, 0) if all_shards and output.shape.rank == 0 else output
        for output, all_shards in zip(outputs, kept, strict=True)
    ]


def batch_parallel(
    computation: Callable[..., Any], inputs: Any = None, num_shards: int = 1, **kwargs: Any
) -> Any:
    """See `tf.compat.v1.tpu.batch_parallel`.

    Raises:
        UnsupportedError: Cores are emulated, and `num_shards` is not 1.
    """
    if not devices.emulated_cores():
        return _tpu.batch_parallel(computation, inputs, num_shards, **kwargs)
    return shard(computation, inputs, num_shards)


def _one_core(function: str, cores: int) -> None:
    if cores != 1:
        raise UnsupportedError(
            f"tpu.{function} for {cores} cores in a Session: only one core is emulated outside of "
            "a TPUEstimator, for each core had a copy of the variables. Ask for one, or give the "
            "computation to a TPUEstimator as its model_fn."
        )


def _on_host(computation: Callable[..., Any], inputs: Sequence[Any]) -> Any:
    """The results of `computation` as in `tpu.rewrite`: tensors that wait for all returned ops.

    Returns:
        A list of tensors; a structure of them where `computation` returned a nested one; an
        operation where it returned no tensors.
    """
    scope = tf.compat.v1.get_variable_scope()
    use_resource = scope.use_resource
    scope.set_use_resource(True)
    try:
        with _tf_private.tpu_shard_context(1), _tf_private.sums_over_one_core():
            outputs = computation(*(tf.identity(value) for value in inputs))
    finally:
        scope.set_use_resource(use_resource)
    if outputs is None:
        outputs = []
    elif not isinstance(outputs, (dict, list, tuple)):
        outputs = [outputs]
    ops = [part for part in tf.nest.flatten(outputs) if isinstance(part, tf.Operation)]
    with tf.control_dependencies(ops):
        if not isinstance(outputs, dict) and len(ops) == len(outputs):
            return tf.no_op()
        if isinstance(outputs, (list, tuple)) and not any(map(tf.nest.is_nested, outputs)):
            return [tf.identity(o) for o in outputs if not isinstance(o, tf.Operation)]
        return tf.nest.map_structure(
            lambda part: part if isinstance(part, tf.Operation) else tf.identity(part), outputs
        )
