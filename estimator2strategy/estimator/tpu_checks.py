"""What a TPUEstimator refuses, and what it says about it.

Source of the key words in the messages: tensorflow_estimator 2.15 tpu_estimator.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import tensorflow as tf

from estimator2strategy.estimator.specs import EstimatorSpec, TPUEstimatorSpec
from estimator2strategy.estimator.tpu_config import check_positive_integer
from estimator2strategy.record.functions import location


def check_batch_sizes(train: int | None, evaluate: int | None, predict: int | None) -> None:
    """Raises ValueError or TypeError unless the global batch sizes are positive ints."""
    if train is None:
        raise ValueError("`train_batch_size` cannot be `None`")
    sizes = {"train_batch_size": train, "eval_batch_size": evaluate, "predict_batch_size": predict}
    for name, size in sizes.items():
        if size is not None:
            check_positive_integer(size, name)


def check_given_steps(steps: Any, name: str) -> None:
    """Raises ValueError or TypeError if `steps` is given and no positive int."""
    if steps is not None:
        check_positive_integer(steps, name)


def check_static(tensors: Iterable[tf.Tensor], input_fn: Callable) -> None:
    """Raises ValueError unless all shapes of a core's input are known."""
    for tensor in tensors:
        if not tensor.shape.is_fully_defined():
            raise ValueError(
                "The features to the model returned by input_fn must have static shape. Tensor: "
                f"{tensor}, from {location(input_fn)}. Use drop_remainder=True where the dataset "
                "is batched."
            )


def check_training_spec(spec: Any, graph: tf.Graph, num_replicas: int, model_fn: Callable) -> None:
    """Raises ValueError unless cores can train what model_fn returned."""
    if isinstance(spec, EstimatorSpec):
        if spec.training_chief_hooks:
            raise ValueError(
                "training_chief_hooks returned by EstimatorSpec is not supported in TPUEstimator. "
                "If you want to pass training hooks, please pass via training_hooks."
            )
    elif not isinstance(spec, TPUEstimatorSpec):
        raise ValueError(
            f"model_fn should return a TPUEstimatorSpec, but {location(model_fn)} returned "
            f"{type(spec).__name__}."
        )
    if num_replicas > 1 and not _sums_over_cores(graph):
        raise ValueError(
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
