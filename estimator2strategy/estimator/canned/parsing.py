"""Specs to parse the `tf.Example` records of a classifier or a regressor.

Source: tensorflow_estimator 2.15 canned/parsing_utils.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import tensorflow as tf

from estimator2strategy.engine import _tf_private

tf1 = tf.compat.v1


def classifier_parse_example_spec(
    feature_columns: Sequence[Any],
    label_key: str,
    label_dtype: tf.DType = tf.int64,
    label_default: Any = None,
    weight_column: Any = None,
) -> dict[str, Any]:
    """The features of a classifier's records, for `tf.io.parse_example`.

    Args:
        feature_columns: Columns of `tf.feature_column` that the model reads.
        label_key: Name of the label in a record: one value.
        label_dtype: int64, or string where the classifier has a vocabulary.
        label_default: Value of the label where a record has none; None: it must have one.
        weight_column: The classifier's.

    Returns:
        Name -> `tf.io.FixedLenFeature` or the like.

    Raises:
        ValueError: Label or weight are features of the columns; the weight column is neither a
            name nor a numeric column.
    """
    return _spec(feature_columns, label_key, 1, label_dtype, label_default, weight_column)


def regressor_parse_example_spec(
    feature_columns: Sequence[Any],
    label_key: str,
    label_dtype: tf.DType = tf.float32,
    label_default: Any = None,
    label_dimension: int = 1,
    weight_column: Any = None,
) -> dict[str, Any]:
    """The features of a regressor's records, for `tf.io.parse_example`.

    Args:
        label_dimension: Number of values of the label.

    The other arguments, and what may be wrong, are those of `classifier_parse_example_spec`.
    """
    return _spec(
        feature_columns, label_key, label_dimension, label_dtype, label_default, weight_column
    )


def _spec(
    feature_columns: Sequence[Any],
    label_key: str,
    label_dimension: int,
    label_dtype: tf.DType,
    label_default: Any,
    weight_column: Any,
) -> dict[str, Any]:
    is_v2 = _tf_private.is_feature_column_v2(feature_columns)
    api = tf.feature_column if is_v2 else tf1.feature_column
    spec = api.make_parse_example_spec(feature_columns)
    if label_key in spec:
        raise ValueError(
            f"label should not be used as feature. label_key: {label_key}, features: {spec.keys()}"
        )
    spec[label_key] = tf.io.FixedLenFeature((label_dimension,), label_dtype, label_default)
    if weight_column is None:
        return cast(dict[str, Any], spec)
    if isinstance(weight_column, str):
        weight_column = tf.feature_column.numeric_column(weight_column)
    if not isinstance(weight_column, _tf_private.NumericColumn):
        raise ValueError(
            "weight_column should be an instance of tf.feature_column.numeric_column. Given type: "
            f"{type(weight_column)} value: {weight_column}"
        )
    if weight_column.key in spec:
        raise ValueError(
            "weight_column should not be used as feature. weight_column: "
            f"{weight_column.key}, features: {spec.keys()}"
        )
    return {**spec, **weight_column.parse_example_spec}
