"""`tf.contrib.feature_column` of TF 1.15: sequences as inputs of a network.

Its columns are of the old kind, which `tf.feature_column.make_parse_example_spec` of TF 1 takes.
Today's `tf.feature_column` still makes columns of that kind, except the numeric one.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.tf1.contrib import names_of

_v1 = tf.compat.v1

__getattr__ = names_of("feature_column", globals())


class _SequenceNumericColumn(
    _tf_private.SequenceNumericColumn,
    _tf_private.SequenceDenseColumnV1,
):
    """Today's numeric column of sequences, as one of the old kind too."""

    @property
    def _is_v2_column(self) -> bool:
        return False

    @property
    def _parse_example_spec(self) -> dict[str, Any]:
        return cast(dict[str, Any], self.parse_example_spec)

    @property
    def _variable_shape(self) -> tf.TensorShape:
        return self.variable_shape

    def _transform_feature(self, inputs: Any) -> Any:
        return self.transform_feature(_cache(inputs), None)

    def _get_sequence_dense_tensor(
        self, inputs: Any, weight_collections: Any = None, trainable: Any = None
    ) -> Any:
        del weight_collections, trainable
        return self.get_sequence_dense_tensor(_cache(inputs), None)


def _cache(inputs: Any) -> Any:
    """The cache in which the old kind of columns looks features up, as the new kind does."""
    return types.SimpleNamespace(get=lambda key, manager: inputs.get(key))


def sequence_numeric_column(
    key: str,
    shape: Any = (1,),
    default_value: float = 0.0,
    dtype: tf.DType = tf.float32,
    normalizer_fn: Callable[..., Any] | None = None,
) -> Any:
    """A column of numbers for each place of a sequence.

    Args:
        key: Of the feature, a SparseTensor [batch, length * numbers].
        shape: Of the numbers of one place.
        default_value: The value that pads the sequences.
        dtype: Of the feature.
        normalizer_fn: Applied to the feature.

    Raises:
        TypeError: `shape` has something else than integers, or `normalizer_fn` is no function.
        ValueError: `shape` is not positive, or `dtype` is no number.

    Source: `tf.contrib.feature_column.sequence_numeric_column`, TF 1.15.
    """
    made = _v1.feature_column.sequence_numeric_column(
        key, shape, default_value, dtype, normalizer_fn
    )
    return _SequenceNumericColumn(*made)


def sequence_input_layer(
    features: Mapping[str, Any],
    feature_columns: Iterable[Any],
    weight_collections: Iterable[str] | None = None,
    trainable: bool = True,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Features of sequences side by side; all must be equally long.

    Variables are in the scope `sequence_input_layer`, each in one of its column.

    Args:
        features: By name.
        feature_columns: Numeric columns of sequences; embedding and indicator columns of others.
        weight_collections: Further collections of the variables.
        trainable: True if they are trained.

    Returns:
        Floats [batch, longest, width], and lengths [batch].

    Raises:
        ValueError: A column is not of sequences, or there are none, or two of one name.

    Source: `tf.contrib.feature_column.sequence_input_layer`, TF 1.15.
    """
    columns = _tf_private.normalize_feature_columns_v1(feature_columns)
    columns = sorted(columns, key=lambda column: column.name)
    for column in columns:
        if not isinstance(column, _tf_private.SequenceDenseColumnV1):
            raise ValueError(
                "All feature_columns must be of type _SequenceDenseColumn. You can wrap a "
                "sequence_categorical_column with an embedding_column or indicator_column. "
                f"Given (type {type(column)}): {column}"
            )
    with _v1.variable_scope(None, "sequence_input_layer", list(features.values())):
        inputs, tensors, lengths = _tf_private.LazyBuilder(features), [], []
        for column in columns:
            with _v1.variable_scope(None, column._var_scope_name):
                tensor, length = column._get_sequence_dense_tensor(
                    inputs, weight_collections=weight_collections, trainable=trainable
                )
                width = column._variable_shape.num_elements()
                shape = tf.shape(tensor)
                tensors.append(tf.reshape(tensor, [shape[0], shape[1], width]))
                lengths.append(length)
        _tf_private.check_batch_sizes(tensors, columns)
        _tf_private.check_batch_sizes(lengths, columns)
        return tf.concat(tensors, -1), _the_same(lengths)


def _the_same(lengths: list[tf.Tensor]) -> tf.Tensor:
    """The first of `lengths`; all must be equal to it."""
    first, *others = lengths
    with tf.control_dependencies([_v1.assert_equal(first, other) for other in others]):
        return tf.identity(first)
