"""`tf.contrib.lookup` of TF 1.15: what TensorFlow's own lookup does not have."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from estimator2strategy.engine._tf_private import lookup_ops as _lookup_ops
from estimator2strategy.tf1.contrib import names_of

__getattr__ = names_of("lookup", globals())


class MutableHashTable(_lookup_ops.MutableHashTable):
    """TensorFlow's table, whose exported keys are known to be a vector, as they were in TF 1.15."""

    def export(self, name: str | None = None) -> tuple[tf.Tensor, tf.Tensor]:
        keys, values = super().export(name)
        if not tf.executing_eagerly() and keys.shape.rank is None:
            keys.set_shape([None])
            values.set_shape([None, *self._value_shape])
        return keys, values


def index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = _lookup_ops.FastHashSpec,
    dtype: Any = tf.string,
    name: str | None = None,
) -> Any:
    """A table of the indices in `mapping`, which TensorFlow calls `vocabulary_list` today.

    Raises:
        ValueError: There is no mapping.
    """
    if mapping is None:
        raise ValueError("mapping must be specified.")
    return _lookup_ops.index_table_from_tensor(
        mapping, num_oov_buckets, default_value, hasher_spec, dtype, name
    )


def string_to_index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = _lookup_ops.FastHashSpec,
    name: str | None = None,
) -> Any:
    """`index_table_from_tensor` for strings.

    Raises:
        ValueError: `mapping` is of another type.
    """
    mapping = tf.convert_to_tensor(mapping)
    if mapping.dtype.base_dtype != tf.string:
        raise ValueError("string_to_index_table_from_tensor requires string.")
    return index_table_from_tensor(
        mapping, num_oov_buckets, default_value, hasher_spec, name=name or "string_to_index"
    )


def string_to_index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: Any = _lookup_ops.FastHashSpec,
    name: str | None = None,
) -> Any:
    """A table of the numbers of the lines of a file."""
    return _lookup_ops.index_table_from_file(
        vocabulary_file, num_oov_buckets, vocab_size, default_value, hasher_spec, name=name
    )


def index_to_string_table_from_tensor(
    mapping: Any, default_value: str = "UNK", name: str | None = None
) -> Any:
    """A table of the strings of `mapping`, by their indices.

    Raises:
        ValueError: There is no mapping.
    """
    if mapping is None:
        raise ValueError("mapping must be specified.")
    return _lookup_ops.index_to_string_table_from_tensor(mapping, default_value, name)


def index_to_string(
    tensor: tf.Tensor, mapping: Any, default_value: str = "UNK", name: str | None = None
) -> tf.Tensor:
    """The strings of `mapping` at the indices `tensor`, int64; `default_value` outside of it."""
    table = _lookup_ops.index_to_string_table_from_tensor(mapping, default_value, name)
    return table.lookup(tensor)


def string_to_index(
    tensor: tf.Tensor, mapping: Any, default_value: int = -1, name: str | None = None
) -> tf.Tensor:
    """The indices in `mapping` of the strings `tensor`; `default_value` where there is none."""
    table = _lookup_ops.index_table_from_tensor(mapping, 0, default_value, name=name)
    return table.lookup(tensor)
