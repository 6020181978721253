"""The form of v1 metrics, a `StreamingMetric`; predictions, labels and weights of one shape.

The decisions are those of `metrics_impl.py`, taken on static ranks. A rank that is unknown is
an error here; `convert` leaves such calls to the generic replay.

Source: tensorflow/python/ops: `_remove_squeezable_dimensions` and `_maybe_expand_labels` in
metrics_impl.py, `remove_squeezable_dimensions` in confusion_matrix.py, `broadcast_weights` in
weights_broadcast_ops.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

Sums = Mapping[str, tf.Tensor]


def rank_of(tensor: tf.Tensor | tf.SparseTensor) -> int:
    """Static rank; ValueError when it is unknown."""
    # A SparseTensor forgets its rank when its parts went through a function; dense_shape knows it.
    shape = tensor.dense_shape.shape if isinstance(tensor, tf.SparseTensor) else tensor.shape
    rank = shape.as_list()[0] if isinstance(tensor, tf.SparseTensor) else shape.rank
    if rank is None:
        raise ValueError(f"The rank of {tensor} is unknown; metrics need it. Use tf.ensure_shape.")
    return int(rank)


def _may_squeeze(tensor: tf.Tensor) -> bool:
    return tensor.shape.as_list()[-1] in (None, 1)


def squeeze_to_same_rank(labels: Any, predictions: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """Drops the last axis, of size 1, of the one whose rank is higher by 1."""
    labels, predictions = tf.convert_to_tensor(labels), tf.convert_to_tensor(predictions)
    difference = rank_of(predictions) - rank_of(labels)
    if difference == 1 and _may_squeeze(predictions):
        predictions = tf.squeeze(predictions, [-1])
    elif difference == -1 and _may_squeeze(labels):
        labels = tf.squeeze(labels, [-1])
    if rank_of(predictions) != rank_of(labels):
        raise ValueError(f"Shapes {labels.shape} and {predictions.shape} are incompatible")
    return labels, predictions


def match(predictions: Any, labels: Any, weights: Any) -> tuple[tf.Tensor, Any, Any]:
    """`(predictions, labels, weights)` of one rank, as far as one axis of size 1 can do it.

    Labels or weights that are None stay None; scalar weights stay scalar.
    """
    predictions = tf.convert_to_tensor(predictions)
    if labels is not None:
        labels, predictions = squeeze_to_same_rank(labels, predictions)
    if weights is None:
        return predictions, labels, None
    weights = tf.convert_to_tensor(weights)
    if rank_of(weights) == 0:
        return predictions, labels, weights
    difference = rank_of(weights) - rank_of(predictions)
    if difference == 1:
        weights = tf.squeeze(weights, [-1])
    elif difference == -1:
        weights = tf.expand_dims(weights, -1)
    return predictions, labels, weights


def broadcast_weights(weights: Any, values: tf.Tensor) -> tf.Tensor:
    """`weights` with the shape and dtype of `values`.

    They may be a scalar, or have the rank of `values` and in each axis size 1 or the same size.

    Raises:
        ValueError: The rank is neither 0 nor that of `values`.
        tf.errors.InvalidArgumentError: A size is neither 1 nor that of `values`.
    """
    weights = tf.cast(weights, values.dtype)
    require_weights_rank(weights, values)
    return tf.broadcast_to(weights, tf.shape(values))


def require_weights_rank(weights: tf.Tensor, values: tf.Tensor) -> None:
    """ValueError unless `weights` is a scalar or has the rank of `values`."""
    if rank_of(weights) not in (0, rank_of(values)):
        raise ValueError(
            f"weights can not be broadcast to values. values.shape={values.shape}, "
            f"weights.shape={weights.shape}."
        )


def flat(tensor: tf.Tensor) -> tf.Tensor:
    """`tensor` as a vector; scalars and vectors as they are."""
    return tf.reshape(tensor, [-1]) if rank_of(tensor) > 1 else tensor


def expand_labels(
    labels: tf.Tensor | tf.SparseTensor, predictions: tf.Tensor
) -> tf.Tensor | tf.SparseTensor:
    """Labels [D1, ... DN] as [D1, ... DN, 1] when predictions are [D1, ... DN, classes]."""
    difference = rank_of(predictions) - rank_of(labels)
    if difference == 1:
        if isinstance(labels, tf.SparseTensor):
            return tf.sparse.expand_dims(labels, -1)
        return tf.expand_dims(labels, -1)
    if difference != 0:
        raise ValueError(
            f"Unexpected labels shape {labels.shape} for predictions shape {predictions.shape}. "
            "Predictions rank should be the same rank as labels rank or labels rank plus one."
        )
    return labels


def require_same_shape(labels: Any, predictions: Any) -> None:
    """ValueError when the static shapes differ in more than a last axis of size 1.

    v1 checks this once, when the graph is built. A metric that is called with tensors, not built
    from them, checks it at each call: else [N, 1] and [N, 10] would silently broadcast.
    """
    labels, predictions = squeeze_to_same_rank(labels, predictions)
    if not labels.shape.is_compatible_with(predictions.shape):
        raise ValueError(f"Shapes {labels.shape} and {predictions.shape} are incompatible")


@dataclasses.dataclass(frozen=True)
class StreamingMetric:
    """A function of `tf.compat.v1.metrics`, without its variables: sums, and a function of them.

    Attributes:
        state: Name of each sum to its shape and dtype; all start at zero.
        batch: `batch(**tensors)`: what one batch adds to each sum, by name.
        result: `result(sums)`: the metric's value.
    """

    state: Mapping[str, tuple[tuple[int, ...], str]]
    batch: Callable[..., Sums]
    result: Callable[[Sums], tf.Tensor]
