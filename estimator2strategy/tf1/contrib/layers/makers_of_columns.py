"""Feature columns of `tf.contrib.layers`, as they were before `tf.feature_column`.

`column_kinds.py` has what they do, and `inputs_of_columns.py` makes inputs of networks of them.

Source: `tf.contrib.layers` feature_column.py, TF 1.15.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.tf1.contrib.layers.column_kinds import (
    _BucketizedColumn,
    _CrossedColumn,
    _EmbeddingColumn,
    _OneHotColumn,
    _RealValuedColumn,
    _ScatteredEmbeddingColumn,
    _SparseColumn,
    _SparseColumnHashed,
    _SparseColumnIntegerized,
    _SparseColumnKeys,
    _SparseColumnVocabulary,
    _SparseIdLookupConfig,
    _WeightedSparseColumn,
    create_feature_spec_for_parsing,
)

_v1 = tf.compat.v1


def real_valued_column(
    column_name: str,
    dimension: int = 1,
    default_value: Any = None,
    dtype: tf.DType = tf.float32,
    normalizer: Callable[..., Any] | None = None,
) -> _RealValuedColumn:
    """A column of numbers.

    Args:
        column_name: Of the feature, [batch, dimension].
        dimension: How many numbers an example has.
        default_value: The value of an example without the feature: a number, or a list of them.
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

    Args:
        column_name: Of the feature.
        hash_bucket_size: Number of ids.
        combiner: "sum", "mean" or "sqrtn", for the ids of one example in a linear model.
        dtype: Of the feature.
        hash_keys: Pairs of integers: a value gets the id of a strong hash for each of them.

    Raises:
        ValueError: There is no bucket, `dtype` is neither, or `hash_keys` are no such list.
    """
    _check_hash_keys(hash_keys)
    _check_ids(column_name, hash_bucket_size, dtype)
    column = _SparseColumnHashed(column_name, False, hash_bucket_size, None, combiner, dtype)
    column.hash_keys = hash_keys
    return column


def _check_hash_keys(hash_keys: Any) -> None:
    if hash_keys is None:
        return
    if not isinstance(hash_keys, list) or not hash_keys:
        raise ValueError(f"hash_keys must be a non-empty list. {hash_keys=}")
    for pair in hash_keys:
        is_pair = isinstance(pair, list) and len(pair) == 2
        if not is_pair or not all(isinstance(key, int) for key in pair):
            raise ValueError(f"Each element of hash_keys must be a pair of integers. {hash_keys=}")


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
    column = _EmbeddingColumn(
        sparse_id_column,
        dimension,
        combiner,
        initializer,
        ckpt_to_load_from,
        tensor_name_in_ckpt,
        max_norm=max_norm,
        trainable=trainable,
    )
    return _with_initializer(column)


def _with_initializer(column: _EmbeddingColumn) -> _EmbeddingColumn:
    """The column, with the default initializer if it has none."""
    if column.initializer is not None and not callable(column.initializer):
        raise ValueError(
            "initializer must be callable if specified. "
            f"Embedding of column_name: {column.sparse_id_column.name}"
        )
    if (column.ckpt_to_load_from is None) != (column.tensor_name_in_ckpt is None):
        raise ValueError(
            "Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them."
        )
    if column.initializer is not None:
        return column
    deviation = 1 / math.sqrt(column.sparse_id_column.length)
    return column._replace(initializer=_v1.truncated_normal_initializer(0.0, deviation))


def shared_embedding_columns(
    sparse_id_columns: Sequence[Any],
    dimension: int,
    combiner: str = "mean",
    shared_embedding_name: str | None = None,
    initializer: Any = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> Sequence[_EmbeddingColumn]:
    """A column for each column of ids; all look their vectors up in one variable.

    Args:
        sparse_id_columns: Columns of as many ids, or of the same keys; weighted or not.
        shared_embedding_name: Of the variable; by default made of the columns' names.
        dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt: As of
            `embedding_column`.
        max_norm, trainable: As for `embedding_column`.

    Raises:
        TypeError: The columns are no list, or one is not of ids.
        ValueError: There is none, or their ids are not the same.
    """
    given = list(sparse_id_columns)
    if not given:
        raise ValueError("The input sparse_id_columns should have at least one element.")
    for column in given:
        if not isinstance(column, (_SparseColumn, _WeightedSparseColumn)):
            raise TypeError(
                "Elements of sparse_id_columns must be _SparseColumn or _WeightedSparseColumn, "
                f"but {column} is not."
            )
    size = None
    if len(given) > 1:
        if not all(_has_ids_of(column, given[0]) for column in given[1:]):
            raise ValueError("The input sparse id columns are not compatible.")
        shared_embedding_name = shared_embedding_name or _shared_name(given)
        size = given[0].length
    made = (
        _EmbeddingColumn(
            column,
            dimension,
            combiner,
            initializer,
            ckpt_to_load_from,
            tensor_name_in_ckpt,
            shared_embedding_name,
            size,
            max_norm,
            trainable,
        )
        for column in given
    )
    # TF 1.15 gives a list of one column, and a tuple of several.
    return (list if len(given) == 1 else tuple)(map(_with_initializer, made))


def scattered_embedding_column(
    column_name: str,
    size: int,
    dimension: int,
    hash_key: int,
    combiner: str = "mean",
    initializer: Any = None,
) -> _ScatteredEmbeddingColumn:
    """A column of vectors; each of their numbers is one of `size` parameters, found by a hash.

    Args:
        column_name: Of the feature, a SparseTensor of strings or integers.
        size: The number of parameters.
        dimension: Of the vectors.
        hash_key: Of the hashes.
        combiner: "mean", "sqrtn" or "sum", for the values of one example.
        initializer: Of the parameters; by default normal, with a deviation of 0.1.

    Raises:
        ValueError: A size is not positive, `hash_key` is missing, `combiner` is another one, or
            `initializer` is no function.
    """
    if dimension < 1 or size < 1:
        raise ValueError(
            "Dimension and size must be greater than 0. "
            f"dimension: {dimension}, size: {size}, column_name: {column_name}"
        )
    if not hash_key:
        raise ValueError(
            f"hash_key of scattered_embedding_column must be a number. {column_name=} Pass "
            "tf.contrib.layers.SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY."
        )
    if combiner not in ("mean", "sqrtn", "sum"):
        raise ValueError(
            "Combiner must be one of 'mean', 'sqrtn' or 'sum'. "
            f"combiner: {combiner}, column_name: {column_name}"
        )
    if initializer is None:
        initializer = _v1.truncated_normal_initializer(0.0, 0.1)
    if not callable(initializer):
        raise ValueError(f"initializer must be callable if specified. column_name: {column_name}")
    return _ScatteredEmbeddingColumn(column_name, size, dimension, hash_key, combiner, initializer)


def _has_ids_of(column: Any, other: Any) -> bool:
    ids, others = (getattr(c, "sparse_id_column", c) for c in (column, other))
    if ids.lookup_config and others.lookup_config:
        return bool(ids.lookup_config == others.lookup_config)
    same_kind = ids.dtype == others.dtype or (ids.dtype.is_integer and others.dtype.is_integer)
    return bool(ids.length == others.length and same_kind)


def _shared_name(columns: list[Any]) -> str:
    weighted = [column for column in columns if isinstance(column, _WeightedSparseColumn)]
    others = [column for column in columns if column not in weighted]
    in_order = [*sorted(others, key=str), *sorted(weighted, key=lambda column: column.name)]
    names = [column.name for column in in_order]
    more = f"_plus_{len(names) - 3}_others" if len(names) > 3 else ""
    return "_".join(names[:3]) + f"{more}_shared_embedding"


def infer_real_valued_columns(features: Any) -> list[_RealValuedColumn]:
    """A column of numbers for each feature, or one named "" for a tensor.

    Raises:
        ValueError: A feature is sparse, or not of numbers.
    """
    named = features if isinstance(features, dict) else {"": features}
    return [_real_valued(name, tensor) for name, tensor in named.items()]


def _real_valued(name: str, tensor: Any) -> _RealValuedColumn:
    if isinstance(tensor, tf.SparseTensor):
        problem = "SparseTensor is"
    elif not (tensor.dtype.is_integer or tensor.dtype.is_floating):
        problem = "Non integer or non floating types are"
    else:
        return real_valued_column(name, math.prod(tensor.shape[1:].as_list()), dtype=tensor.dtype)
    raise ValueError(
        f"{problem} not supported for auto detection. Please define corresponding FeatureColumn "
        f"for tensor {name} {tensor}."
    )


def make_place_holder_tensors_for_base_features(feature_columns: Any) -> dict[str, Any]:
    """Placeholders of the features that columns need, by name."""
    return {
        name: _v1.sparse_placeholder(feature.dtype, name=f"Placeholder_{name}")
        if isinstance(feature, tf.io.VarLenFeature)
        else _v1.placeholder(feature.dtype, (None, feature.shape[0]), f"Placeholder_{name}")
        for name, feature in create_feature_spec_for_parsing(feature_columns).items()
    }
