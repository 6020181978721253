"""Prepares the embedding ids of input_fn's batches for cores, which take dense tensors only.

Source: `split_inputs`, tensorflow_estimator 2.15 tpu/_tpu_estimator_embedding.py, and
`pad_sparse_embedding_lookup_indices`, tensorflow 2.15 python/tpu/feature_column_v2.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import tensorflow as tf

from estimator2strategy.engine import _tf_private

Features: TypeAlias = "dict[str, Any]"


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
