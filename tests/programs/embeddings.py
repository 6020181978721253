"""A model on embedding columns, for the real TPUEstimator and for ours; made to be told by numbers.

    python tests/programs/embeddings.py golden.json     # in an environment with TensorFlow 2.15

writes what the real one trains with use_tpu=False.
"""

from __future__ import annotations

import json
import sys
import tempfile

import tensorflow as tf

tf1 = tf.compat.v1
STEPS, BATCH = 4, 4
# For each of 16 examples: ids of one table, weighted ids and a word of another that both share.
IDS = [[(3 * i + j) % 8 for j in range(i % 3)] for i in range(16)]
LEFT = [[(i + j) % 6 for j in range(1 + i % 2)] for i in range(16)]
WEIGHTS = [[0.5 + 0.25 * (i % 4) + j for j in range(1 + i % 2)] for i in range(16)]
RIGHT = [[(2 * i) % 6] for i in range(16)]


def columns():
    experimental = tf1.tpu.experimental
    identity = tf.feature_column.categorical_column_with_identity
    start = tf1.constant_initializer(0.5)
    ids = experimental.embedding_column(
        identity("ids", 8), dimension=2, combiner="sqrtn", initializer=start
    )
    weighted = tf.feature_column.weighted_categorical_column(identity("left", 6), "weights")
    shared = experimental.shared_embedding_columns(
        [weighted, identity("right", 6)], dimension=3, initializer=start
    )
    return [ids, *shared]


def input_fn(params):
    def column(values):
        ragged = tf.ragged.constant(values, inner_shape=())
        return tf.data.Dataset.from_tensor_slices(ragged).map(lambda x: tf.sparse.from_dense(x + 1))

    def shifted(x):
        # Sparse tensors have no zeros, so that ids went up by one.
        return tf.SparseTensor(x.indices, x.values - 1, x.dense_shape)

    features = {
        "ids": column(IDS).map(shifted),
        "left": column(LEFT).map(shifted),
        "right": column(RIGHT).map(shifted),
        "weights": column(WEIGHTS).map(shifted),
    }
    labels = tf.data.Dataset.range(16).map(lambda i: tf.cast(i, tf.float32))
    examples = tf.data.Dataset.zip((features, labels)).repeat()
    return examples.batch(params["batch_size"], drop_remainder=True)


def model_fn_of(layer_of, spec_class, feature_columns, optimizer):
    """model_fn, made for a TPUEstimatorSpec."""

    def model_fn(features, labels, mode, params):
        inputs = layer_of(feature_columns)(features)
        kernel = tf1.get_variable("kernel", [8], initializer=tf1.constant_initializer(0.25))
        loss = tf.reduce_mean(tf.square(tf.linalg.matvec(inputs, kernel) - labels))
        chosen = optimizer()
        if params["use_tpu"]:
            chosen = tf1.tpu.CrossShardOptimizer(chosen)
        train_op = chosen.minimize(loss, global_step=tf1.train.get_global_step())
        return spec_class(mode, loss=loss, train_op=train_op)

    return model_fn


def variables_of(estimator):
    return {
        name: estimator.get_variable_value(name).tolist()
        for name in sorted(estimator.get_variable_names())
    }


def golden():
    tpu = tf1.estimator.tpu
    feature_columns = columns()
    model = tpu.TPUEstimator(
        model_fn_of(
            tf1.keras.layers.DenseFeatures,
            tpu.TPUEstimatorSpec,
            feature_columns,
            lambda: tf1.train.AdagradOptimizer(0.1),
        ),
        config=tpu.RunConfig(model_dir=tempfile.mkdtemp()),
        use_tpu=False,
        train_batch_size=BATCH,
        embedding_config_spec=tpu.experimental.EmbeddingConfigSpec(
            feature_columns, tf1.tpu.experimental.AdagradParameters(0.1)
        ),
    )
    model.train(input_fn, steps=STEPS)
    return {"tensorflow": tf.__version__, "adagrad": variables_of(model)}


if __name__ == "__main__":
    with open(sys.argv[1], "w") as file:
        json.dump(golden(), file, indent=1)
