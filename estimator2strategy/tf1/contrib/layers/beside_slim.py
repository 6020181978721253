"""`tf.contrib.layers` of TF 1.15: what tf-slim does not have, and what needs no tf-slim."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

_v1 = tf.compat.v1


def dense_to_sparse_tensor(dense_tensor: Any, ignore_value: Any = None) -> tf.SparseTensor:
    """The cells of a tensor that are not `ignore_value`, by default "" or 0."""
    with _v1.name_scope("DenseToSparseTensor"):
        dense = tf.convert_to_tensor(dense_tensor)
        indices = tf.where(tf.not_equal(dense, _ignored(dense.dtype, ignore_value)))
        return tf.SparseTensor(
            indices, tf.gather_nd(dense, indices), tf.shape(dense, out_type=tf.int64)
        )


def _ignored(dtype: tf.DType, ignore_value: Any) -> tf.Tensor:
    if ignore_value is None:
        ignore_value = "" if dtype == tf.string else dtype.as_numpy_dtype()
    return tf.cast(ignore_value, dtype)


def indicators_to_sparse_ids(
    indicators: Any, ignore_value: Any = None, dtype: tf.DType = tf.int64
) -> tf.SparseTensor:
    """The places of those cells of the last axis that are not `ignore_value`, row by row.

    Args:
        indicators: Of any shape: ones where a class is there.
        ignore_value: The value where it is not, by default "" or 0.
        dtype: The integer type of the places.

    Raises:
        ValueError: `dtype` is no integer type.
    """
    if not dtype.is_integer:
        raise ValueError(f"Invalid dtype {dtype} not integer.")
    with _v1.name_scope(None, "indicators_to_sparse_ids", [indicators]):
        indicators = tf.convert_to_tensor(indicators)
        present = tf.not_equal(indicators, _ignored(indicators.dtype, ignore_value))
        # The first cell of a row that is there has 1, the second 2, and so on.
        number = tf.where(
            present, tf.cumsum(tf.cast(present, tf.int64), axis=-1), tf.zeros([], tf.int64)
        )
        cells = dense_to_sparse_tensor(number, ignore_value=0)
        longest = tf.reshape(tf.reduce_max(number), [1])
        return tf.SparseTensor(
            tf.concat([cells.indices[:, :-1], cells.values[:, None] - 1], axis=1),
            tf.cast(cells.indices[:, -1], dtype),
            tf.concat([cells.dense_shape[:-1], longest], axis=0),
        )


def sparse_row_envelope(
    sparse_input: tf.SparseTensor, row_axis: int = 0, col_axis: int = 1, name: str | None = None
) -> tf.Tensor:
    """The length of each row of a SparseTensor: one more than its last column with a value.

    Raises:
        ValueError: An axis is no integer, or both are the same.
    """
    if not (isinstance(row_axis, int) and isinstance(col_axis, int)):
        raise ValueError("`row_axis` and `col_axis` must be integers.")
    if row_axis == col_axis:
        raise ValueError("Row and column can not be the same axis.")
    with _v1.name_scope(name, "sparse_row_envelope", [sparse_input]):
        rows = tf.cast(sparse_input.dense_shape[row_axis], tf.int32)
        indices = sparse_input.indices
        last = tf.math.unsorted_segment_max(indices[:, col_axis] + 1, indices[:, row_axis], rows)
        return tf.maximum(last, 0)


def layer_norm(
    inputs: tf.Tensor,
    center: bool = True,
    scale: bool = True,
    activation_fn: Callable[..., Any] | None = None,
    reuse: bool | None = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    begin_norm_axis: int = 1,
    begin_params_axis: int = -1,
    scope: Any = None,
) -> tf.Tensor:
    """Layer normalisation over the axes from `begin_norm_axis` on; variables `beta`, `gamma`.

    Without a `scope` each call makes its own: LayerNorm, LayerNorm_1, ...

    Source: `tf.contrib.layers.layer_norm`, TF 1.15.
    """
    with _v1.variable_scope(scope, "LayerNorm", [inputs], reuse=reuse) as variables:
        inputs = tf.convert_to_tensor(inputs)
        shape = inputs.shape.as_list()[begin_params_axis:]
        dtype = inputs.dtype.base_dtype

        def parameter(name: str, initializer: Any) -> tf.Tensor:
            collections = [_v1.GraphKeys.GLOBAL_VARIABLES, _v1.GraphKeys.MODEL_VARIABLES]
            return _v1.get_variable(
                name,
                shape,
                dtype,
                initializer,
                trainable=trainable,
                collections=collections + list(variables_collections or []),
            )

        beta = parameter("beta", _v1.zeros_initializer()) if center else None
        gamma = parameter("gamma", _v1.ones_initializer()) if scale else None
        axes = list(range(begin_norm_axis % len(inputs.shape), len(inputs.shape)))
        mean, variance = _v1.nn.moments(inputs, axes, keep_dims=True)
        # Half precision has no room for 1e-12.
        epsilon = 1e-3 if dtype == tf.float16 else 1e-12
        outputs = tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, epsilon)
        outputs.set_shape(inputs.shape)
        if activation_fn is not None:
            outputs = activation_fn(outputs)
        if outputs_collections:
            _v1.add_to_collections(outputs_collections, outputs)
        del variables
        return outputs


def embed_sequence(
    ids: Any,
    vocab_size: int | None = None,
    embed_dim: int | None = None,
    unique: bool = False,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: bool | None = None,
) -> tf.Tensor:
    """Embeddings of integer ids: one more axis of `embed_dim`; variable `embeddings`.

    Args:
        ids: Integers, [batch, length].
        vocab_size: Number of ids.
        embed_dim: Size of an embedding.
        unique: True if each id is looked up once.
        initializer: Of the embeddings; that of the scope by default.
        regularizer: Of the embeddings.
        trainable: True if they are trained.
        scope: Variable scope, `EmbedSequence` by default.
        reuse: True if the embeddings are those that the scope has.

    Raises:
        ValueError: Neither the sizes are given nor `reuse`.
    """
    if not (reuse or (vocab_size and embed_dim)):
        raise ValueError(
            "Must specify vocab size and embedding dimension when not reusing. "
            f"Got vocab_size={vocab_size} and embed_dim={embed_dim}"
        )
    with _v1.variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        embeddings = _v1.get_variable(
            "embeddings",
            [vocab_size, embed_dim] if vocab_size and embed_dim else None,
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
            collections=[_v1.GraphKeys.GLOBAL_VARIABLES, _v1.GraphKeys.MODEL_VARIABLES],
        )
        if not unique:
            return _v1.nn.embedding_lookup(embeddings, ids)
        return embedding_lookup_unique(embeddings, ids)


def embedding_lookup_unique(
    params: Any, ids: Any, partition_strategy: str = "mod", name: str | None = None
) -> tf.Tensor:
    """`tf.nn.embedding_lookup`, which looks each id up once: ids of any shape, and one more axis.

    Source: `tf.contrib.layers.embedding_lookup_unique`, TF 1.15.
    """
    with _v1.name_scope(name, "EmbeddingLookupUnique"):
        ids = tf.convert_to_tensor(ids)
        distinct, places = tf.unique(tf.reshape(ids, [-1]))
        looked_up = _v1.nn.embedding_lookup(params, distinct, partition_strategy)
        rows = tf.gather(looked_up, places)
        return tf.reshape(rows, tf.concat([tf.shape(ids), tf.shape(looked_up)[1:]], 0))


def bow_encoder(
    ids: Any,
    vocab_size: int,
    embed_dim: int,
    sparse_lookup: bool = True,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: bool | None = None,
) -> tf.Tensor:
    """The mean of the embeddings of an example's ids, [batch, embed_dim].

    Args:
        ids: Integers, [batch, length], sparse or not.
        vocab_size: Number of ids.
        embed_dim: Size of an embedding.
        sparse_lookup: True: 0 is no id, unless `ids` are sparse; an example without ids has the
            embedding of 0. False: all count.
        initializer, regularizer, trainable, reuse: Of the variable `embeddings`.
        scope: Its scope, `bow_encoder` by default.

    Raises:
        ValueError: A size is missing.
        TypeError: `ids` are sparse, and `sparse_lookup` is False.

    Source: `tf.contrib.layers.bow_encoder`, TF 1.15.
    """
    if not vocab_size or not embed_dim:
        raise ValueError("Must specify vocab size and embedding dimension")
    is_sparse = isinstance(ids, tf.SparseTensor)
    if is_sparse and not sparse_lookup:
        raise TypeError(f"ids are expected to be dense Tensor, got: {ids}")
    with _v1.variable_scope(scope, "bow_encoder", reuse=reuse):
        embeddings = _v1.get_variable(
            "embeddings",
            [vocab_size, embed_dim],
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
            collections=[_v1.GraphKeys.GLOBAL_VARIABLES, _v1.GraphKeys.MODEL_VARIABLES],
        )
        if not sparse_lookup:
            return tf.reduce_mean(_v1.nn.embedding_lookup(embeddings, ids), 1)
        sparse = ids if is_sparse else tf.sparse.from_dense(ids)
        return _v1.nn.safe_embedding_lookup_sparse(
            embeddings, sparse, combiner="mean", default_id=0
        )


def poincare_normalize(
    x: Any, axis: Any = 1, epsilon: float = 1e-5, name: str | None = None
) -> tf.Tensor:
    """`x`, with each slice along `axis` shortened to a norm of at most `1 - epsilon`."""
    with _v1.name_scope(name, "poincare_normalize", [x]) as scope:
        x = tf.convert_to_tensor(x, name="x")
        inverse = tf.math.rsqrt(tf.reduce_sum(tf.square(x), axis, keepdims=True))
        return tf.multiply(x, tf.minimum((1.0 - epsilon) * inverse, 1.0), name=scope)
