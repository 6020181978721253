"""Compiled Keras models as Estimators: a program of TF 1.15.

    python keras_models.py FOLDER            # TensorFlow 1.15
    e2s run keras_models.py FOLDER           # here

Prints JSON: case -> losses of 5 steps, variables, evaluation, predictions and signatures.
tests/goldens/keras_models.json is its output on TensorFlow 1.15.5.
"""

import hashlib
import json
import os
import sys

import numpy as np
import tensorflow as tf

keras = tf.keras
N, BATCH, STEPS = 24, 8, 5
DRAW = np.random.RandomState(5)
SIZE = DRAW.randn(N, 4).astype(np.float32)
IDS = DRAW.randint(0, 6, [N, 3]).astype(np.int32)
KIND = DRAW.randint(0, 3, [N, 1]).astype(np.int32)
AMOUNT = DRAW.randn(N, 2).astype(np.float32)
WEIGHT = (0.5 + DRAW.rand(N)).astype(np.float32)


class Scale(keras.layers.Layer):
    """A layer that Keras does not know, with one weight."""

    def build(self, shape):
        self.scale = self.add_weight("scale", [int(shape[-1])], initializer="ones")
        super().build(shape)

    def call(self, inputs):
        return inputs * self.scale

    def compute_output_shape(self, shape):
        return shape


class Twice(keras.Model):
    """A subclass that can be cloned."""

    def __init__(self, units, **options):
        super().__init__(**options)
        self.units = units
        self.first = keras.layers.Dense(units, activation="tanh", name="first")
        self.second = keras.layers.Dense(2, name="second")

    def call(self, inputs):
        return self.second(self.first(inputs))

    def get_config(self):
        return {"units": self.units, "name": self.name}

    @classmethod
    def from_config(cls, config):
        return cls(**config)


def half(x):
    return x * 0.5


# --- Models: each gives a compiled model, what goes with it, its features and its labels.


def functional():
    inputs = keras.Input([4], name="size")
    net = keras.layers.Dense(5, activation="relu", name="hidden")(inputs)
    net = keras.layers.BatchNormalization(momentum=0.9, name="normal")(net)
    outputs = keras.layers.Dense(3, activation="softmax", name="kind")(net)
    model = keras.Model(inputs, outputs)
    model.compile("adam", "sparse_categorical_crossentropy", ["accuracy"])
    return model, {}, SIZE, KIND


def sequential():
    model = keras.Sequential(
        [
            keras.layers.Embedding(6, 3, input_length=3, name="words"),
            keras.layers.Flatten(name="flat"),
            keras.layers.Dense(4, half, kernel_regularizer=keras.regularizers.l2(0.1), name="half"),
            Scale(name="scale"),
            keras.layers.Dense(2, name="amount"),
        ]
    )
    metrics = [keras.metrics.MeanAbsoluteError(name="error"), "mse"]
    model.compile(keras.optimizers.SGD(0.05, momentum=0.5, decay=0.01), "mse", metrics)
    return model, {"custom_objects": {"Scale": Scale, "half": half}}, IDS, AMOUNT


def several():
    size, ids = keras.Input([4], name="size"), keras.Input([3], name="ids", dtype="int32")
    words = keras.layers.GlobalAveragePooling1D()(keras.layers.Embedding(6, 3, name="words")(ids))
    net = keras.layers.Concatenate()([size, words])
    kind = keras.layers.Dense(3, activation="softmax", name="kind")(net)
    amount = keras.layers.Dense(2, name="amount")(net)
    model = keras.Model([size, ids], [kind, amount])
    model.compile(
        keras.optimizers.RMSprop(0.01),
        {"kind": "sparse_categorical_crossentropy", "amount": "mae"},
        {"kind": ["accuracy"], "amount": ["mse"]},
        loss_weights={"kind": 1.0, "amount": 0.3},
    )
    return model, {}, {"size": SIZE, "ids": IDS}, {"kind": KIND, "amount": AMOUNT}


def weighted():
    model, options, features, labels = functional()
    return model, options, {"features": features, "sample_weights": WEIGHT}, labels


def of_tf_optimizer():
    model = keras.Sequential([keras.layers.Dense(2, input_shape=[4], name="amount")])
    model.compile(tf.train.AdagradOptimizer(0.1), tf.keras.losses.Huber())
    return model, {}, SIZE, AMOUNT


def by_objects():
    model, _, features, labels = functional()
    return model, {"checkpoint_format": "checkpoint"}, features, labels


def subclassed():
    model = Twice(3)
    model.compile(keras.optimizers.Adagrad(0.1), "mse", ["mae"])
    return model, {}, SIZE, AMOUNT


MODELS = {
    function.__name__: function
    for function in (
        functional,
        sequential,
        several,
        weighted,
        of_tf_optimizer,
        by_objects,
        subclassed,
    )
}
FROM_FILE = "several"


# --- The Estimators.


def values(shape, name):
    """Reproducible numbers between -0.5 and 0.5: a sine that starts where the name says."""
    start = int(hashlib.md5(name.encode()).hexdigest()[:4], 16) % 100
    return (0.5 * np.sin(0.7 * np.arange(int(np.prod(shape))) + start)).reshape(shape)


class Recorder(tf.train.SessionRunHook):
    """Keeps the losses; sets the weights of a model that has none yet before the first step."""

    def __init__(self, fills):
        self.losses, self.fills = [], fills

    def begin(self):
        if self.fills:
            self.fills = [v.assign(values(v.shape, v.op.name)) for v in tf.trainable_variables()]

    def after_create_session(self, session, coord):
        session.run(self.fills)

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(tf.get_collection(tf.GraphKeys.LOSSES)[-1])

    def after_run(self, run_context, run_values):
        self.losses.append(float(run_values.results))


def listed(folder):
    path = tf.train.latest_checkpoint(folder)
    return sorted([name, shape] for name, shape in tf.train.list_variables(path))


def run(name, folder):
    """What one case leaves behind."""
    model, options, features, labels = MODELS[name]()
    if model.weights:
        model.set_weights([values(w.shape, w.name) for w in model.weights])
    if name == FROM_FILE:
        path = os.path.join(folder, "model.h5")
        model.save(path)
        options, model = dict(options, keras_model_path=path), None
    config = tf.estimator.RunConfig(os.path.join(folder, name), tf_random_seed=1)
    estimator = keras.estimator.model_to_estimator(model, config=config, **options)

    def input_fn(features=features):
        return tf.data.Dataset.from_tensor_slices((features, labels)).batch(BATCH)

    recorder = Recorder([] if name != "subclassed" else [None])
    estimator.train(lambda: input_fn().repeat(), steps=STEPS, hooks=[recorder])
    found = {"losses": recorder.losses, "first": []}
    if name != "subclassed":
        found["first"] = listed(os.path.join(estimator.model_dir, "keras"))
    found["variables"] = listed(estimator.model_dir)
    path = estimator.latest_checkpoint()
    found["values"] = {
        key: tf.train.load_variable(path, key).tolist()
        for key, _ in found["variables"]
        if "OBJECT_GRAPH" not in key
    }
    evaluated = estimator.evaluate(input_fn)
    found["evaluated"] = {key: float(value) for key, value in sorted(evaluated.items())}
    # Weights of examples are an error there.
    unweighted = features["features"] if name == "weighted" else features
    predicted = list(estimator.predict(lambda: input_fn(unweighted)))
    found["predicted"] = {key: [p[key].tolist() for p in predicted] for key in predicted[0]}
    return found


def main(folder):
    found = {}
    for name in MODELS:
        keras.backend.clear_session()
        found[name] = run(name, folder)
    print(json.dumps(found, sort_keys=True))


if __name__ == "__main__":
    os.makedirs(sys.argv[1])
    main(sys.argv[1])
