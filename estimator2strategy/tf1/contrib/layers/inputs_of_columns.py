"""Inputs of networks, and linear models, of the feature columns of `tf.contrib.layers`.

Source: `tf.contrib.layers` feature_column_ops.py, TF 1.15.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tensorflow as tf

from estimator2strategy.tf1.contrib.layers import column_kinds as columns_of
from estimator2strategy.tf1.contrib.layers.looked_up_columns import (
    Column,
    DenseColumn,
    IdColumn,
    looked_up,
    matrix,
    variable_of,
)

_v1 = tf.compat.v1


def check_feature_columns(feature_columns: Any) -> None:
    """Refuses a dict, and two columns with one key.

    Raises:
        ValueError: See above.
    """
    if isinstance(feature_columns, dict):
        raise ValueError("Expected feature_columns to be iterable, found dict.")
    keys = [column.key for column in feature_columns]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice:
        raise ValueError(f"Duplicate feature column key found for column: {twice}.")


def input_from_feature_columns(
    columns_to_tensors: Mapping[Any, Any],
    feature_columns: Iterable[Any],
    weight_collections: Iterable[str] | None = None,
    trainable: bool = True,
    scope: Any = None,
    cols_to_outs: dict[str, Any] | None = None,
) -> tf.Tensor:
    """The columns side by side, [batch, width], in the order of their keys.

    Variables are `input_from_feature_columns/COLUMN_embedding/weights`.

    Args:
        columns_to_tensors: Features by name.
        feature_columns: Columns for a network: numbers, buckets, one-hot and embeddings.
        weight_collections: Further collections of the variables.
        trainable: True if they are trained.
        scope: Of the variables; `input_from_feature_columns` by default.
        cols_to_outs: A dict that is given the part of each column.

    Raises:
        ValueError: A column is not for a network, or is there twice.
    """
    feature_columns = list(feature_columns)
    check_feature_columns(feature_columns)
    with _v1.variable_scope(scope, "input_from_feature_columns"):
        get = transformer(columns_to_tensors)
        parts = _dense_parts(feature_columns, get, weight_collections, trainable)
        if cols_to_outs is not None:
            cols_to_outs.update(parts)
        return tf.concat([part for _, part in parts], 1)


def sequence_input_from_feature_columns(
    columns_to_tensors: Mapping[Any, Any],
    feature_columns: Iterable[Any],
    weight_collections: Iterable[str] | None = None,
    trainable: bool = True,
    scope: Any = None,
) -> tf.Tensor:
    """The columns of sequences side by side, [batch, time, width], in the order of their keys.

    Args:
        columns_to_tensors: Features by name, [batch, time, ...] or [batch, time].
        feature_columns: Columns of numbers, one-hot and embeddings, of ids that are no cross.
        weight_collections: Further collections of the variables.
        trainable: True if they are trained.
        scope: Of the variables; `sequence_input_from_feature_columns` by default.

    Raises:
        ValueError: A column is not for a sequence, or is there twice.
    """
    feature_columns = list(feature_columns)
    check_feature_columns(feature_columns)
    for column in feature_columns:
        _check_sequence_column(column)
    with _v1.variable_scope(scope, "sequence_input_from_feature_columns"):
        get = transformer(columns_to_tensors)

        def of_sequence(column: Any) -> Any:
            return tf.nest.map_structure(_of_sequence, get(column))

        parts = _dense_parts(feature_columns, of_sequence, weight_collections, trainable)
        return tf.concat([part for _, part in parts], 2)


def _dense_parts(
    feature_columns: Iterable[Any],
    get: Callable[[Any], Any],
    weight_collections: Iterable[str] | None,
    trainable: bool,
) -> list[tuple[Any, tf.Tensor]]:
    """Each column and its part of the input, by their keys; `get` transforms the features."""
    parts = []
    for column in sorted(feature_columns, key=lambda column: column.key):
        with _v1.variable_scope(None, column.name):
            parts.append((column, _dense(column, get(column), weight_collections, trainable)))
    return parts


def _check_sequence_column(column: Any) -> None:
    if not isinstance(column, _OF_SEQUENCES):
        raise ValueError(
            f"FeatureColumn type {type(column).__name__} is not currently supported for sequence "
            "data."
        )
    ids = getattr(column, "sparse_id_column", None)
    if isinstance(ids, (columns_of._CrossedColumn, columns_of._BucketizedColumn)):
        raise ValueError(
            f"Column {ids.name} is of type {type(ids).__name__}, which is not currently supported "
            "for sequences."
        )


_OF_SEQUENCES = (
    columns_of._OneHotColumn,
    columns_of._EmbeddingColumn,
    columns_of._RealValuedColumn,
)


def _of_sequence(tensor: Any) -> Any:
    """A feature as [batch, time, ...], of rank 3.

    Raises:
        ValueError: It has less than two dimensions.
    """
    if tensor is None:
        return None
    rank = tensor.shape.rank
    if rank is None or rank < 2:
        raise ValueError(
            f"Rank of input Tensor ({rank}) should be the same as output_rank (3). For example, "
            "sequence data should typically be 3 dimensional (rank 3)."
        )
    if isinstance(tensor, tf.SparseTensor):
        shape = tensor.dense_shape
        inner = tf.reduce_prod(shape[2:], keepdims=True)
        return tf.sparse.reshape(tensor, tf.concat([shape[:2], inner], 0))
    inner = None if None in tensor.shape[2:].as_list() else math.prod(tensor.shape[2:].as_list())
    shape = tf.shape(tensor)
    flat = tf.reshape(tensor, tf.concat([shape[:2], tf.reduce_prod(shape[2:], keepdims=True)], 0))
    return tf.ensure_shape(flat, [*tensor.shape[:2].as_list(), inner])


def transform_features(
    features: Mapping[Any, Any], feature_columns: Iterable[Any]
) -> dict[Any, Any]:
    """Each column with what it makes of features: numbers, ids, or ids and weights.

    Raises:
        ValueError: A feature is missing, or a column is there twice.
    """
    feature_columns = list(feature_columns)
    check_feature_columns(feature_columns)
    get = transformer(features)
    in_order = sorted(feature_columns, key=lambda column: column.key)
    return {column: column.shown(get(column)) for column in in_order}


def transformer(columns_to_tensors: Mapping[Any, Any]) -> Callable[[Any], Any]:
    """A function that gives a feature by name, or what a column makes of it, made once.

    Args:
        columns_to_tensors: Features by name, and perhaps columns with what `transform_features`
            made of them.
    """
    made = {
        key: key.hidden(value) if isinstance(key, Column) else value
        for key, value in columns_to_tensors.items()
    }

    def get(key: Any) -> Any:
        if key not in made:
            if isinstance(key, str):
                raise ValueError(f"features dictionary doesn't contain key ({key})")
            made[key] = key.transform(get)
        return made[key]

    return get


def _dense(column: Any, transformed: Any, collections: Any, trainable: bool) -> tf.Tensor:
    """A column's part of the input of a network, [batch, width]."""
    if isinstance(column, DenseColumn):
        return column.dense(transformed, collections, trainable)
    raise ValueError(
        f"Error creating input layer for column: {column.name}. {type(column).__name__} is not "
        "supported in DNN. Please use embedding_column or one_hot_column."
    )


def weighted_sum_from_feature_columns(
    columns_to_tensors: Mapping[Any, Any],
    feature_columns: Iterable[Any],
    num_outputs: int,
    weight_collections: Iterable[str] | None = None,
    trainable: bool = True,
    scope: Any = None,
) -> tuple[tf.Tensor, dict[Any, list[Any]], Any]:
    """A linear model of columns.

    Variables are `weighted_sum_from_feature_columns/COLUMN/weights` (`weight` of numbers), and
    `bias_weight`.

    Args:
        columns_to_tensors: Features by name.
        feature_columns: Columns of ids, numbers and buckets.
        num_outputs: Width of the result.
        weight_collections: Further collections of the variables.
        trainable: True if they are trained.
        scope: Of the variables; `weighted_sum_from_feature_columns` by default.

    Returns:
        Sums [batch, num_outputs], the variables by column, and that of the bias.

    Raises:
        ValueError: A column is for networks only, or is there twice.
    """
    feature_columns = list(feature_columns)
    check_feature_columns(feature_columns)
    sums, variables = [], {}
    with _v1.variable_scope(scope, "weighted_sum_from_feature_columns"):
        get = transformer(columns_to_tensors)
        for column in sorted(feature_columns, key=lambda column: column.key):
            transformed = get(column)
            with _v1.variable_scope(None, column.name):
                part, variable = _linear(
                    column, transformed, num_outputs, trainable, weight_collections
                )
            sums.append(part)
            variables[column] = [variable]
        zeros = _v1.zeros_initializer()
        bias = variable_of("bias_weight", [num_outputs], zeros, trainable, weight_collections)
        return tf.nn.bias_add(tf.add_n(sums), bias), variables, bias


def _linear(
    column: Any, transformed: Any, width: int, trainable: bool, collections: Any
) -> tuple[tf.Tensor, Any]:
    """A column's part of a linear model, [batch, width], and its variable."""
    zeros = _v1.zeros_initializer()
    if isinstance(column, columns_of._RealValuedColumn):
        tensor = matrix(transformed)
        variable = variable_of("weight", [tensor.shape[1], width], zeros, trainable, collections)
        return tf.matmul(tensor, variable), variable
    if not isinstance(column, IdColumn):
        raise ValueError(
            f"Error creating weighted sum for column: {column.name}. It is not supported in "
            "linear models. Please use sparse_column."
        )
    variable = variable_of("weights", [column._num_buckets, width], zeros, trainable, collections)
    if getattr(column, "ckpt_to_load_from", None):
        _v1.train.init_from_checkpoint(
            column.ckpt_to_load_from, {column.tensor_name_in_ckpt: variable}
        )
    ids, weights = transformed
    return looked_up(variable, ids, weights, column.combiner), variable


def parse_feature_columns_from_examples(
    serialized: tf.Tensor,
    feature_columns: Iterable[Any],
    name: str | None = None,
    example_names: Any = None,
) -> dict[Any, Any]:
    """Features of serialized Examples by name, and each column with what it makes of them."""
    feature_columns = list(feature_columns)
    check_feature_columns(feature_columns)
    spec = columns_of.create_feature_spec_for_parsing(feature_columns)
    features = _v1.parse_example(serialized, spec, name, example_names)
    return {**features, **transform_features(features, feature_columns)}
