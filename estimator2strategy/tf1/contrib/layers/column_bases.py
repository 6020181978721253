"""The bases of columns of `tf.contrib.layers`, which are columns of `tf.feature_column` too.

The canned Estimators and `tf.compat.v1.feature_column` know columns of the first kind by two
classes, and by a few private members. They ask a column for its tensors through a cache.

Source: `tf.contrib.layers` feature_column.py, TF 1.15.
"""

from __future__ import annotations

from collections.abc import Callable
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
