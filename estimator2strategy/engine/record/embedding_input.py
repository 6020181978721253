"""Embedding tables of cores: ids of batches as the dense tensors that cores take, and updates.

Source: `split_inputs`, tensorflow_estimator 2.15 tpu/_tpu_estimator_embedding.py, and
`pad_sparse_embedding_lookup_indices`, tensorflow 2.15 python/tpu/feature_column_v2.py;
`optimization_parameters.proto` and python/tpu/tpu_embedding.py for the updates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from estimator2strategy.engine import _tf_private

tf1 = tf.compat.v1

Features: TypeAlias = "dict[str, Any]"
Slots: TypeAlias = "Mapping[str, tf.Tensor]"
_Update: TypeAlias = tuple[tf.Tensor, dict[str, tf.Tensor]]  # the step, and the new slots

# Class of parameters -> slot -> (suffix of its variable's name, its value at the start).
SLOTS: Mapping[str, Mapping[str, tuple[str, Callable[[Any], float]]]] = {
    "StochasticGradientDescentParameters": {},
    "AdagradParameters": {"accumulator": ("Adagrad", lambda p: p.initial_accumulator)},
    "AdamParameters": {
        "m": ("Adam/m", lambda p: 0.0),
        "v": ("Adam/v", lambda p: 0.0),
    },
}


def with_features(result: Any, change: Callable[[Features], Features]) -> Any:
    """The result of input_fn, a Dataset or tensors, with `change` made to its features."""
    if not isinstance(result, tf.data.Dataset):
        features, *labels = result if isinstance(result, (tuple, list)) else (result,)
        return (change(features), *labels)

    def changed(*element: Any) -> Any:
        if len(element) == 1 and isinstance(element[0], tuple):
            (element,) = element
        features, *labels = element
        return (change(features), *labels) if labels else change(features)

    return result.map(changed)


def padded(features: Features, columns: Iterable[Any], batch_size: int | None) -> Features:
    """Features with the ids of `columns` as `embedding_lookup_device="tpu_tensor_core"` wants them.

    Each becomes two: ids, int32 [batch, n] with 0 where an example has fewer than n, and a mask,
    float32 [batch, n] with 1 where there is an id. `tensor_core_shape` of the column has n, and
    further ids are left out.

    Args:
        features: With a SparseTensor of integers for each column.
        batch_size: The static size of the first axis; None: it has none.

    Raises:
        ValueError: Ids are no integers, or are dense, or a mask's name is taken.
    """
    features = dict(features)
    for column in columns:
        key = column.categorical_column.key
        mask_key = key + _tf_private.TENSOR_CORE_MASK_SUFFIX
        if mask_key in features:
            raise ValueError(f"Mask key {mask_key} for Tensor Core embedding is already in use.")
        ids = checked_ids(key, features[key])
        if not isinstance(ids, tf.SparseTensor):
            raise ValueError(
                f"Feature {key} has a column with embedding_lookup_device='tpu_tensor_core', which "
                f"takes a SparseTensor from input_fn; got {ids}. tf.sparse.from_dense makes one."
            )
        longest = _tf_private.tensor_core_length(column)
        shape = [ids.dense_shape[0], longest]
        ids = tf.sparse.slice(ids, [0, 0], shape)
        present = tf.ones_like(ids.values, tf.float32)
        for name, values in {key: tf.cast(ids.values, tf.int32), mask_key: present}.items():
            features[name] = tf.scatter_nd(ids.indices, values, shape)
            features[name].set_shape([batch_size, longest])
    return features


def checked_ids(name: str, ids: Any) -> Any:
    """`ids`; raises ValueError unless they are integers."""
    if not ids.dtype.is_integer:
        raise ValueError(
            "SparseTensor with string as values are not supported. If you are using "
            "categorical_column_with_vocabulary_file or categorical_column_with_vocabulary_list, "
            "convert the strings to ids in input_fn, by "
            "your_column.categorical_column._transform_feature({your_column.key: "
            f"features[your_column.key]}}). feature_key = {name}."
        )
    return ids


def dense_weights(key: str, weights: Any) -> tf.Tensor:
    """The weights of ids as float32 [batch, most per example].

    Raises:
        ValueError: There are none, or they are dense.
    """
    if weights is None:
        raise ValueError(
            f"Cannot find weights {key} for weighted_categorical_column. Please check if the "
            "weights are present in feature dict. Also note weight-sharing among "
            "weighted_categorical_column is not supported on TPU."
        )
    if not isinstance(weights, tf.SparseTensor):
        raise ValueError(
            f"weighted_categorical_column with weight key name {key} has dense weights. Dense "
            "weights are not supported on TPU. Please use sparse weights instead."
        )
    return tf.sparse.to_dense(tf.cast(weights, tf.float32))


def to_apply(
    parameters: Any, gradient: tf.Tensor, touched: tf.Tensor, num_cores: int
) -> Sequence[tuple[tf.Tensor, tf.Tensor]]:
    """The (gradient, touched) that are applied to a table one after the other.

    They are the sum over the cores, or, without `use_gradient_accumulation`, what each core has,
    first for each row that of the core which had it on a TPU with one host.

    Args:
        gradient: [vocabulary, dimension] of this core.
        touched: [vocabulary], float: the number of this core's lookups of each row.
    """
    if parameters.use_gradient_accumulation:
        sums = tf1.tpu.cross_replica_sum(gradient), tf1.tpu.cross_replica_sum(touched)
        return [(sums[0], sums[1] > 0)]
    gradients = _core_by_core(gradient, num_cores)
    counts = _core_by_core(touched[:, None], num_cores)
    return [(g, count[:, 0] > 0) for g, count in zip(gradients, counts, strict=True)]


def _core_by_core(values: tf.Tensor, num_cores: int) -> list[tf.Tensor]:
    """[rows, n] of each core; the k-th has of row r what core (r + k) % num_cores has."""
    own = tf.reshape(tf.one_hot(_tf_private.replica_id(), num_cores), [num_cores, 1, 1])
    of_all = tf1.tpu.cross_replica_sum(own * values)
    rows = tf.range(values.shape[0])
    return [
        tf.gather_nd(of_all, tf.stack([(rows + k) % num_cores, rows], 1)) for k in range(num_cores)
    ]


def updated(
    parameters: Any,
    rate: Any,
    table: tf.Tensor,
    gradient: tf.Tensor,
    touched: tf.Tensor,
    slots: Slots,
) -> dict[str, tf.Tensor]:
    """The table and its slots after a gradient was applied.

    Args:
        parameters: OptimizationParameters, of a class in `SLOTS`.
        rate: The learning rate of this step.
        table: [vocabulary, dimension].
        gradient: Likewise; 0 where a row was not looked up.
        touched: [vocabulary], bool: the rows that were looked up.
        slots: Slot -> [vocabulary, dimension].
    """
    low, high = parameters.clip_gradient_min, parameters.clip_gradient_max
    gradient = _clipped(gradient, low, high)
    step, after = _UPDATES[type(parameters).__name__](parameters, rate, gradient, slots)
    changed = {"table": table - step, **after}
    if not getattr(parameters, "lazy_adam", True):
        touched = tf.ones_like(touched)
    before = {"table": table, **slots}
    changed = {key: tf.where(touched[:, None], changed[key], before[key]) for key in changed}
    low, high = parameters.clip_weight_min, parameters.clip_weight_max
    return {**changed, "table": _clipped(changed["table"], low, high)}


def _clipped(values: tf.Tensor, low: float | None, high: float | None) -> tf.Tensor:
    values = values if low is None else tf.maximum(values, low)
    return values if high is None else tf.minimum(values, high)


def _sgd(parameters: Any, rate: Any, gradient: tf.Tensor, slots: Slots) -> _Update:
    return rate * gradient, {}


def _adagrad(parameters: Any, rate: Any, gradient: tf.Tensor, slots: Slots) -> _Update:
    accumulator = slots["accumulator"] + tf.square(gradient)
    return rate * gradient * tf.math.rsqrt(accumulator), {"accumulator": accumulator}


def _adam(parameters: Any, rate: Any, gradient: tf.Tensor, slots: Slots) -> _Update:
    """No correction of the moments' bias: the hardware had none."""
    beta1, beta2, epsilon = parameters.beta1, parameters.beta2, parameters.epsilon
    m = beta1 * slots["m"] + (1 - beta1) * gradient
    v = beta2 * slots["v"] + (1 - beta2) * tf.square(gradient)
    if parameters.sum_inside_sqrt:
        step = rate * m * tf.math.rsqrt(v + epsilon**2)
    else:
        step = rate * m / (tf.sqrt(v) + epsilon)
    return step, {"m": m, "v": v}


_UPDATES: Mapping[str, Callable[..., _Update]] = {
    "StochasticGradientDescentParameters": _sgd,
    "AdagradParameters": _adagrad,
    "AdamParameters": _adam,
}
