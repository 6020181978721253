"""`sparse_ops` of `tf.contrib.layers` of TF 1.15: sparse tensors of dense ones."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

_v1 = tf.compat.v1


def dense_to_sparse_tensor(dense_tensor: Any, ignore_value: Any = None) -> tf.SparseTensor:
    """The cells of a tensor that are not `ignore_value`, by default "" or 0."""
    with _v1.name_scope("DenseToSparseTensor"):
        dense = tf.convert_to_tensor(dense_tensor)
        indices = tf.where(tf.not_equal(dense, _ignored(dense.dtype, ignore_value)))
        return tf.SparseTensor(
            indices, tf.gather_nd(dense, indices), tf.shape(dense, out_type=tf.int64)
        )


def _ignored(dtype: tf.DType, ignore_value: Any) -> tf.Tensor:
    if ignore_value is None:
        ignore_value = "" if dtype == tf.string else dtype.as_numpy_dtype()
    return tf.cast(ignore_value, dtype)


def indicators_to_sparse_ids(
    indicators: Any, ignore_value: Any = None, dtype: tf.DType = tf.int64
) -> tf.SparseTensor:
    """The places of those cells of the last axis that are not `ignore_value`, row by row.

    Args:
        indicators: Of any shape: ones where a class is there.
        ignore_value: The value where it is not, by default "" or 0.
        dtype: The integer type of the places.

    Raises:
        ValueError: `dtype` is no integer type.
    """
    if not dtype.is_integer:
        raise ValueError(f"Invalid dtype {dtype} not integer.")
    with _v1.name_scope(None, "indicators_to_sparse_ids", [indicators]):
        indicators = tf.convert_to_tensor(indicators)
        present = tf.not_equal(indicators, _ignored(indicators.dtype, ignore_value))
        # The first cell of a row that is there has 1, the second 2, and so on.
        number = tf.where(
            present, tf.cumsum(tf.cast(present, tf.int64), axis=-1), tf.zeros([], tf.int64)
        )
        cells = dense_to_sparse_tensor(number, ignore_value=0)
        longest = tf.reshape(tf.reduce_max(number), [1])
        return tf.SparseTensor(
            tf.concat([cells.indices[:, :-1], cells.values[:, None] - 1], axis=1),
            tf.cast(cells.indices[:, -1], dtype),
            tf.concat([cells.dense_shape[:-1], longest], axis=0),
        )


def sparse_row_envelope(
    sparse_input: tf.SparseTensor, row_axis: int = 0, col_axis: int = 1, name: str | None = None
) -> tf.Tensor:
    """The length of each row of a SparseTensor: one more than its last column with a value.

    Raises:
        ValueError: An axis is no integer, or both are the same.
    """
    if not (isinstance(row_axis, int) and isinstance(col_axis, int)):
        raise ValueError("`row_axis` and `col_axis` must be integers.")
    if row_axis == col_axis:
        raise ValueError("Row and column can not be the same axis.")
    with _v1.name_scope(name, "sparse_row_envelope", [sparse_input]):
        rows = tf.cast(sparse_input.dense_shape[row_axis], tf.int32)
        indices = sparse_input.indices
        last = tf.math.unsorted_segment_max(indices[:, col_axis] + 1, indices[:, row_axis], rows)
        return tf.maximum(last, 0)
