"""Feature columns in a model_fn of one's own: a program of TF 1.15, with its `tf.contrib`.

    python columns.py FOLDER            # TensorFlow 1.15
    e2s run columns.py FOLDER           # here

Prints JSON: case -> variables, collections, losses of 5 steps, evaluation and predictions.
tests/goldens/columns.json is its output on TensorFlow 1.15.5.
"""

import hashlib
import json
import os
import sys

import numpy as np
import tensorflow as tf

fc = tf.feature_column
N, BATCH, STEPS = 24, 8, 5
COLORS = ["red", "green", "blue"]


def random():
    """Numbers that are the same in every case."""
    return np.random.RandomState(3)


def examples():
    """Serialized examples, and their labels."""
    draw, rows = random(), []
    for _ in range(N):
        length = draw.randint(1, 5)
        day = draw.randint(0, 7)
        words = ["a", "bb", "ccc", "d"][: draw.randint(0, 4)]
        feature = {
            "size": floats(draw.randn(2)),
            "age": floats([draw.randint(10, 80)]),
            "color": strings([COLORS[draw.randint(0, 3)]]),
            "tags": strings(words),
            "amounts": floats(draw.rand(len(words))),
            "day": integers([day]),
            "hour": integers([(day + 2) % 7]),
            "ids": integers(draw.randint(0, 6, length)),
            "words": strings(COLORS[i] for i in draw.randint(0, 3, length)),
            "pairs": floats(draw.randn(2 * length)),
        }
        rows.append(tf.train.Example(features=tf.train.Features(feature=feature)))
    return [row.SerializeToString() for row in rows], draw.randn(N, 1).astype(np.float32)


def floats(values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def integers(values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def strings(values):
    values = [value.encode() for value in values]
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


# --- Columns.


def categorical():
    """What a linear model takes, by name."""
    tags = fc.categorical_column_with_hash_bucket("tags", 5)
    age = fc.bucketized_column(fc.numeric_column("age"), [20.0, 40.0, 60.0])
    return {
        "color": fc.categorical_column_with_vocabulary_list("color", COLORS[:2], num_oov_buckets=1),
        "tags": tags,
        "weighted": fc.weighted_categorical_column(tags, "amounts"),
        "day": fc.categorical_column_with_identity("day", 7),
        "hour": fc.categorical_column_with_identity("hour", 7, default_value=0),
        "age": age,
        "crossed": fc.crossed_column([age, "color"], 11),
        "size": fc.numeric_column("size", shape=(2,), normalizer_fn=lambda x: x / 2.0),
    }


def dense():
    """What an input layer takes, by name."""
    of = categorical()
    day, hour = fc.shared_embedding_columns([of["day"], of["hour"]], 2, combiner="sum")
    return {
        "size": of["size"],
        "age": of["age"],
        "color": fc.indicator_column(of["color"]),
        "tags": fc.embedding_column(of["tags"], 3, combiner="sqrtn", max_norm=0.4),
        "weighted": fc.indicator_column(of["weighted"]),
        "crossed": fc.embedding_column(of["crossed"], 2),
        "day": day,
        "hour": hour,
    }


def sequences(module):
    """Columns of sequences, made by `tf.feature_column` or `tf.contrib.feature_column`."""
    ids = module.sequence_categorical_column_with_identity("ids", 6)
    words = module.sequence_categorical_column_with_vocabulary_list("words", COLORS)
    hashed = module.sequence_categorical_column_with_hash_bucket("words", 4)
    return [
        fc.embedding_column(ids, 3),
        fc.indicator_column(words),
        fc.embedding_column(hashed, 2, initializer=tf.zeros_initializer()),
        module.sequence_numeric_column("pairs", shape=(2,), normalizer_fn=lambda x: x * 0.5),
    ]


def linear():
    """Columns of a linear model that may stand together: no feature is cut in two ways."""
    of = categorical()
    return [of[name] for name in ("color", "weighted", "day", "age", "crossed", "size")]


# --- The networks: each gives its output, and facts to compare.


def named(variables):
    """Names and shapes of what a `cols_to_vars` has, by column."""
    return {
        getattr(column, "name", column): [[v.name, v.shape.as_list()] for v in made]
        for column, made in variables.items()
    }


def input_layer(features):
    columns = list(dense().values())
    variables, outputs = {}, {}
    net = fc.input_layer(features, columns, cols_to_vars=variables, cols_to_output_tensors=outputs)
    widths = {column.name: tensor.shape.as_list()[1] for column, tensor in outputs.items()}
    return tf.layers.dense(net, 1), {"cols_to_vars": named(variables), "widths": widths}


def input_layer_parts(features):
    """In a scope, in parts, in collections, some of it frozen."""
    of, variables = dense(), {}
    with tf.variable_scope("tower", partitioner=tf.fixed_size_partitioner(2)):
        first = fc.input_layer(
            features, [of["tags"], of["crossed"]], ["mine"], cols_to_vars=variables
        )
    frozen = fc.input_layer(features, [of["day"], of["hour"]], ["mine"], trainable=False)
    again = fc.input_layer(features, [of["size"], of["tags"]])
    net = tf.concat([first, frozen, again], 1)
    return tf.layers.dense(net, 1), {"cols_to_vars": named(variables)}


def input_layer_reused(features):
    """Two calls on the same variables, by a template and by a scope."""
    of = dense()
    columns = [of["tags"], of["size"]]
    layer = tf.make_template("shared", fc.input_layer, feature_columns=columns)
    with tf.variable_scope("scope", reuse=tf.AUTO_REUSE):
        net = tf.layers.dense(layer(features), 2, name="first")
        net += tf.layers.dense(layer(features), 2, name="first")
    return tf.layers.dense(net, 1), {}


def deep_input_layer(features):
    from tensorflow.python.feature_column import feature_column

    of = dense()
    layer = feature_column.InputLayer([of["tags"], of["age"]], weight_collections=["mine"])
    net = layer(features) + 2.0 * layer(features)
    return tf.layers.dense(net, 1), {"variables": sorted(v.name for v in layer.variables)}


def linear_model(features):
    variables = {}
    net = fc.linear_model(features, linear(), 2, "mean", cols_to_vars=variables)
    return tf.reduce_sum(net, 1, keepdims=True), {"cols_to_vars": named(variables)}


def linear_model_parts(features):
    of, variables = categorical(), {}
    with tf.variable_scope("wide", partitioner=tf.fixed_size_partitioner(2)):
        net = fc.linear_model(
            features,
            [of["day"], of["crossed"]],
            weight_collections=["mine"],
            cols_to_vars=variables,
        )
    frozen = fc.linear_model(features, [of["color"], of["size"]], trainable=False)
    again = fc.linear_model(features, [of["tags"]], sparse_combiner="sqrtn")
    return net + frozen + again, {"cols_to_vars": named(variables)}


def dense_features(features):
    of = dense()
    names = ("size", "color", "tags", "crossed", "age")
    layer = tf.keras.layers.DenseFeatures([of[name] for name in names])
    net = tf.layers.dense(layer(features), 1)
    frozen = tf.keras.layers.DenseFeatures([of["tags"]], trainable=False, name="frozen")
    net += tf.layers.dense(frozen(features), 1)
    return net, {"weights": [[v.name, v.shape.as_list()] for v in layer.weights + frozen.weights]}


def dense_features_in_keras(features):
    of = dense()
    model = tf.keras.Sequential(
        [
            tf.keras.layers.DenseFeatures([of["tags"], of["size"]]),
            tf.keras.layers.Dense(3, activation="tanh"),
            tf.keras.layers.Dense(1),
        ]
    )
    return model(features), {"weights": [v.name for v in model.trainable_weights]}


def contrib_sequences(features):
    module = tf.contrib.feature_column
    net, lengths = module.sequence_input_layer(features, sequences(module), ["mine"])
    cell = tf.nn.rnn_cell.GRUCell(4)
    _, state = tf.nn.dynamic_rnn(cell, net, lengths, dtype=tf.float32)
    facts = {"shape": net.shape.as_list(), "lengths": lengths.dtype.name}
    return tf.layers.dense(state, 1), facts


def sequence_features(features):
    layer = tf.keras.experimental.SequenceFeatures(sequences(fc))
    net, lengths = layer(features)
    mask = tf.expand_dims(tf.sequence_mask(lengths, dtype=tf.float32), 2)
    total = tf.reduce_sum(net * mask, 1)
    return tf.layers.dense(total, 1), {"weights": [v.name for v in layer.weights]}


NETWORKS = {
    function.__name__: function
    for function in (
        input_layer,
        input_layer_parts,
        input_layer_reused,
        deep_input_layer,
        linear_model,
        linear_model_parts,
        dense_features,
        dense_features_in_keras,
        contrib_sequences,
        sequence_features,
    )
}


# --- The Estimator around them.


def spec(name):
    """What `examples` are parsed with in a case."""
    if name == "contrib_sequences":
        return fc.make_parse_example_spec(sequences(tf.contrib.feature_column))
    if name == "sequence_features":
        return tf.compat.v2.feature_column.make_parse_example_spec(sequences(fc))
    return fc.make_parse_example_spec(linear() + list(dense().values()))


def described(spec):
    """`spec` in the types of JSON."""
    found = {}
    for key, feature in spec.items():
        default = getattr(feature, "default_value", None)
        shape = list(getattr(feature, "shape", ()) or ())
        found[key] = [type(feature).__name__, feature.dtype.name, shape, default]
    return found


def values(shape, name):
    """Reproducible numbers between -0.5 and 0.5: a sine that starts where the name says."""
    start = int(hashlib.md5(name.encode()).hexdigest()[:4], 16) % 100
    return (0.5 * np.sin(0.7 * np.arange(int(np.prod(shape))) + start)).reshape(shape)


class Recorder(tf.train.SessionRunHook):
    """Sets the variables before the first step, and keeps the losses."""

    def __init__(self):
        self.losses = []

    def begin(self):
        weights = [
            v
            for v in tf.global_variables()
            if v.dtype.base_dtype == tf.float32 and not v.op.name.endswith("Adagrad")
        ]
        self.fills = [v.assign(values(v.shape.as_list(), v.op.name)) for v in weights]

    def after_create_session(self, session, coord):
        session.run(self.fills)

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(tf.get_collection(tf.GraphKeys.LOSSES)[-1])

    def after_run(self, run_context, run_values):
        self.losses.append(float(run_values.results))


def run(name, folder):
    """What one case leaves behind."""
    found = {"spec": described(spec(name))}
    serialized, labels = examples()

    def input_fn():
        data = tf.data.Dataset.from_tensor_slices((serialized, labels)).batch(BATCH)
        return data.map(lambda x, y: (tf.parse_example(x, spec(name)), y))

    def model_fn(features, labels, mode):
        output, facts = NETWORKS[name](features)
        predictions = {"output": output}
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(mode, predictions)
        loss = tf.losses.mean_squared_error(labels, output)
        optimizer = tf.train.AdagradOptimizer(0.1)
        train_op = optimizer.minimize(loss, tf.train.get_global_step())
        if mode == tf.estimator.ModeKeys.TRAIN:
            found["facts"] = facts
            collections = ("trainable_variables", "model_variables", "mine")
            found["collections"] = {
                key: [v.name for v in tf.get_collection(key)] for key in collections
            }
        metrics = {"error": tf.metrics.mean_absolute_error(labels, output)}
        return tf.estimator.EstimatorSpec(mode, predictions, loss, train_op, metrics)

    estimator = tf.estimator.Estimator(model_fn, os.path.join(folder, name))
    recorder = Recorder()
    estimator.train(lambda: input_fn().repeat(), steps=STEPS, hooks=[recorder])
    found["losses"] = recorder.losses
    found["variables"] = {
        name: estimator.get_variable_value(name).tolist() for name in estimator.get_variable_names()
    }
    evaluated = estimator.evaluate(input_fn)
    found["evaluated"] = {key: float(value) for key, value in sorted(evaluated.items())}
    found["predicted"] = [p["output"].tolist() for p in estimator.predict(input_fn)]
    return found


def main(folder):
    print(json.dumps({name: run(name, folder) for name in NETWORKS}, sort_keys=True))


if __name__ == "__main__":
    main(sys.argv[1])
