"""Programs of `tf.contrib.learn`'s canned Estimators; under TF 1.15 it makes their goldens.

    python3.7 tests/tf1/contrib/canned.py   # writes tests/goldens/contrib_learn.json

Trainable variables start with values that depend on their names alone.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np

GOLDENS = Path(__file__).resolve().parents[2] / "goldens" / "contrib_learn.json"
SIZE = 20
NUMBERS = np.sin(np.arange(3.0 * SIZE)).reshape(SIZE, 3).astype(np.float32)
OF_TWO = (np.arange(SIZE) * 5 % 2)[:, None]
OF_THREE = (np.arange(SIZE) * 7 % 3)[:, None]
REALS = np.cos(np.arange(float(SIZE))).astype(np.float32)
TOWNS = ["abcd"[i * 3 % 4] for i in range(SIZE)]


def inputs(tf, labels):
    """An input_fn of constants: one batch of all examples."""

    def input_fn():
        features = {
            "x": tf.constant(NUMBERS),
            "town": tf.SparseTensor([[i, 0] for i in range(SIZE)], tf.constant(TOWNS), [SIZE, 1]),
            "weight": tf.constant(np.arange(float(SIZE)) % 3 + 1, tf.float32),
            "n": tf.constant(NUMBERS[:, :1]),
        }
        return features, tf.constant(labels)

    return input_fn


def columns(tf):
    """Those of a network, and those of a linear model."""
    layers = tf.contrib.layers
    town = layers.sparse_column_with_keys("town", list("abcd"))
    bucket = layers.bucketized_column(layers.real_valued_column("n"), [-0.5, 0.5])
    dense = [layers.real_valued_column("x", 3), bucket, layers.embedding_column(town, 2)]
    return dense, [town, bucket, layers.crossed_column([town, bucket], 10)]


def linear_of_two(tf, folder):
    _, sparse = columns(tf)
    return tf.contrib.learn.LinearClassifier(sparse, folder), OF_TWO, {}


def linear_of_three(tf, folder):
    _, sparse = columns(tf)
    model = tf.contrib.learn.LinearClassifier(sparse, folder, n_classes=3, optimizer="Adam")
    return model, OF_THREE, {}


def linear_with_weights(tf, folder):
    _, sparse = columns(tf)
    model = tf.contrib.learn.LinearClassifier(
        sparse,
        folder,
        weight_column_name="weight",
        gradient_clip_norm=0.5,
        optimizer=tf.train.GradientDescentOptimizer(0.1),
    )
    return model, OF_TWO, {}


def linear_of_numbers(tf, folder):
    dense, sparse = columns(tf)
    error = tf.contrib.learn.MetricSpec(
        tf.contrib.metrics.streaming_mean_absolute_error, prediction_key="scores"
    )
    model = tf.contrib.learn.LinearRegressor([*sparse, dense[0]], folder)
    return model, REALS, {"error": error}


def network_of_two(tf, folder):
    dense, _ = columns(tf)
    model = tf.contrib.learn.DNNClassifier([4, 3], dense, folder, activation_fn=tf.tanh)
    return model, OF_TWO, {("share", "classes"): tf.contrib.metrics.streaming_accuracy}


def network_of_three(tf, folder):
    dense, _ = columns(tf)
    model = tf.contrib.learn.DNNClassifier(
        [4, 3],
        dense,
        folder,
        n_classes=3,
        weight_column_name="weight",
        optimizer=tf.train.ProximalAdagradOptimizer(0.1, l1_regularization_strength=0.001),
        gradient_clip_norm=1.0,
    )
    return model, OF_THREE, {}


def network_of_numbers(tf, folder):
    dense, _ = columns(tf)
    return tf.contrib.learn.DNNRegressor([4], dense, folder), REALS[:, None], {}


def network_on_columns_of_today(tf, folder):
    column = tf.feature_column.numeric_column("x", shape=[3])
    return tf.contrib.learn.DNNClassifier([3], [column], folder), OF_TWO, {}


def both_of_two(tf, folder):
    dense, sparse = columns(tf)
    model = tf.contrib.learn.DNNLinearCombinedClassifier(
        folder,
        linear_feature_columns=sparse,
        dnn_feature_columns=dense,
        dnn_hidden_units=[4],
    )
    return model, OF_TWO, {}


def both_of_numbers(tf, folder):
    dense, sparse = columns(tf)
    model = tf.contrib.learn.DNNLinearCombinedRegressor(
        folder,
        linear_feature_columns=sparse,
        dnn_feature_columns=dense,
        dnn_hidden_units=[4],
        fix_global_step_increment_bug=True,
    )
    return model, REALS, {}


def counts_with_a_head(tf, folder):
    _, sparse = columns(tf)
    head = tf.contrib.learn.poisson_regression_head()
    return tf.contrib.learn.LinearEstimator(sparse, head, folder), OF_THREE.astype("float32"), {}


PROGRAMS = {
    program.__name__: program
    for program in (
        linear_of_two,
        linear_of_three,
        linear_with_weights,
        linear_of_numbers,
        network_of_two,
        network_of_three,
        network_of_numbers,
        network_on_columns_of_today,
        both_of_two,
        both_of_numbers,
        counts_with_a_head,
    )
}


def set_values(tf):
    """A hook that gives trainable variables their first values."""

    class SetValues(tf.train.SessionRunHook):
        def begin(self):
            self.ops = [_assign(variable) for variable in tf.trainable_variables()]

        def after_create_session(self, session, coord):
            session.run(self.ops)

    return SetValues()


def _assign(variable):
    name = variable.op.name.replace("/part_0", "")  # TF 1.15's were in one part
    shape = variable.shape.as_list()
    values = 0.3 * np.sin(np.arange(np.prod(shape)) + len(name)).reshape(shape)
    return variable.assign(values.astype(np.float32))


def numbers(value):
    return [float("%.5g" % v) for v in np.asarray(value, np.float64).ravel()]  # noqa: UP031


def described(estimator, results, predictions):
    """What training has left, without the slots, of which TF 1.15 garbled the names."""
    kept = [
        name
        for name in sorted(estimator.get_variable_names())
        if not any(mark in name for mark in ("Adagrad", "Ftrl", "Adam", "beta"))
    ]
    return {
        "variables": {name: numbers(estimator.get_variable_value(name)) for name in kept},
        "results": {name: numbers(value)[0] for name, value in results.items()},
        "predictions": predictions,
    }


def run(tf, program):
    """A program's numbers: variables, metrics, predictions."""
    estimator, labels, metrics = program(tf, tempfile.mkdtemp())
    input_fn = inputs(tf, labels)
    estimator.fit(input_fn=input_fn, steps=5, monitors=[set_values(tf)])
    results = estimator.evaluate(input_fn=input_fn, steps=1, metrics=metrics)
    one_by_one = list(estimator.predict(input_fn=input_fn))
    predictions = [one_by_one[0], len(one_by_one)]
    if isinstance(one_by_one[0], dict):
        predictions[0] = one_by_one[0]["scores"]
    predictions = [numbers(part)[0] for part in predictions]
    for method in ("predict_classes", "predict_proba", "predict_scores"):
        if hasattr(estimator, method):
            predict = getattr(estimator, method)
            predictions += numbers(list(predict(input_fn=input_fn))[:3])
            predictions += numbers(predict(input_fn=input_fn, as_iterable=False)[:3])
    return described(estimator, results, predictions)


def run_on_arrays(tf):
    """The numbers of a network that is fitted on arrays, which are shuffled."""
    found = tf.contrib.learn.infer_real_valued_columns_from_input(NUMBERS)
    estimator = tf.contrib.learn.DNNClassifier(
        hidden_units=[5], feature_columns=found, n_classes=3, model_dir=tempfile.mkdtemp()
    )
    labels = OF_THREE[:, 0]
    estimator.fit(x=NUMBERS, y=labels, steps=7, batch_size=8, monitors=[set_values(tf)])
    results = estimator.evaluate(x=NUMBERS, y=labels)
    compatible = tf.contrib.learn.SKCompat(estimator)
    predictions = numbers(list(estimator.predict(NUMBERS))[:5])
    predictions += numbers(estimator.predict(x=NUMBERS, as_iterable=False))
    predictions += numbers(compatible.predict(NUMBERS, batch_size=6)["probabilities"])
    score = compatible.score(NUMBERS, labels, batch_size=6)
    predictions += [numbers(value)[0] for _, value in sorted(score.items())]
    return described(estimator, results, predictions)


def _main():
    import tensorflow as tf

    if not tf.__version__.startswith("1.15"):
        raise SystemExit("Goldens are made by TensorFlow 1.15, and this is " + tf.__version__)
    made = {name: run(tf, program) for name, program in PROGRAMS.items()}
    made["arrays"] = run_on_arrays(tf)
    lines = ",\n".join(json.dumps(n) + ": " + json.dumps(m) for n, m in made.items())
    GOLDENS.write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    sys.exit(_main())
