"""The kinds of feature columns of `tf.contrib.layers`: the tensors they make of features.

The classes are called as in TF 1.15, and have its fields: columns are put side by side in the order
of their `key`, which is what they print as. As there, they are columns of the first kind of
`tf.feature_column` too: canned Estimators and `tf.feature_column.input_layer` take them.

Source: `tf.contrib.layers` feature_column.py, TF 1.15.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

import tensorflow as tf

from estimator2strategy.tf1.contrib import lookup
from estimator2strategy.tf1.contrib.layers.looked_up_columns import (
    Column,
    DenseColumn,
    Get,
    IdColumn,
    counts,
    crossed,
    looked_up,
    matrix,
    scattered_embedding_lookup_sparse,
    shared_variable_of,
    variable_of,
)


class _SparseIdLookupConfig(NamedTuple):
    vocabulary_file: str | None = None
    keys: tuple[Any, ...] | None = None
    num_oov_buckets: int = 0
    vocab_size: int | None = None
    default_value: int = -1


class _Sparse(NamedTuple):
    column_name: str
    is_integerized: bool = False
    bucket_size: int | None = None
    lookup_config: _SparseIdLookupConfig | None = None
    combiner: str = "sum"
    dtype: Any = tf.string


class _SparseColumn(IdColumn, _Sparse):
    """A feature of ids; subclasses say how to get them.

    A feature that is not sparse loses what is -1 or "".
    """

    @property
    def name(self) -> str:
        return self.column_name

    @property
    def length(self) -> int:
        if self.lookup_config is None:
            assert self.bucket_size is not None  # there is one or the other
            return self.bucket_size
        return (self.lookup_config.vocab_size or 0) + self.lookup_config.num_oov_buckets

    @property
    def config(self) -> dict[str, Any]:
        return {self.column_name: tf.io.VarLenFeature(self.dtype)}

    def transform(self, get: Get) -> tuple[Any, Any]:
        feature = get(self.column_name)
        if not isinstance(feature, tf.SparseTensor):
            feature = _without(feature, "" if feature.dtype == tf.string else -1)
        return self._ids(feature), None

    def _ids(self, feature: tf.SparseTensor) -> tf.SparseTensor:
        raise NotImplementedError


def _without(feature: Any, ignored: Any) -> tf.SparseTensor:
    """A feature as a sparse matrix of what is not `ignored`."""
    if feature.shape.rank == 1:
        feature = feature[:, None]
    indices = tf.where(tf.not_equal(feature, ignored))
    shape = tf.shape(feature, out_type=tf.int64)
    return tf.SparseTensor(indices, tf.gather_nd(feature, indices), shape)


def _as_strings(values: tf.Tensor) -> tf.Tensor:
    return tf.as_string(values) if values.dtype.is_integer else values


class _SparseColumnIntegerized(_SparseColumn):
    def _ids(self, feature: tf.SparseTensor) -> tf.SparseTensor:
        return feature.with_values(tf.math.floormod(feature.values, self.bucket_size))


class _SparseColumnHashed(_SparseColumn):
    hash_keys: list[list[int]] | None = None

    def _ids(self, feature: tf.SparseTensor) -> tf.SparseTensor:
        values = _as_strings(feature.values)
        if not self.hash_keys:
            return feature.with_values(tf.strings.to_hash_bucket_fast(values, self.length))
        hashed = [
            feature.with_values(tf.strings.to_hash_bucket_strong(values, self.length, key))
            for key in self.hash_keys
        ]
        return tf.sparse.concat(1, hashed)


class _SparseColumnKeys(_SparseColumn):
    def _ids(self, feature: tf.SparseTensor) -> tf.SparseTensor:
        config = self.lookup_config
        assert config is not None
        table = lookup.index_table_from_tensor(
            config.keys, default_value=config.default_value, dtype=self.dtype
        )
        return table.lookup(feature)


class _SparseColumnVocabulary(_SparseColumn):
    def _ids(self, feature: tf.SparseTensor) -> tf.SparseTensor:
        config = self.lookup_config
        assert config is not None
        table = lookup.index_table_from_file(
            config.vocabulary_file,
            num_oov_buckets=config.num_oov_buckets,
            vocab_size=config.vocab_size,
            default_value=config.default_value,
        )
        return table.lookup(feature.with_values(_as_strings(feature.values)))


class _OfIds:
    """A column that makes something else of the ids of another one."""

    sparse_id_column: Any

    @property
    def length(self) -> int:
        return cast(int, self.sparse_id_column.length)

    @property
    def config(self) -> dict[str, Any]:
        return cast(dict[str, Any], self.sparse_id_column.config)

    def transform(self, get: Get) -> Any:
        return get(self.sparse_id_column)


class _Weighted(NamedTuple):
    sparse_id_column: Any
    weight_column_name: str
    dtype: Any


class _WeightedSparseColumn(_OfIds, IdColumn, _Weighted):
    @property
    def name(self) -> str:
        return f"{self.sparse_id_column.name}_weighted_by_{self.weight_column_name}"

    @property
    def combiner(self) -> str:
        return cast(str, self.sparse_id_column.combiner)

    @property
    def config(self) -> dict[str, Any]:
        weights = {self.weight_column_name: tf.io.VarLenFeature(self.dtype)}
        return {**super().config, **weights}

    def transform(self, get: Get) -> tuple[Any, Any]:
        weights = get(self.weight_column_name)
        if not isinstance(weights, tf.SparseTensor):
            weights = _without(weights, 0)
        return get(self.sparse_id_column)[0], tf.cast(weights, tf.float32)


class _RealValued(NamedTuple):
    column_name: str
    dimension: int
    default_value: tuple[Any, ...] | None
    dtype: Any
    normalizer: Callable[..., Any] | None


class _RealValuedColumn(DenseColumn, _RealValued):
    @property
    def name(self) -> str:
        return self.column_name

    @property
    def key(self) -> str:
        return _key(self, "normalizer")

    @property
    def config(self) -> dict[str, Any]:
        default = None if self.default_value is None else list(self.default_value)
        return {self.column_name: tf.io.FixedLenFeature([self.dimension], self.dtype, default)}

    def transform(self, get: Get) -> Any:
        feature = get(self.column_name)
        return tf.cast(self.normalizer(feature) if self.normalizer else feature, tf.float32)

    def dense(self, transformed: Any, collections: Any, trainable: bool) -> tf.Tensor:
        return transformed if transformed.shape.rank == 3 else matrix(transformed)


def _key(column: Any, hidden: str) -> str:
    """The column as it prints, without one of its fields."""
    fields = [f"{k}={v}" for k, v in zip(column._fields, column, strict=True) if k != hidden]
    return f"{type(column).__name__}({', '.join(fields)})"


class _Bucketized(NamedTuple):
    source_column: _RealValuedColumn
    boundaries: tuple[Any, ...]


class _BucketizedColumn(IdColumn, DenseColumn, _Bucketized):
    @property
    def combiner(self) -> str:
        return "sum"

    @property
    def name(self) -> str:
        return f"{self.source_column.name}_bucketized"

    @property
    def length(self) -> int:
        """The number of buckets of one number."""
        return len(self.boundaries) + 1

    @property
    def _num_buckets(self) -> int:
        return cast(int, self.length * self.source_column.dimension)

    dimension = _num_buckets

    @property
    def config(self) -> dict[str, Any]:
        return self.source_column.config

    def transform(self, get: Get) -> tuple[Any, Any]:
        boundaries = list(map(float, self.boundaries))
        return self.of_buckets(
            tf.raw_ops.Bucketize(input=get(self.source_column), boundaries=boundaries)
        )

    def of_buckets(self, looked_up: tf.Tensor) -> tuple[Any, Any]:
        """The result of `transform` for numbers in these buckets."""
        looked_up = tf.reshape(looked_up, [-1, self.source_column.dimension])
        looked_up += self.length * tf.range(self.source_column.dimension)
        return _without(tf.cast(looked_up, tf.int64), -1), None

    def shown(self, transformed: Any) -> Any:
        dimension = self.source_column.dimension
        ids = tf.reshape(transformed[0].values, [-1, dimension])
        return tf.cast(ids, tf.int32) - self.length * tf.range(dimension)

    def hidden(self, shown: Any) -> Any:
        return self.of_buckets(shown)

    def dense(self, transformed: Any, collections: Any, trainable: bool) -> tf.Tensor:
        ids = tf.reshape(transformed[0].values, [-1, self.source_column.dimension])
        return tf.reduce_sum(tf.one_hot(ids, self._num_buckets), 1)


class _Crossed(NamedTuple):
    columns: tuple[Any, ...]
    hash_bucket_size: int
    hash_key: int | None
    combiner: str = "sum"
    ckpt_to_load_from: str | None = None
    tensor_name_in_ckpt: str | None = None


class _CrossedColumn(IdColumn, _Crossed):
    @property
    def name(self) -> str:
        return "_X_".join(sorted(column.name for column in self.columns))

    @property
    def length(self) -> int:
        return self.hash_bucket_size

    @property
    def config(self) -> dict[str, Any]:
        return create_feature_spec_for_parsing(self.columns)

    def _leaves(self) -> list[Any]:
        nested = [c._leaves() if isinstance(c, _CrossedColumn) else [c] for c in self.columns]
        return [column for columns in nested for column in columns]

    def transform(self, get: Get) -> tuple[Any, Any]:
        features = []
        for column in self._leaves():
            if isinstance(column, _SparseColumn):
                feature = get(column.column_name)
                if not isinstance(feature, tf.SparseTensor):
                    feature = feature[:, None] if feature.shape.rank == 1 else feature
                features.append(feature)
            else:
                features.append(get(column)[0])
        return crossed(features, self.hash_bucket_size, self.hash_key), None


class _OneHot(NamedTuple):
    sparse_id_column: Any


class _OneHotColumn(_OfIds, DenseColumn, _OneHot):
    @property
    def name(self) -> str:
        return f"{self.sparse_id_column.name}_one_hot"

    @property
    def dimension(self) -> int:
        return self.length

    def dense(self, transformed: Any, collections: Any, trainable: bool) -> tf.Tensor:
        return counts(self.length, *transformed)


class _Embedding(NamedTuple):
    sparse_id_column: Any
    dimension: int
    combiner: str = "mean"
    initializer: Any = None
    ckpt_to_load_from: str | None = None
    tensor_name_in_ckpt: str | None = None
    shared_embedding_name: str | None = None
    shared_vocab_size: int | None = None
    max_norm: float | None = None
    trainable: bool = True


class _EmbeddingColumn(_OfIds, DenseColumn, _Embedding):
    @property
    def name(self) -> str:
        shared = "" if self.shared_embedding_name is None else "_shared"
        return f"{self.sparse_id_column.name}{shared}_embedding"

    @property
    def key(self) -> str:
        return _key(self, "initializer")

    @property
    def length(self) -> int:
        return self.shared_vocab_size or super().length

    def dense(self, transformed: Any, collections: Any, trainable: bool) -> tf.Tensor:
        name, shape = self.shared_embedding_name, [self.length, self.dimension]
        options = (self.initializer, trainable and self.trainable, collections)
        if name is None:
            variable = variable_of("weights", shape, *options)
        else:
            variable = shared_variable_of(name, shape, *options)
        if self.ckpt_to_load_from:
            tf.compat.v1.train.init_from_checkpoint(
                self.ckpt_to_load_from, {self.tensor_name_in_ckpt: variable}
            )
        ids, weights = transformed
        return looked_up(variable, ids, weights, self.combiner, self.max_norm)


class _Scattered(NamedTuple):
    column_name: str
    size: int
    dimension: int
    hash_key: int
    combiner: str = "sqrtn"
    initializer: Any = None


class _ScatteredEmbeddingColumn(DenseColumn, _Scattered):
    @property
    def name(self) -> str:
        return f"{self.column_name}_scattered_embedding"

    @property
    def key(self) -> str:
        return _key(self, "initializer")

    @property
    def config(self) -> dict[str, Any]:
        return {self.column_name: tf.io.VarLenFeature(tf.string)}

    def transform(self, get: Get) -> Any:
        return get(self.column_name)

    def hidden(self, shown: Any) -> Any:
        return shown

    def dense(self, transformed: Any, collections: Any, trainable: bool) -> tf.Tensor:
        variable = variable_of("weights", [self.size], self.initializer, trainable, collections)
        return scattered_embedding_lookup_sparse(
            variable, transformed, self.dimension, self.combiner, hash_key=self.hash_key
        )


def create_feature_spec_for_parsing(feature_columns: Any) -> dict[str, Any]:
    """The features that columns need, for `tf.parse_example`.

    Args:
        feature_columns: Columns, or a dict of them.

    Raises:
        TypeError: One is not a column.
    """
    columns = feature_columns.values() if isinstance(feature_columns, Mapping) else feature_columns
    spec: dict[str, Any] = {}
    for column in columns:
        if not isinstance(column, Column):
            raise TypeError(
                "feature_columns should only contain instances of _FeatureColumn. "
                f"Given column is {column}"
            )
        spec.update(column.config)
    return spec
