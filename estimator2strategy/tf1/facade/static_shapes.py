"""Functions whose results had a static shape in TF 1.15 that TensorFlow 2 does not know.

    stand_in_for(tf.compat.v1.parse_example)    # gives [?, 4] for records of unknown shape

TensorFlow 2 lets these ops take inputs of more ranks. Programs of TF 1.15 go on with the shape.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

tf1 = tf.compat.v1


def stand_in_for(function: Any) -> Any:
    """The function with TF 1.15's shapes for one of TensorFlow's; None if it needs none."""
    return _replaced().get(function)


# Modules that have such functions.
MODULES = ("image", "io", "linalg", "sparse")


@functools.cache
def _replaced() -> dict[Callable[..., Any], Callable[..., Any]]:
    return {
        tf1.parse_example: parse_example,
        tf1.io.parse_sequence_example: parse_sequence_example,
        tf1.image.encode_png: encode_png,
        tf1.matrix_triangular_solve: matrix_triangular_solve,
        tf1.sparse_placeholder: sparse_placeholder,
    }


@functools.wraps(tf1.parse_example)
def parse_example(
    serialized: Any, features: Any, name: Any = None, example_names: Any = None
) -> Any:
    parsed = tf1.parse_example(serialized, features, name, example_names)
    _know_features(parsed, features, [None])
    return parsed


@functools.wraps(tf1.io.parse_sequence_example)
def parse_sequence_example(
    serialized: Any,
    context_features: Any = None,
    sequence_features: Any = None,
    example_names: Any = None,
    name: Any = None,
) -> Any:
    context, sequences, lengths = tf1.io.parse_sequence_example(
        serialized, context_features, sequence_features, example_names, name
    )
    _know_features(context, context_features or {}, [None])
    _know_features(sequences, sequence_features or {}, [None, None])
    for length in lengths.values():
        _know(length, [None])
    return context, sequences, lengths


def _know_features(parsed: dict[str, Any], features: dict[str, Any], batch: list[None]) -> None:
    for key, feature in features.items():
        value = parsed[key]
        if isinstance(value, tf.SparseTensor):
            rank = len(batch) + 1
            _know(value.indices, [None, rank])
            _know(value.dense_shape, [rank])
            sizes = getattr(feature, "size", None)  # of a SparseFeature
            value.set_shape(batch + (list(tf.nest.flatten(sizes)) if sizes else [None]))
        elif isinstance(feature, tf.io.FixedLenSequenceFeature):
            _know(value, [None, None, *tf.TensorShape(feature.shape)])
        elif isinstance(feature, tf.io.FixedLenFeature):
            _know(value, [*batch, *tf.TensorShape(feature.shape)])


def _know(tensor: Any, shape: Any) -> None:
    if not tf.executing_eagerly() and tensor.shape.is_compatible_with(shape):
        tensor.set_shape(shape)


@functools.wraps(tf1.image.encode_png)
def encode_png(*args: Any, **kwargs: Any) -> Any:
    encoded = tf1.image.encode_png(*args, **kwargs)
    if encoded.shape.rank is None:  # TensorFlow 2 encodes several at once, too
        _know(encoded, [])
    return encoded


@functools.wraps(tf1.matrix_triangular_solve)
def matrix_triangular_solve(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: Any = None
) -> Any:
    solved = tf1.matrix_triangular_solve(matrix, rhs, lower, adjoint, name)
    shapes = [getattr(value, "shape", tf.TensorShape(None)) for value in (matrix, rhs)]
    if solved.shape.rank is None and any(shape.rank is not None for shape in shapes):
        # TensorFlow 2 repeats the smaller of two batches; TF 1.15 wanted equal ones.
        matrices, sides = shapes
        rank = matrices.rank or sides.rank
        matrices, sides = (
            shape if shape.rank is not None else tf.TensorShape([None] * rank) for shape in shapes
        )
        if matrices.rank == sides.rank:
            batch = matrices[:-2].merge_with(sides[:-2])
            _know(solved, [*batch, matrices[-2] or matrices[-1] or sides[-2], sides[-1]])
    return solved


@functools.wraps(tf1.sparse_placeholder)
def sparse_placeholder(dtype: Any, shape: Any = None, name: str | None = None) -> Any:
    is_known = isinstance(shape, (list, tuple, tf.TensorShape)) and (
        tf.TensorShape([None if size == -1 else size for size in shape]).is_fully_defined()
    )
    if not is_known or tf.executing_eagerly():
        return tf1.sparse_placeholder(dtype, shape, name)

    def part(suffix: str) -> str | None:
        return None if name is None else f"{name}/{suffix}"

    sizes = tf.constant(list(tf.TensorShape(shape)), tf.int64, name=part("shape_default"))
    # Shapes are inferred from the constant through this op, which can be fed. TensorFlow 2 has a
    # placeholder there, through which they are not.
    made = tf.SparseTensor(
        values=tf1.placeholder(dtype, [None], part("values")),
        indices=tf1.placeholder(tf.int64, [None, len(shape)], part("indices")),
        dense_shape=tf.reshape(sizes, [-1], part("shape")),
    )
    made.set_shape(shape)
    return made
