"""Trains linear models with LinearSDCA, or with contrib's SDCAOptimizer: the real ones, or ours.

    python sdca.py learn|v1|v2

Prints JSON: case -> losses, variables, metrics, predictions and summaries.
tests/goldens/sdca.json is {"learn": ..., "v1": ..., "v2": ...}: of `tf.contrib.learn` on TensorFlow
1.15.5, of `tf.compat.v1.estimator` and of `tf.estimator` on 2.15.1.
"""

import glob
import json
import os
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
import numpy as np

N = 16
SIZE = np.sin(np.arange(2.0 * N)).reshape(N, 2).astype(np.float32)
AGE = (np.arange(N) * 7 % 60 + 10.0).astype(np.float32)[:, None]
WORDS = np.array(["abcd"[i * 3 % 4] for i in range(2 * N)]).reshape(N, 2)
IDS = np.array(["example %d" % i for i in range(N)])  # noqa: UP031
WEIGHT = (np.arange(N) % 3 + 1.0).astype(np.float32)[:, None]
BINARY = (SIZE[:, :1] + 0.5 * SIZE[:, 1:] > 0).astype(np.int64)
REALS = (SIZE.sum(1, keepdims=True) + AGE / 40).astype(np.float32)


def features(tf):
    return {
        "size": tf.constant(SIZE),
        "age": tf.constant(AGE),
        "words": tf.constant(WORDS),
        "id": tf.constant(IDS),
        "weight": tf.constant(WEIGHT),
    }


def of_estimator(tf, version):
    """Case -> (class, arguments, labels)."""
    fc = tf.feature_column
    if hasattr(tf.compat.v1, "estimator"):
        of = tf.compat.v1.estimator if version == "v1" else tf.estimator
        sdca, suffix = of.experimental.LinearSDCA, ""
    else:
        from estimator2strategy import estimator as of

        sdca, suffix = of.experimental.LinearSDCA, "" if version == "v1" else "V2"
    classifier = getattr(of, "LinearClassifier" + suffix)
    regressor = getattr(of, "LinearRegressor" + suffix)
    words = fc.categorical_column_with_vocabulary_list("words", list("abc"))
    age = fc.bucketized_column(fc.numeric_column("age"), [20.0, 40.0])
    size = fc.numeric_column("size", 2)
    return {
        "two classes": (
            classifier,
            {
                "feature_columns": [size, words, fc.crossed_column([age, "words"], 6)],
                "optimizer": sdca("id", symmetric_l2_regularization=2.0),
            },
            BINARY,
        ),
        "two classes, weights, L1": (
            classifier,
            {
                "feature_columns": [size, age],
                "weight_column": "weight",
                "optimizer": sdca("id", 1, 1, 0.5, 1.5, True),
            },
            BINARY,
        ),
        "a number": (
            regressor,
            {"feature_columns": [age, words, size], "optimizer": sdca("id")},
            REALS,
        ),
    }


def of_learn(tf):
    """Case -> (class, arguments, labels) of `tf.contrib.learn`."""
    layers, learn = tf.contrib.layers, tf.contrib.learn
    words = layers.sparse_column_with_keys("words", list("abc"))
    bucket = layers.bucketized_column(layers.real_valued_column("age"), [20.0, 40.0])
    size = layers.real_valued_column("size", 2)
    both = [size, words, bucket, layers.crossed_column([words, bucket], 6)]
    sdca = tf.contrib.linear_optimizer.SDCAOptimizer
    return {
        "two classes": (
            learn.LinearClassifier,
            {"feature_columns": both, "optimizer": sdca("id", symmetric_l2_regularization=2.0)},
            BINARY,
        ),
        "a number, weights": (
            learn.LinearRegressor,
            {
                "feature_columns": both[:2],
                "weight_column_name": "weight",
                "optimizer": sdca("id", symmetric_l1_regularization=0.3),
            },
            REALS,
        ),
        "a margin": (
            learn.SVM,
            {"example_id_column": "id", "feature_columns": both[:3], "l2_regularization": 3.0},
            BINARY,
        ),
    }


def cases(tf, version):
    return of_learn(tf) if version == "learn" else of_estimator(tf, version)


def run(tf, version, case):
    """The results of one case."""
    v1 = tf if version == "learn" else tf.compat.v1
    make, given, labels = cases(tf, version)[case]

    class Losses(v1.train.SessionRunHook):
        def __init__(self):
            self.found = []

        def before_run(self, run_context):
            losses = run_context.session.graph.get_collection(v1.GraphKeys.LOSSES)
            return v1.train.SessionRunArgs(losses[-1:])

        def after_run(self, run_context, run_values):
            self.found += [float(loss) for loss in run_values.results]

    def input_fn():
        made = features(tf)
        if version == "learn":
            indices = [[i, j] for i in range(N) for j in range(2)]
            made["words"] = v1.SparseTensor(indices, v1.constant(WORDS.ravel()), [N, 2])
        return made, tf.constant(labels)

    model = make(model_dir=tempfile.mkdtemp(), **given)
    losses = Losses()
    if version == "learn":
        model.fit(input_fn=input_fn, steps=60, monitors=[losses])
        key = "scores" if "number" in case else "classes"
        predicted = list(model.predict(input_fn=input_fn, outputs=[key]))
        predicted = {key: [one[key] for one in predicted]}
        results = model.evaluate(input_fn=input_fn, steps=1)
    else:
        # The table of examples is saved, and goes on.
        model.train(input_fn, steps=30, hooks=[losses])
        model.train(input_fn, steps=30, hooks=[losses])
        predicted = next(iter(model.predict(input_fn, yield_single_examples=False)))
        results = model.evaluate(input_fn, steps=1)
    names = sorted(model.get_variable_names())
    return {
        # Examples are taken in an order that is left to chance; in the end all agree.
        "losses": numbers([losses.found[0], losses.found[-1]]),
        "variables": {
            name: numbers(filled(name, model.get_variable_value(name)))
            for name in names
            if not name.endswith("-values")  # of the table: by which way it got there
        },
        "results": {name: numbers(value)[0] for name, value in sorted(results.items())},
        "predicted": {
            key: numbers(value)
            for key, value in sorted(predicted.items())
            if np.asarray(value).dtype.kind in "fi"
        },
        "summaries": sorted(summaries(v1, model.model_dir)),
    }


def filled(name, value):
    """A table's entries, which are saved by their hashes and among empty ones."""
    return np.sort(value[np.nonzero(value)]) if "HashTable" in name else value


def numbers(value):
    return [float("%.7g" % v) for v in np.asarray(value, np.float64).ravel()]  # noqa: UP031


def summaries(v1, folder):
    return {
        value.tag
        for path in glob.glob(os.path.join(folder, "events*"))
        for event in v1.train.summary_iterator(path)
        for value in event.summary.value
    }


def _main():
    import tensorflow as tf

    version = sys.argv[1]
    print(json.dumps({case: run(tf, version, case) for case in cases(tf, version)}))


if __name__ == "__main__":
    _main()
