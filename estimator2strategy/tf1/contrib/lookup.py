"""`tf.contrib.lookup` of TF 1.15: what TensorFlow's own lookup does not have."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.ops import lookup_ops

from estimator2strategy.tf1.contrib import names_of

__getattr__ = names_of("lookup")


def index_to_string(
    tensor: tf.Tensor, mapping: Any, default_value: str = "UNK", name: str | None = None
) -> tf.Tensor:
    """The strings of `mapping` at the indices `tensor`, int64; `default_value` outside of it."""
    table = lookup_ops.index_to_string_table_from_tensor(mapping, default_value, name)
    return table.lookup(tensor)


def string_to_index(
    tensor: tf.Tensor, mapping: Any, default_value: int = -1, name: str | None = None
) -> tf.Tensor:
    """The indices in `mapping` of the strings `tensor`; `default_value` where there is none."""
    table = lookup_ops.index_table_from_tensor(mapping, 0, default_value, name=name)
    return table.lookup(tensor)
