"""Inputs of networks, and linear models, of the feature columns of `tf.contrib.layers`.

Source: `tf.contrib.layers` feature_column_ops.py, TF 1.15.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tensorflow as tf

from estimator2strategy.tf1.contrib import layer_column_kinds as columns_of

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
    cols_to_outs: dict | None = None,
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
    return {column: _shown(column, get(column)) for column in in_order}


def _shown(column: Any, transformed: Any) -> Any:
    """Returns a column's transformed features in the form that TF 1.15 showed."""
    if isinstance(column, columns_of._BucketizedColumn):
        dimension = column.source_column.dimension
        ids = tf.reshape(transformed[0].values, [-1, dimension])
        return tf.cast(ids, tf.int32) - column.buckets * tf.range(dimension)
    if isinstance(transformed, tuple) and transformed[1] is None:
        return transformed[0]
    return transformed


def _hidden(column: Any, shown: Any) -> Any:
    """The argument of `_shown`, of its result."""
    if isinstance(column, columns_of._BucketizedColumn):
        return column.of_buckets(shown)
    is_of_ids = isinstance(column, columns_of.COLUMNS) and isinstance(shown, tf.SparseTensor)
    return (shown, None) if is_of_ids else shown


def transformer(columns_to_tensors: Mapping[Any, Any]) -> Callable[[Any], Any]:
    """A function that gives a feature by name, or what a column makes of it, made once.

    Args:
        columns_to_tensors: Features by name, and perhaps columns with what `transform_features`
            made of them.
    """
    made = {key: _hidden(key, value) for key, value in columns_to_tensors.items()}

    def get(key: Any) -> Any:
        if key not in made:
            if isinstance(key, str):
                raise ValueError(f"features dictionary doesn't contain key ({key})")
            made[key] = key.transform(get)
        return made[key]

    return get


def _dense(column: Any, transformed: Any, collections: Any, trainable: bool) -> tf.Tensor:
    """A column's part of the input of a network, [batch, width]."""
    if isinstance(column, columns_of._RealValuedColumn):
        return transformed if transformed.shape.rank == 3 else _matrix(transformed)
    if isinstance(column, columns_of._BucketizedColumn):
        ids = tf.reshape(transformed[0].values, [-1, column.source_column.dimension])
        return tf.reduce_sum(tf.one_hot(ids, column.length), 1)
    if isinstance(column, columns_of._OneHotColumn):
        return _counts(column, *transformed)
    if isinstance(column, columns_of._EmbeddingColumn):
        variable = _embeddings(column, trainable and column.trainable, collections)
        if column.ckpt_to_load_from:
            _v1.train.init_from_checkpoint(
                column.ckpt_to_load_from, {column.tensor_name_in_ckpt: variable}
            )
        ids, weights = transformed
        return _looked_up(variable, ids, weights, column.combiner, column.max_norm)
    raise ValueError(
        f"Error creating input layer for column: {column.name}. {type(column).__name__} is not "
        "supported in DNN. Please use embedding_column or one_hot_column."
    )


def _embeddings(column: Any, trainable: bool, collections: Any) -> Any:
    """The variable of an embedding column; those that share one find it in the graph.

    Raises:
        ValueError: The variable has another shape.
    """
    shape = [column.length, column.dimension]
    name = column.shared_embedding_name
    if name is None:
        return _variable("weights", shape, column.initializer, trainable, collections)
    shared = _v1.get_collection_ref(f"SHARED_EMBEDDING_COLLECTION_{name.upper()}")
    if not shared:
        shared.append(_variable(name, shape, column.initializer, trainable, collections))
    if shared[0].shape.as_list() != shape:
        raise ValueError(
            f"The embedding variable with name {name} already exists, but its shape does not match "
            "required embedding shape here. Please make sure to use different "
            "shared_embedding_name for different shared embeddings."
        )
    return shared[0]


def _matrix(tensor: tf.Tensor) -> tf.Tensor:
    if tensor.shape.rank == 1:
        return tensor[:, None]
    return tensor if tensor.shape.rank == 2 else tf.compat.v1.layers.flatten(tensor)


def _counts(column: Any, ids: tf.SparseTensor, weights: tf.SparseTensor | None) -> tf.Tensor:
    """Counts how often each id occurs in an example, or sums its weights."""
    if weights is None:
        dense = tf.sparse.to_dense(ids, default_value=-1)
        return tf.reduce_sum(tf.one_hot(dense, column.length), -2)
    places = tf.stack([ids.indices[:, 0], tf.cast(ids.values, tf.int64)], 1)
    shape = tf.stack([ids.dense_shape[0], tf.constant(column.length, tf.int64)])
    counts = tf.scatter_nd(places, weights.values, shape)
    return tf.ensure_shape(counts, [None, column.length])


def _variable(
    name: str, shape: list[Any], initializer: Any, trainable: bool, collections: Any
) -> Any:
    keys = [_v1.GraphKeys.GLOBAL_VARIABLES, _v1.GraphKeys.MODEL_VARIABLES]
    return _v1.get_variable(
        name,
        shape,
        tf.float32,
        initializer,
        trainable=trainable,
        collections=list(dict.fromkeys([*keys, *(collections or ())])),
    )


def _looked_up(
    variable: Any,
    ids: tf.SparseTensor,
    weights: tf.SparseTensor | None,
    combiner: str,
    max_norm: float | None = None,
) -> tf.Tensor:
    """The rows of an example's ids, put together; zeros where it has none."""
    return _v1.nn.safe_embedding_lookup_sparse(
        variable, ids, weights, combiner=combiner, max_norm=max_norm
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
        bias = _variable("bias_weight", [num_outputs], zeros, trainable, weight_collections)
        return tf.nn.bias_add(tf.add_n(sums), bias), variables, bias


def _linear(
    column: Any, transformed: Any, width: int, trainable: bool, collections: Any
) -> tuple[tf.Tensor, Any]:
    """A column's part of a linear model, [batch, width], and its variable."""
    zeros = _v1.zeros_initializer()
    if isinstance(column, columns_of._RealValuedColumn):
        tensor = _matrix(transformed)
        variable = _variable("weight", [tensor.shape[1], width], zeros, trainable, collections)
        return tf.matmul(tensor, variable), variable
    if isinstance(column, (columns_of._EmbeddingColumn, columns_of._OneHotColumn)):
        raise ValueError(
            f"Error creating weighted sum for column: {column.name}. It is not supported in "
            "linear models. Please use sparse_column."
        )
    variable = _variable("weights", [column.length, width], zeros, trainable, collections)
    if getattr(column, "ckpt_to_load_from", None):
        _v1.train.init_from_checkpoint(
            column.ckpt_to_load_from, {column.tensor_name_in_ckpt: variable}
        )
    ids, weights = transformed
    return _looked_up(variable, ids, weights, column.combiner), variable


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
