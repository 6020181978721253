"""The bases of columns of `tf.contrib.layers`, their variables, and what is looked up in them.

The canned Estimators and `tf.compat.v1.feature_column` know columns of the first kind by two
classes, and by a few private members. They ask a column for its tensors through a cache.

`sparse_feature_cross` makes hashes of values that occur together.

Source: `tf.contrib.layers` feature_column.py and embedding_ops.py, TF 1.15.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine import _tf_private

# Gives a feature by its name, and the tensors of a column.
Get = Callable[[Any], Any]


class Column:
    """The base of all columns; some print otherwise than their key."""

    @property
    def config(self) -> dict[str, Any]:
        """The features that it needs, for `tf.parse_example`."""
        raise NotImplementedError

    @property
    def key(self) -> str:
        return str(self)

    def transform(self, get: Get) -> Any:
        """The tensors of this column: numbers, or ids and their weights (or None)."""
        raise NotImplementedError

    def shown(self, transformed: Any) -> Any:
        """The tensors of this column in the form in which TF 1.15 showed them."""
        has_no_weights = isinstance(transformed, tuple) and transformed[1] is None
        return transformed[0] if has_no_weights else transformed

    def hidden(self, shown: Any) -> Any:
        """The argument of `shown`, of its result."""
        return (shown, None) if isinstance(shown, tf.SparseTensor) else shown

    @property
    def _parse_example_spec(self) -> dict[str, Any]:
        return self.config

    def _transform_feature(self, inputs: Any) -> Any:
        def get(key: Any) -> Any:
            tensor = inputs.get(key)
            return key.hidden(tensor) if isinstance(key, Column) else tensor

        return self.shown(self.transform(get))


class IdColumn(Column, _tf_private.CategoricalColumnV1):
    """A column that is transformed to ids and their weights, or None: for linear models."""

    @property
    def length(self) -> int:
        """The number of ids."""
        raise NotImplementedError

    @property
    def _num_buckets(self) -> int:
        return self.length

    def _get_sparse_tensors(
        self, inputs: Any, weight_collections: Any = None, trainable: Any = None
    ) -> Any:
        del weight_collections, trainable  # it has no variables
        return self.IdWeightPair(*_flat(self.hidden(inputs.get(self))))


class DenseColumn(Column, _tf_private.DenseColumnV1):
    """A column for a network."""

    dimension: Any

    @property
    def _variable_shape(self) -> tf.TensorShape:
        return tf.TensorShape([self.dimension])

    def _get_dense_tensor(
        self, inputs: Any, weight_collections: Any = None, trainable: Any = True
    ) -> tf.Tensor:
        transformed = _flat(self.hidden(inputs.get(self)))
        return self.dense(transformed, weight_collections, trainable)

    def dense(self, transformed: Any, collections: Any, trainable: bool) -> tf.Tensor:
        """The part of the input of a network, [batch, width]; of sequences, [batch, time, width].

        Args:
            transformed: The tensors of this column.
            collections: Further collections of its variable.
            trainable: True if that is trained.
        """
        raise NotImplementedError


def _flat(transformed: Any) -> Any:
    """Ids and weights as matrices, with all values of an example side by side."""
    if isinstance(transformed, tuple):
        return tuple(map(_flat, transformed))
    if not isinstance(transformed, tf.SparseTensor) or transformed.shape.rank in (None, 2):
        return transformed
    return tf.sparse.reshape(transformed, tf.stack([transformed.dense_shape[0], -1]))


# The first hash. Also the key by which columns get the hashes of `tf.feature_column`.
SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY = 0xDECAFCAFFE
_GOLDEN_RATIO = 0x9E3779B97F4A7800 - 2**64


def crossed(features: Sequence[Any], buckets: int, hash_key: int | None) -> tf.SparseTensor:
    """The ids of all combinations of an example's values.

    Args:
        features: Matrices of strings or ints, sparse or not, a row for each example.
        buckets: Number of ids.
        hash_key: None: the hashes of the kernel that TensorFlow no longer has; else a key of
            today's.

    Returns:
        A sparse matrix, a row for each example.
    """
    if hash_key is not None:
        return _of_today(features, buckets, hash_key)
    numbers = [_as_numbers(feature) for feature in features]
    joined = _of_today([_mapped(tf.as_string, feature) for feature in numbers], 0, None)
    parts = tf.compat.v1.string_split(joined.values, "_").values
    parts = tf.reshape(parts, [-1, 2 * len(features) - 1])[:, ::2]
    hashes = tf.strings.to_number(parts, tf.int64)
    result = tf.fill(
        tf.shape(hashes)[:1], tf.constant(SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY, tf.int64)
    )
    for column in range(len(features)):
        result = _combined(result, hashes[:, column])
    unsigned = tf.bitcast(result, tf.uint64)
    ids = tf.math.floormod(unsigned, tf.constant(buckets, tf.uint64))
    return joined.with_values(tf.cast(ids, tf.int64))


def _combined(a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Two hashes as one; the shift to the right keeps the sign, as that kernel's did."""
    left = tf.bitwise.left_shift(a, tf.constant(10, tf.int64))
    right = tf.bitwise.right_shift(a, tf.constant(4, tf.int64))
    return tf.bitwise.bitwise_xor(a, b + tf.constant(_GOLDEN_RATIO, tf.int64) + left + right)


def _mapped(function: Any, feature: Any) -> Any:
    if isinstance(feature, tf.SparseTensor):
        return feature.with_values(function(feature.values))
    return function(feature)


def _as_numbers(feature: Any) -> Any:
    """Ints stay; of a string its fingerprint."""

    def numbers(values: tf.Tensor) -> tf.Tensor:
        if values.dtype != tf.string:
            return tf.cast(values, tf.int64)
        prints = tf.fingerprint(tf.reshape(values, [-1]))
        return tf.reshape(tf.bitcast(prints, tf.int64), tf.shape(values))

    return _mapped(numbers, feature)


def _of_today(features: Sequence[Any], buckets: int, hash_key: int | None) -> tf.SparseTensor:
    """The kernel of `tf.sparse.cross_hashed`; strings joined by _X_ if there is no key."""
    features = [_mapped(_as_it_takes_them, feature) for feature in features]
    sparse = [feature for feature in features if isinstance(feature, tf.SparseTensor)]
    dense = [feature for feature in features if not isinstance(feature, tf.SparseTensor)]
    hashed = hash_key is not None
    out = tf.raw_ops.SparseCross(
        indices=[feature.indices for feature in sparse],
        values=[feature.values for feature in sparse],
        shapes=[feature.dense_shape for feature in sparse],
        dense_inputs=dense,
        hashed_output=hashed,
        num_buckets=buckets,
        hash_key=SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY if hash_key is None else hash_key,
        out_type=tf.int64 if hashed else tf.string,
        internal_type=tf.int64 if hashed else tf.string,
    )
    return tf.SparseTensor(out.output_indices, out.output_values, out.output_shape)


def _as_it_takes_them(values: tf.Tensor) -> tf.Tensor:
    return values if values.dtype == tf.string else tf.cast(values, tf.int64)


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
