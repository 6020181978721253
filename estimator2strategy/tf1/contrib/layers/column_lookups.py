"""The variables that columns of `tf.contrib.layers` make, and what is looked up in them.

Source: `tf.contrib.layers` feature_column.py and embedding_ops.py, TF 1.15.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator2strategy.tf1.contrib.layers.crossed_features import crossed

_v1 = tf.compat.v1


def variable_of(
    name: str, shape: list[Any], initializer: Any, trainable: bool, collections: Any
) -> Any:
    """A float32 variable, which is one of the model's."""
    keys = [_v1.GraphKeys.GLOBAL_VARIABLES, _v1.GraphKeys.MODEL_VARIABLES]
    return _v1.get_variable(
        name,
        shape,
        tf.float32,
        initializer,
        trainable=trainable,
        collections=list(dict.fromkeys([*keys, *(collections or ())])),
    )


def shared_variable_of(
    name: str, shape: list[Any], initializer: Any, trainable: bool, collections: Any
) -> Any:
    """The graph's variable of embeddings with this name, made at its first use.

    Raises:
        ValueError: The variable has another shape.
    """
    shared = _v1.get_collection_ref(f"SHARED_EMBEDDING_COLLECTION_{name.upper()}")
    if not shared:
        shared.append(variable_of(name, shape, initializer, trainable, collections))
    if shared[0].shape.as_list() != shape:
        raise ValueError(
            f"The embedding variable with name {name} already exists, but its shape does not match "
            "required embedding shape here. Please make sure to use different "
            "shared_embedding_name for different shared embeddings."
        )
    return shared[0]


def matrix(tensor: tf.Tensor) -> tf.Tensor:
    """Numbers as [batch, width]."""
    if tensor.shape.rank == 1:
        return tensor[:, None]
    return tensor if tensor.shape.rank == 2 else _v1.layers.flatten(tensor)


def counts(length: int, ids: tf.SparseTensor, weights: tf.SparseTensor | None) -> tf.Tensor:
    """Counts how often each id occurs in an example, or sums its weights; ids of -1 are none."""
    if weights is None:
        dense = tf.sparse.to_dense(ids, default_value=-1)
        return tf.reduce_sum(tf.one_hot(dense, length), -2)
    is_id = ids.values >= 0
    places = tf.stack([ids.indices[:, 0], tf.cast(ids.values, tf.int64)], 1)
    shape = tf.stack([ids.dense_shape[0], tf.constant(length, tf.int64)])
    scattered = tf.scatter_nd(
        tf.boolean_mask(places, is_id), tf.boolean_mask(weights.values, is_id), shape
    )
    return tf.ensure_shape(scattered, [None, length])


def looked_up(
    variable: Any,
    ids: tf.SparseTensor,
    weights: tf.SparseTensor | None,
    combiner: str,
    max_norm: float | None = None,
) -> tf.Tensor:
    """The rows of an example's ids, put together; zeros where it has none."""
    return _v1.nn.safe_embedding_lookup_sparse(
        variable, ids, weights, combiner=combiner, max_norm=max_norm
    )


def scattered_embedding_lookup(
    params: Any,
    values: Any,
    dimension: int | None,
    name: str | None = None,
    hash_key: int | None = None,
) -> tf.Tensor:
    """Embeddings of which each number is one parameter, found by a hash of the value and its place.

    Args:
        params: A vector of parameters, or a list of its parts.
        values: Strings or integers, [...].
        dimension: The size of an embedding.
        name: Of the scope.
        hash_key: Of the hashes; None: the first hash of TF 1.

    Returns:
        Floats [..., dimension].

    Raises:
        ValueError: `dimension` is missing, or not positive.

    Source: `tf.contrib.layers.scattered_embedding_lookup`, TF 1.15.
    """
    if dimension is None:
        raise ValueError("You must specify dimension.")
    if dimension <= 0:
        raise ValueError(f"Dimension must be >0. Given is {dimension}")
    with _v1.name_scope(name, "scattered_embedding_lookup"):
        values = tf.convert_to_tensor(values)
        flat = tf.reshape(values, [-1, 1])
        places = tf.tile(tf.range(dimension)[None, :], tf.shape(flat))
        ids = tf.sparse.to_dense(crossed([places, flat], _size(params), hash_key))
        looked_up = _v1.nn.embedding_lookup(params, ids, partition_strategy="div")
        return tf.reshape(looked_up, tf.concat([tf.shape(values), [dimension]], 0))


def _size(params: Any) -> int:
    parts = params if isinstance(params, (list, tuple)) else [params]
    return sum(part.shape.as_list()[0] for part in parts)


def scattered_embedding_lookup_sparse(
    params: Any,
    sparse_values: Any,
    dimension: int,
    combiner: str | None = None,
    default_value: Any = None,
    name: str | None = None,
    hash_key: int | None = None,
) -> tf.Tensor:
    """`scattered_embedding_lookup` of sparse values, those of an example put together.

    Args:
        params: A vector of parameters, or a list of its parts.
        sparse_values: A SparseTensor [batch, longest] of strings or integers.
        dimension: The size of an embedding.
        combiner: "mean", which is the default, "sqrtn" or "sum".
        default_value: The value of an example that has none; by default one that is rarely met.
        name: Of the scope.
        hash_key: As for `scattered_embedding_lookup`.

    Returns:
        Floats [batch, dimension].

    Raises:
        TypeError: `sparse_values` is no SparseTensor.
        ValueError: `combiner` is another one.

    Source: `tf.contrib.layers.scattered_embedding_lookup_sparse`, TF 1.15.
    """
    if not isinstance(sparse_values, tf.SparseTensor):
        raise TypeError("sparse_values must be SparseTensor")
    combine = _COMBINED.get(combiner or "mean")
    if combine is None:
        raise ValueError("Combiner must be one of 'mean', 'sqrtn' or 'sum'.")
    with _v1.name_scope(name, "scattered_embedding_lookup_sparse"):
        if default_value is None:
            default_value = _RARE_WORD if sparse_values.dtype == tf.string else _RARE_NUMBER
        filled, _ = tf.sparse.fill_empty_rows(
            sparse_values, tf.cast(default_value, sparse_values.dtype)
        )
        examples = tf.cast(filled.indices[:, 0], tf.int32)
        values, places = tf.unique(filled.values)
        embeddings = scattered_embedding_lookup(params, values, dimension, hash_key=hash_key)
        return combine(embeddings, places, examples)


_RARE_WORD, _RARE_NUMBER = "6ZxWzWOHxZ", 1288896567
_COMBINED = {
    "sum": tf.sparse.segment_sum,
    "mean": tf.sparse.segment_mean,
    "sqrtn": tf.sparse.segment_sqrt_n,
}
