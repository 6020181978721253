"""The checks of a TPUEstimator, and their messages.

Source of the key words in the messages: tensorflow_estimator 2.15 tpu_estimator.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.replay.xla.target import NotUnderJaxError
from estimator2strategy.engine.runtime import requested_strategy
from estimator2strategy.engine.user_code import location
from estimator2strategy.engine.wrong_argument import wrong_argument
from estimator2strategy.errors import DeviceError, UnsupportedError
from estimator2strategy.estimator.specs import EstimatorSpec, TPUEstimatorSpec
from estimator2strategy.estimator.tpu_config import InputPipelineConfig, check_positive_integer


def check_use_of_cores(
    tpu_config: Any, train: int | None, evaluate: int | None, predict: int | None
) -> None:
    """Checks that cores can run with these settings; raises as the three checks below."""
    check_batch_sizes(train, evaluate, predict)
    check_model_parallelism(tpu_config)
    check_feed_hook(tpu_config)


def check_batch_sizes(train: int | None, evaluate: int | None, predict: int | None) -> None:
    """Raises ValueError or TypeError unless the global batch sizes are positive ints."""
    if train is None:
        raise ValueError("`train_batch_size` cannot be `None`")
    sizes = {"train_batch_size": train, "eval_batch_size": evaluate, "predict_batch_size": predict}
    for name, size in sizes.items():
        if size is not None:
            check_positive_integer(size, name)


def check_training_steps(steps: Any, max_steps: Any) -> None:
    """Raises ValueError or TypeError unless cores are told for how many steps to train."""
    if steps is None and max_steps is None:
        raise ValueError(
            "For TPU training, one of `steps` or `max_steps` must be set. Cannot be both `None`."
        )
    if steps is not None:
        check_positive_integer(steps, "Train steps")
    if max_steps is not None:
        check_positive_integer(max_steps, "Train max_steps")


def check_evaluation_steps(steps: Any) -> None:
    """Raises ValueError or TypeError unless cores are told how many batches to evaluate."""
    if steps is None:
        raise ValueError("Evaluate `steps` must be set on TPU. Cannot be `None`.")
    check_positive_integer(steps, "Eval steps")


def check_model_parallelism(tpu_config: Any) -> None:
    """Raises ValueError if `per_host_input_for_training` cannot feed a replica of several cores."""
    by_core = tpu_config.per_host_input_for_training is InputPipelineConfig.PER_SHARD_V1
    if by_core and tpu_config.num_cores_per_replica:
        raise ValueError(
            "Model parallelism only supports per host input for training. Please adjust "
            "TPURunconfig.per_host_input_for_training."
        )


def check_feed_hook(tpu_config: Any) -> None:
    """Raises UnsupportedError if a hook is to replace the one that fed a TPU's queues."""
    if tpu_config.experimental_feed_hook is not None:
        raise UnsupportedError(
            "TPUConfig.experimental_feed_hook replaces the hook that ran TPUEstimator's infeed and "
            "outfeed queues.\n"
            "  Here there are none: each step takes its batch itself.\n"
            "  Leave it out. To act between executions, pass a SessionRunHook to train(hooks=...); "
            "to act on the batches, use the Dataset of input_fn."
        )


def check_given_strategy(tpu_config: Any) -> None:
    """Raises DeviceError if TPUConfig, too, says which cores a replica has."""
    if (tpu_config.num_cores_per_replica or 1) > 1:
        raise DeviceError(
            f"TPUConfig.num_cores_per_replica is {tpu_config.num_cores_per_replica}, but it is the "
            "strategy passed that says which cores a replica has.\n"
            "  Leave `strategy` out, so that the cores are dealt out by TPUConfig, or leave "
            "num_cores_per_replica out."
        )


def check_one_core_each(tpu_config: Any) -> None:
    """Raises NotUnderJaxError if TPUConfig spreads a replica over several devices of JAX."""
    if (tpu_config.num_cores_per_replica or 1) > 1:
        raise NotUnderJaxError(
            f"TPUConfig.num_cores_per_replica is {tpu_config.num_cores_per_replica}: under the "
            "runtime of JAX each device is a replica.\n"
            "  Leave num_cores_per_replica out, or --runtime=jax."
        )


def strategy_of_cores(config: Any, use_tpu: bool) -> Any:
    """The strategy of a RunConfig whose replicas stand for a TPU's cores; None: there is none.

    Without `use_tpu` its replicas train as those of an Estimator.
    """
    if not use_tpu:
        return None
    reason = "a TPUEstimator with use_tpu=True trains on the cores of its TPU"
    return requested_strategy.unless_requested(config.train_distribute, reason)


class NotSummedError(ValueError):
    """The gradients of a training are not summed over the cores."""


def check_training_spec(
    spec: Any, graph: tf.Graph, num_replicas: int, model_fn: Callable[..., Any]
) -> None:
    """Raises ValueError unless cores can train what model_fn returned."""
    if isinstance(spec, EstimatorSpec):
        if spec.training_chief_hooks:
            raise ValueError(
                "training_chief_hooks returned by EstimatorSpec is not supported in TPUEstimator. "
                "If you want to pass training hooks, please pass via training_hooks."
            )
        if spec.scaffold:
            tf.compat.v1.logging.warn(
                "EstimatorSpec.Scaffold is ignored by TPU train/eval. Please use TPUEstimatorSpec."
            )
    elif not isinstance(spec, TPUEstimatorSpec):
        raise wrong_argument(
            f"model_fn should return a TPUEstimatorSpec, but {location(model_fn)} returned "
            f"{type(spec).__name__}",
            spec,
            "Return estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op).",
        )
    if num_replicas > 1 and not _sums_over_cores(graph):
        raise NotSummedError(
            "CrossShardOptimizer must be used for model training on TPUs. Without it the cores "
            f"would drift apart: in {location(model_fn)}, wrap the optimizer in "
            "tf.compat.v1.tpu.CrossShardOptimizer(...)."
        )


def _sums_over_cores(graph: tf.Graph) -> bool:
    if any(op.type == "CrossReplicaSum" for op in graph.get_operations()):
        return True
    functions = graph.as_graph_def().library.function
    return any(node.op == "CrossReplicaSum" for f in functions for node in f.node_def)


def checked_tpu_spec(spec: Any, what: str) -> TPUEstimatorSpec:
    """`spec`; raises RuntimeError unless it is a TPUEstimatorSpec."""
    if not isinstance(spec, TPUEstimatorSpec):
        raise RuntimeError(
            f"estimator_spec used by TPU {what} must have type`TPUEstimatorSpec`. Got {type(spec)}"
        )
    return spec


def check_predictions(predictions: Any) -> None:
    """Raises TypeError or ValueError unless they are a dict of batches of static size."""
    if not isinstance(predictions, dict):
        raise TypeError("TPUEstimatorSpec.predictions must be dict of Tensors.")
    for key, tensor in predictions.items():
        if tf.compat.dimension_value(tensor.shape[0]) is None:
            raise ValueError(
                f"The tensor with key ({key}) in TPUEstimatorSpec.predictions has dynamic shape "
                f"(should be static). Tensor: {tensor}"
            )
