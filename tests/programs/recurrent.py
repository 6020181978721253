"""Trains, evaluates and predicts with recurrent canned Estimators: the real ones, or ours.

    python recurrent.py contrib|learn|v2

Prints JSON: case -> losses, variables, metrics, predictions and summaries.
tests/goldens/recurrent.json is {"contrib": ..., "learn": ..., "v2": ...}: of `tf.contrib.estimator`
and `tf.contrib.learn` on TensorFlow 1.15.5, and of `tf.estimator.experimental` on 2.15.1.

Trainable variables start with values that depend on their names alone.
"""

import glob
import importlib
import json
import os
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
import numpy as np

N, LONGEST = 12, 4
LENGTHS = np.arange(N) % LONGEST + 1
PLACES = [[i, j] for i in range(N) for j in range(LENGTHS[i])]
WORDS = ["abcde"[(3 * i + 5 * j) % 5] for i, j in PLACES]
NUMBERS = np.sin(np.arange(len(PLACES))).astype(np.float32)
PADDED = np.zeros([N, LONGEST, 2], np.float32)
for _i, _j in PLACES:
    PADDED[_i, _j] = [np.sin(7.0 * _i + _j), np.cos(_i - 3.0 * _j)]
BINARY = (np.arange(N) * 5 % 2)[:, None]
NAMES = np.array(["red", "green", "blue"])[np.arange(N) * 7 % 3][:, None]
REALS = np.cos(np.arange(N)).astype(np.float32)[:, None]
EACH_STEP = (np.arange(N)[:, None] + np.arange(LONGEST)) % 3


def features(tf):
    def sparse(values):
        return tf.SparseTensor(PLACES, tf.constant(values), [N, LONGEST])

    return {
        "words": sparse(WORDS),
        "numbers": sparse(NUMBERS),
        "size": tf.constant(np.arange(2.0 * N).reshape(N, 2) / N, tf.float32),
        "weight": tf.constant(np.arange(float(N))[:, None] % 3 + 1, tf.float32),
        "weights": sparse(np.abs(NUMBERS) + 0.5),
    }


def padded_features(tf):
    """Those of `tf.contrib.learn`, whose sequences are dense."""
    return {
        "steps": tf.constant(PADDED),
        "size": tf.constant(np.arange(2.0 * N).reshape(N, 2) / N, tf.float32),
        "sequence_length": tf.constant(LENGTHS, tf.int32),
    }


def of_contrib(tf):
    """Case -> (class, arguments, labels) of `tf.contrib.estimator`."""
    of, fc = tf.contrib.feature_column, tf.feature_column
    rnn = tf.contrib.estimator
    words = of.sequence_categorical_column_with_vocabulary_list("words", list("abcd"))
    both = [fc.embedding_column(words, 3), of.sequence_numeric_column("numbers")]
    three = {"n_classes": 3, "label_vocabulary": ["red", "green", "blue"]}

    def cell_fn(mode):
        cells = [tf.nn.rnn_cell.LSTMCell(size) for size in (3, 2)]
        if mode == tf.estimator.ModeKeys.TRAIN:
            cells = [tf.nn.rnn_cell.DropoutWrapper(c, input_keep_prob=1.0) for c in cells]
        return tf.nn.rnn_cell.MultiRNNCell(cells)

    return {
        "two classes": (
            rnn.RNNClassifier,
            {"sequence_feature_columns": both, "num_units": [4]},
            BINARY,
        ),
        "three classes, context, weights": (
            rnn.RNNClassifier,
            {
                "sequence_feature_columns": both[:1],
                "context_feature_columns": [fc.numeric_column("size", 2)],
                "num_units": [4, 3],
                "cell_type": "lstm",
                "weight_column": "weight",
                "optimizer": tf.train.AdamOptimizer(0.05),
                **three,
            },
            NAMES,
        ),
        "numbers, cells of its own": (
            rnn.RNNEstimator,
            {
                "head": tf.contrib.estimator.regression_head(),
                "sequence_feature_columns": both[1:],
                "rnn_cell_fn": cell_fn,
                "optimizer": "SGD",
            },
            REALS,
        ),
        "gru": (
            rnn.RNNClassifier,
            {
                "sequence_feature_columns": both,
                "num_units": [3],
                "cell_type": "gru",
                "optimizer": lambda: tf.train.RMSPropOptimizer(0.01),
            },
            BINARY,
        ),
    }


def of_v2(tf):
    """Case -> (class, arguments, labels) of `tf.estimator.experimental`."""
    fc = tf.feature_column
    if hasattr(tf.compat.v1, "estimator"):
        made, heads, keras = tf.estimator.experimental, tf.estimator, tf.keras
    else:
        import tf_keras as keras

        from estimator2strategy import estimator as heads

        made = heads.experimental
    words = fc.sequence_categorical_column_with_vocabulary_list("words", list("abcd"))
    both = [fc.embedding_column(words, 3), fc.sequence_numeric_column("numbers")]
    three = {"n_classes": 3, "label_vocabulary": ["red", "green", "blue"]}
    return {
        "two classes": (
            made.RNNClassifier,
            {"sequence_feature_columns": both, "units": [4]},
            BINARY,
        ),
        "three classes, context, weights": (
            made.RNNClassifier,
            {
                "sequence_feature_columns": both[:1],
                "context_feature_columns": [fc.numeric_column("size", 2)],
                "units": [4, 3],
                "cell_type": "lstm",
                "weight_column": "weight",
                "optimizer": keras.optimizers.legacy.Adam(0.05),
                **three,
            },
            NAMES,
        ),
        "one layer": (
            made.RNNClassifier,
            {"sequence_feature_columns": both, "units": 3, "cell_type": "gru"},
            BINARY,
        ),
        "numbers, cells of its own": (
            made.RNNEstimator,
            {
                "head": heads.RegressionHead(),
                "sequence_feature_columns": both[1:],
                "rnn_cell_fn": lambda: [keras.layers.LSTMCell(size) for size in (3, 2)],
                "optimizer": "SGD",
            },
            REALS,
        ),
        "classes of all steps": (
            made.RNNClassifier,
            {
                "sequence_feature_columns": both,
                "units": [4],
                "return_sequences": True,
                "n_classes": 3,
                "weight_column": "weights",
            },
            EACH_STEP,
        ),
    }


def of_learn(tf):
    """Case -> (class, arguments, labels) of `tf.contrib.learn`."""
    learn, layers = tf.contrib.learn, tf.contrib.layers
    files = tf.__name__ + ".contrib.learn.python.learn.estimators."
    kinds = importlib.import_module(files + "constants").ProblemType
    types = importlib.import_module(files + "rnn_common").PredictionType
    steps, size = layers.real_valued_column("steps", 2), layers.real_valued_column("size", 2)

    def case(problem, prediction, labels, **more):
        given = {"problem_type": problem, "prediction_type": prediction, **more}
        given.setdefault("sequence_feature_columns", [steps])
        return learn.DynamicRnnEstimator, given, labels

    return {
        "two classes": case(
            kinds.CLASSIFICATION,
            types.SINGLE_VALUE,
            BINARY[:, 0],
            num_classes=2,
            num_units=3,
            predict_probabilities=True,
        ),
        "three classes of all steps": case(
            kinds.CLASSIFICATION,
            types.MULTIPLE_VALUE,
            EACH_STEP,
            num_classes=3,
            num_units=[4, 3],
            cell_type="lstm",
            context_feature_columns=[size],
            optimizer="Momentum",
            momentum=0.9,
            predict_probabilities=True,
        ),
        "classes without probabilities": case(
            kinds.CLASSIFICATION,
            types.SINGLE_VALUE,
            BINARY[:, 0],
            num_classes=3,
            num_units=[2],
            optimizer="Adam",
            learning_rate=0.01,
        ),
        "a number": case(
            kinds.LINEAR_REGRESSION,
            types.SINGLE_VALUE,
            REALS,
            num_units=[3],
            cell_type="gru",
            gradient_clipping_norm=0.1,
        ),
        "numbers of all steps": case(
            kinds.LINEAR_REGRESSION,
            types.MULTIPLE_VALUE,
            PADDED[:, :, 0],
            num_units=[3],
            cell_type=tf.contrib.rnn.BasicLSTMCell,
        ),
    }


CASES = {"contrib": of_contrib, "learn": of_learn, "v2": of_v2}


def hooks_of(v1):
    """A hook that notes losses, and one that gives trainable variables their first values."""

    class Losses(v1.train.SessionRunHook):
        def __init__(self):
            self.found = []

        def before_run(self, run_context):
            graph = run_context.session.graph
            losses = graph.get_collection(v1.GraphKeys.LOSSES)
            return v1.train.SessionRunArgs(losses[-1] if losses else [])

        def after_run(self, run_context, run_values):
            if not isinstance(run_values.results, list):
                self.found.append(float(run_values.results))

    class Values(v1.train.SessionRunHook):
        def begin(self):
            self.ops = [_assign(variable) for variable in v1.trainable_variables()]

        def after_create_session(self, session, coord):
            session.run(self.ops)

    return [Values(), Losses()]


def _assign(variable):
    name = variable.op.name.replace("/part_0", "")  # TF 1.15's were in one part
    shape = variable.shape.as_list()
    values = 0.3 * np.sin(np.arange(np.prod(shape)) + len(name)).reshape(shape)
    return variable.assign(values.astype(np.float32))


def run(tf, version, case):
    """The results of one case."""
    v1 = tf.compat.v1 if version == "v2" else tf
    make, given, labels = CASES[version](tf)[case]

    def input_fn():
        made = padded_features(tf) if version == "learn" else features(tf)
        return made, tf.constant(labels)

    model = make(model_dir=tempfile.mkdtemp(), **given)
    hooks = hooks_of(v1)
    if version == "learn":
        model.fit(input_fn=input_fn, steps=5, monitors=hooks)
        results = model.evaluate(input_fn=input_fn, steps=1)
        predicted = list(model.predict(input_fn=input_fn))
    else:
        model.train(input_fn, steps=5, hooks=hooks)
        results = model.evaluate(input_fn, steps=1)
        predicted = next(iter(model.predict(input_fn, yield_single_examples=False)))
        predicted = [predicted]
    return {
        "losses": [numbers(loss)[0] for loss in hooks[1].found],
        "variables": {
            name: numbers(model.get_variable_value(name))
            for name in sorted(model.get_variable_names())
        },
        "results": {name: numbers(value)[0] for name, value in sorted(results.items())},
        "predicted": {
            key: [
                texts(np.asarray(one[key]))
                if np.asarray(one[key]).dtype.kind in "OS"
                else numbers(one[key])
                for one in predicted
            ]
            for key in sorted(predicted[0])
        },
        "summaries": sorted(summaries(v1, model.model_dir)),
    }


def numbers(value):
    return [float("%.7g" % v) for v in np.asarray(value, np.float64).ravel()]  # noqa: UP031


def texts(value):
    return [item.decode() for item in value.ravel()]


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
    print(json.dumps({case: run(tf, version, case) for case in CASES[version](tf)}))


if __name__ == "__main__":
    _main()
