"""Feature columns of `tf.contrib.layers`, as they were before `tf.feature_column`.

`layer_column_kinds.py` has what they do, and `layer_inputs.py` makes inputs of networks of them.

Source: `tf.contrib.layers` feature_column.py, TF 1.15.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.tf1.contrib.layer_column_kinds import (
    _BucketizedColumn,
    _CrossedColumn,
    _EmbeddingColumn,
    _OneHotColumn,
    _RealValuedColumn,
    _SparseColumn,
    _SparseColumnHashed,
    _SparseColumnIntegerized,
    _SparseColumnKeys,
    _SparseColumnVocabulary,
    _SparseIdLookupConfig,
    _WeightedSparseColumn,
)

_v1 = tf.compat.v1


def real_valued_column(
    column_name: str,
    dimension: int = 1,
    default_value: Any = None,
    dtype: tf.DType = tf.float32,
    normalizer: Callable | None = None,
) -> _RealValuedColumn:
    """A column of numbers.

    Args:
        column_name: Of the feature, [batch, dimension].
        dimension: How many numbers an example has.
        default_value: What an example without the feature has: a number, or a list of them.
        dtype: Of the feature; the column is of floats.
        normalizer: Applied to the feature.

    Raises:
        TypeError: `dimension` is no int, or `default_value` does not fit to `dtype`.
        ValueError: `dimension` is not positive, `dtype` no number, or `default_value` too short.
    """
    if not isinstance(dimension, int):
        raise TypeError(f"dimension must be an integer. dimension: {dimension}, {column_name=}")
    if dimension < 1:
        raise ValueError(
            f"dimension must be greater than 0. dimension: {dimension}, {column_name=}"
        )
    if not (dtype.is_integer or dtype.is_floating):
        raise ValueError(f"dtype must be convertible to float. dtype: {dtype}, {column_name=}")
    if default_value is None:
        return _RealValuedColumn(column_name, dimension, None, dtype, normalizer)
    values = default_value if isinstance(default_value, list) else [default_value] * dimension
    if len(values) != dimension:
        raise ValueError(
            "The length of default_value must be equal to dimension. "
            f"default_value: {default_value}, dimension: {dimension}, {column_name=}"
        )
    kinds = (int,) if dtype.is_integer else (int, float)
    if not all(isinstance(value, kinds) for value in values):
        raise TypeError(
            "default_value must be compatible with dtype. "
            f"default_value: {default_value}, dtype: {dtype}, {column_name=}"
        )
    numbers = tuple(values if dtype.is_integer else map(float, values))
    return _RealValuedColumn(column_name, dimension, numbers, dtype, normalizer)


def sparse_column_with_hash_bucket(
    column_name: str,
    hash_bucket_size: int,
    combiner: str = "sum",
    dtype: tf.DType = tf.string,
    hash_keys: Any = None,
) -> _SparseColumnHashed:
    """A column of ids that are hashes of strings or ints.

    Raises:
        ValueError: There is no bucket, or `dtype` is neither.
        NotImplementedError: `hash_keys` are given.
    """
    if hash_keys is not None:
        raise NotImplementedError("hash_keys of sparse_column_with_hash_bucket is not supported.")
    _check_ids(column_name, hash_bucket_size, dtype)
    return _SparseColumnHashed(column_name, False, hash_bucket_size, None, combiner, dtype)


def sparse_column_with_integerized_feature(
    column_name: str, bucket_size: int, combiner: str = "sum", dtype: tf.DType = tf.int64
) -> _SparseColumnIntegerized:
    """A column of ids that the feature has already; taken modulo `bucket_size`.

    Raises:
        ValueError: There is no bucket, or `dtype` is no int.
    """
    if not dtype.is_integer:
        raise ValueError(
            "dtype must be an integer if is_integerized is True. "
            f"dtype: {dtype}, column_name: {column_name}."
        )
    _check_ids(column_name, bucket_size, dtype)
    return _SparseColumnIntegerized(column_name, True, bucket_size, None, combiner, dtype)


def _check_ids(column_name: str, bucket_size: int, dtype: tf.DType) -> None:
    if dtype != tf.string and not dtype.is_integer:
        raise ValueError(f"dtype must be string or integer. dtype: {dtype}, {column_name=}")
    if bucket_size < 1:
        raise ValueError(
            f"bucket_size must be at least 1. bucket_size: {bucket_size}, {column_name=}"
        )


def sparse_column_with_keys(
    column_name: str,
    keys: Iterable[Any],
    default_value: int = -1,
    combiner: str = "sum",
    dtype: tf.DType = tf.string,
) -> _SparseColumnKeys:
    """A column of ids that are places in `keys`; `default_value` is that of other values."""
    keys = tuple(keys)
    config = _SparseIdLookupConfig(None, keys, 0, len(keys), default_value)
    return _SparseColumnKeys(column_name, False, None, config, combiner, dtype)


def sparse_column_with_vocabulary_file(
    column_name: str,
    vocabulary_file: str,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    combiner: str = "sum",
    dtype: tf.DType = tf.string,
) -> _SparseColumnVocabulary:
    """A column of ids that are lines of a file; other values get `num_oov_buckets` more, by hash.

    Raises:
        ValueError: `vocab_size` is None.
    """
    if vocab_size is None:
        raise ValueError(f"vocab_size should be defined. {column_name=}")
    config = _SparseIdLookupConfig(
        vocabulary_file, None, num_oov_buckets, vocab_size, default_value
    )
    return _SparseColumnVocabulary(column_name, False, None, config, combiner, dtype)


def weighted_sparse_column(
    sparse_id_column: Any, weight_column_name: str, dtype: tf.DType = tf.float32
) -> _WeightedSparseColumn:
    """A column of ids, each with a weight from another feature.

    Raises:
        ValueError: `dtype` is no number.
    """
    if not (dtype.is_integer or dtype.is_floating):
        raise ValueError(f"dtype is not convertible to float. Given {dtype}")
    return _WeightedSparseColumn(sparse_id_column, weight_column_name, dtype)


def bucketized_column(source_column: Any, boundaries: Sequence[float]) -> _BucketizedColumn:
    """A column of ids: between which of `boundaries` a number is.

    Raises:
        TypeError: `source_column` is not a `real_valued_column`.
        ValueError: `boundaries` are empty or not sorted.
    """
    if not isinstance(source_column, _RealValuedColumn):
        raise TypeError(f"source_column must be an instance of _RealValuedColumn. {source_column=}")
    if not isinstance(boundaries, (list, tuple)) or not boundaries:
        raise ValueError(f"boundaries must be a non-empty list or tuple. {boundaries=}")
    if list(boundaries) != sorted(boundaries):
        raise ValueError(f"boundaries must be a sorted list. {boundaries=}")
    return _BucketizedColumn(source_column, tuple(dict.fromkeys(boundaries)))


def crossed_column(
    columns: Iterable[Any],
    hash_bucket_size: int,
    combiner: str = "sum",
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    hash_key: int | None = None,
) -> _CrossedColumn:
    """A column of ids that are hashes of the values of several columns together.

    Raises:
        TypeError: A column is not of ids, or weighted.
        ValueError: There are fewer than two columns, or than two buckets.
    """
    columns = list(columns)
    for column in columns:
        if not isinstance(column, (_SparseColumn, _CrossedColumn, _BucketizedColumn)):
            raise TypeError(
                "columns must be a set of _SparseColumn, _CrossedColumn, or _BucketizedColumn "
                f"instances. (column {column} is a {type(column).__name__})"
            )
    if len(columns) < 2:
        raise ValueError(f"columns must contain at least 2 elements. columns: {columns}")
    if hash_bucket_size < 2:
        raise ValueError(f"hash_bucket_size must be at least 2. {hash_bucket_size=}")
    in_order = tuple(sorted(columns, key=lambda column: column.name))
    checkpoint = (ckpt_to_load_from, tensor_name_in_ckpt)
    return _CrossedColumn(in_order, hash_bucket_size, hash_key, combiner, *checkpoint)


def one_hot_column(sparse_id_column: Any) -> _OneHotColumn:
    """A column of counts of each id, for a network."""
    return _OneHotColumn(sparse_id_column)


def embedding_column(
    sparse_id_column: Any,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> _EmbeddingColumn:
    """A column of a trained vector for each id, for a network.

    Args:
        sparse_id_column: A column of ids.
        dimension: Of the vectors.
        combiner: "mean", "sqrtn" or "sum", for the ids of one example.
        initializer: Of the vectors; by default normal, with a deviation of 1/sqrt(ids).
        ckpt_to_load_from: A checkpoint with their first values.
        tensor_name_in_ckpt: The name in it.
        max_norm: To which vectors are clipped as they are looked up.
        trainable: True if they are trained.

    Raises:
        ValueError: `initializer` is no function, or one of the two for the checkpoint is missing.
    """
    if initializer is not None and not callable(initializer):
        raise ValueError(
            "initializer must be callable if specified. "
            f"Embedding of column_name: {sparse_id_column.name}"
        )
    if (ckpt_to_load_from is None) != (tensor_name_in_ckpt is None):
        raise ValueError(
            "Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them."
        )
    if initializer is None:
        deviation = 1 / math.sqrt(sparse_id_column.length)
        initializer = _v1.truncated_normal_initializer(0.0, deviation)
    return _EmbeddingColumn(
        sparse_id_column,
        dimension,
        combiner,
        initializer,
        ckpt_to_load_from,
        tensor_name_in_ckpt,
        max_norm=max_norm,
        trainable=trainable,
    )
