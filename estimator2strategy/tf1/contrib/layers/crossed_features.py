"""`sparse_feature_cross` of TF 1.15: hashes of values that occur together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

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
