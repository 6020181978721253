"""`tf.contrib.framework` of TF 1.15: what neither tf-slim nor TensorFlow has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.tf1.contrib import names_of

_v1 = tf.compat.v1

__getattr__ = names_of("framework", globals())


def with_shape(expected_shape: Any, tensor: Any) -> tf.Tensor:
    """`tensor`, with its shape checked: now where it is known, else when it is evaluated.

    Raises:
        ValueError: The static shapes differ.
    """
    tensor = tf.convert_to_tensor(tensor)
    expected = tf.get_static_value(expected_shape) if tf.is_tensor(expected_shape) else None
    if not tf.is_tensor(expected_shape):
        expected = tf.TensorShape(expected_shape).as_list()
    if expected is not None:
        if not tensor.shape.is_compatible_with(expected):
            raise ValueError(
                f"Invalid shape for tensor {tensor.name}, expected {list(expected)}, "
                f"got {tensor.shape}."
            )
        if tensor.shape.is_fully_defined():
            return tensor
    wanted = tf.convert_to_tensor(expected_shape, tf.int32)
    message = f"Wrong shape for {tensor.name} [expected] [actual]."
    check = _v1.assert_equal(wanted, tf.shape(tensor), [message, wanted, tf.shape(tensor)])
    with tf.control_dependencies([check]):
        checked = tf.identity(tensor)
    if expected is not None:
        checked.set_shape(expected)
    return checked


def with_same_shape(expected_tensor: Any, tensor: Any) -> tf.Tensor:
    """`tensor`, checked to have the shape of `expected_tensor`."""
    expected = tf.convert_to_tensor(expected_tensor)
    static = expected.shape
    return with_shape(static if static.is_fully_defined() else tf.shape(expected), tensor)


def reduce_sum_n(tensors: Sequence[Any], name: str | None = None) -> tf.Tensor:
    """The sum of all elements of all `tensors`, a scalar.

    Raises:
        ValueError: There are none.
    """
    if not tensors:
        raise ValueError("No tensors provided.")
    with _v1.name_scope(name, "reduce_sum_n", tensors) as scope:
        sums = [tf.reduce_sum(t) for t in tensors]
        return tf.add_n(sums, name=scope) if len(sums) > 1 else sums[0]


def zero_initializer(ref: Any, use_locking: bool = True, name: str = "zero_initializer") -> Any:
    """An op that sets the variable `ref` to zeros, and makes it initialised."""
    del use_locking
    return _v1.assign(ref, tf.zeros(ref.shape, ref.dtype.base_dtype), False, name=name)


def assert_scalar_int(tensor: Any, name: str | None = None) -> tf.Tensor:
    """`tensor`, checked to be of an integer type and without axes.

    Raises:
        ValueError: It is not.
    """
    with _v1.name_scope(name, "assert_scalar_int", [tensor]):
        tensor = tf.convert_to_tensor(tensor)
        if not tensor.dtype.base_dtype.is_integer:
            raise ValueError(
                f"Expected integer type for {tensor.name}, received type: {tensor.dtype}."
            )
        tensor.shape.assert_has_rank(0)
        return tensor


def get_placeholders(graph: tf.Graph) -> list[tf.Tensor]:
    """The placeholders of `graph`, in the order in which they were made."""
    return [o.outputs[0] for o in graph.get_operations() if o.type == "Placeholder"]


def remove_squeezable_dimensions(
    predictions: Any, labels: Any, name: str | None = None
) -> tuple[tf.Tensor, tf.Tensor]:
    """Both tensors; where one has one axis more than the other, its last is squeezed."""
    with _v1.name_scope(name, "remove_squeezable_dimensions", [predictions, labels]):
        predictions, labels = tf.convert_to_tensor(predictions), tf.convert_to_tensor(labels)
        if None not in (predictions.shape.rank, labels.shape.rank):
            surplus = predictions.shape.rank - labels.shape.rank
            return (
                tf.squeeze(predictions, [-1]) if surplus == 1 else predictions,
                tf.squeeze(labels, [-1]) if surplus == -1 else labels,
            )
        surplus = tf.rank(predictions) - tf.rank(labels)
        return _squeezed_if(predictions, surplus, 1), _squeezed_if(labels, surplus, -1)


def _squeezed_if(tensor: tf.Tensor, surplus: tf.Tensor, wanted: int) -> tf.Tensor:
    if tensor.shape.rank is not None and not tensor.shape[-1:].is_compatible_with([1]):
        return tensor
    return _v1.cond(
        tf.equal(surplus, wanted), lambda: tf.squeeze(tensor, [-1]), lambda: tf.identity(tensor)
    )
