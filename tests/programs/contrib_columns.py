"""Columns of `tf.contrib.layers` in the canned Estimators of `tf.estimator`, by TF 1.15.

    python contrib_columns.py FOLDER            # TensorFlow 1.15
    e2s run contrib_columns.py FOLDER           # here

Prints JSON: case -> losses of 5 steps, variables, evaluation, predictions.
tests/goldens/contrib_columns.json is its output on TensorFlow 1.15.5.
"""

import glob
import json
import os
import sys

import numpy as np
import tensorflow as tf

layers, fc = tf.contrib.layers, tf.feature_column
N, BATCH, STEPS = 24, 8, 5
TOWNS, WORDS = ["Oslo", "Rome", "Kyiv", "Lima"], ["a", "bb", "ccc", "d", ""]
KEY = layers.SPARSE_FEATURE_CROSS_DEFAULT_HASH_KEY


def features():
    draw = np.random.RandomState(5)
    words = np.array([draw.permutation(WORDS)[:3] for _ in range(N)])
    words[0] = ""  # an example without words
    weights = np.where(words == "", 0.0, 0.5 + draw.rand(N, 3))  # as no word, no weight
    home, hour = draw.randint(0, 4, [N]), draw.randint(0, 7, [N, 2])
    return {
        "size": draw.randn(N, 2).astype(np.float32),
        "age": draw.randint(10, 80, [N]),  # of rank 1, and no float
        "town": np.array(TOWNS)[draw.randint(0, 4, [N, 1])],
        "home": np.array(TOWNS)[home],
        "house": np.array(TOWNS)[home],
        "day": draw.randint(-1, 9, [N, 2]),  # -1 is no day
        "hour": hour,
        "time": hour,
        "clock": hour,
        "words": words,
        "weights": weights.astype(np.float32),
        "amounts": weights.astype(np.float32),
        "counts": np.where(words == "", 0, draw.randint(1, 4, [N, 3])),
        "example": (0.5 + draw.rand(N)).astype(np.float32),
    }


FEATURES = features()
REAL = FEATURES["size"].sum(1, keepdims=True) + FEATURES["age"][:, None] / 40.0
CLASSES = (FEATURES["age"] // 30).astype(np.int64)[:, None]
BINARY = (FEATURES["size"][:, :1] > 0).astype(np.int64)
SPARSE = {"words": "", "weights": 0.0, "amounts": 0.0, "counts": 0, "clock": -1}


def input_fn(labels):
    def of_batch(batch, label):
        found = dict(batch)
        for name, ignored in SPARSE.items():  # the others are sparse only in the columns
            found[name] = layers.dense_to_sparse(batch[name], ignored)
        return found, label

    def make():
        data = tf.data.Dataset.from_tensor_slices((FEATURES, labels))
        return data.repeat().batch(BATCH).map(of_batch)

    return make


def lines(folder):
    path = os.path.join(folder, "towns.txt")
    with tf.gfile.GFile(path, "w") as file:
        file.write("\n".join(TOWNS[:3]))
    return path


def columns(folder):
    """Columns of all kinds: of ids, and of a network."""
    ids = {
        "hashed": layers.sparse_column_with_hash_bucket("words", 5),
        "hashed_twice": layers.sparse_column_with_hash_bucket(
            "home", 9, hash_keys=[[1, 2], [3, 4]]
        ),
        "hashed_ints": layers.sparse_column_with_hash_bucket("hour", 4, "mean", tf.int64),
        "keys": layers.sparse_column_with_keys("town", TOWNS[:2], combiner="mean"),
        "int_keys": layers.sparse_column_with_keys("time", [1, 3, 5], 2, dtype=tf.int64),
        "lines": layers.sparse_column_with_vocabulary_file("house", lines(folder), 2, 3),
        "integerized": layers.sparse_column_with_integerized_feature("day", 7),
    }
    some = layers.sparse_column_with_keys("words", WORDS[:3])  # other words are no ids
    size = layers.real_valued_column("size", 2, normalizer=lambda x: x / 2.0)
    age = layers.bucketized_column(layers.real_valued_column("age"), [20, 40, 60])
    sizes = layers.bucketized_column(layers.real_valued_column("size", 2), [-0.5, 0.5])
    ids["weighted"] = layers.weighted_sparse_column(some, "weights")
    ids["counted"] = layers.weighted_sparse_column(some, "counts", tf.int64)
    ids["crossed"] = layers.crossed_column([ids["keys"], ids["hashed"]], 11)
    ids["crossed_of_today"] = layers.crossed_column(
        [age, ids["keys"]], 6, hash_key=KEY, combiner="sqrtn"
    )
    ids["crossed_twice"] = layers.crossed_column([ids["crossed"], sizes], 13)
    dense = {"size": size, "age": age, "sizes": sizes}
    for name, column in ids.items():
        dense["one_hot_" + name] = layers.one_hot_column(column)
        dense["embedded_" + name] = layers.embedding_column(
            column, 3, "sqrtn" if name == "hashed" else "mean"
        )
    dense["clipped"] = layers.embedding_column(ids["lines"], 2, "sqrtn", max_norm=0.2)
    dense["frozen"] = layers.embedding_column(
        ids["hashed_twice"], 2, "sum", tf.constant_initializer(0.25), trainable=False
    )
    times = layers.sparse_column_with_integerized_feature("time", 7)
    dense["shared"], dense["shared_too"] = layers.shared_embedding_columns(
        [ids["integerized"], times], 2
    )
    (dense["shared_alone"],) = layers.shared_embedding_columns(
        [ids["weighted"]], 2, shared_embedding_name="named"
    )
    dense["scattered"] = layers.scattered_embedding_column("words", 17, 3, KEY)
    dense["scattered_ints"] = layers.scattered_embedding_column("clock", 9, 2, 7, "sum")
    dense["embedded_by_today"] = fc.embedding_column(ids["hashed"], 2)
    dense["indicator_of_today"] = fc.indicator_column(ids["weighted"])
    ids["crossed_by_today"] = fc.crossed_column([ids["integerized"], "town"], 7)
    ids["weighted_by_today"] = fc.weighted_categorical_column(ids["hashed"], "amounts")
    ids["of_today"] = fc.categorical_column_with_vocabulary_list("clock", [3, 1])
    return ids, dense


IN_NETWORKS = (
    *("size", "age", "sizes", "clipped", "frozen", "shared", "shared_too", "shared_alone"),
    *("scattered", "scattered_ints", "embedded_by_today", "indicator_of_today"),
)


def linear_of_all_kinds(folder):
    ids, dense = columns(folder)
    found = [*ids.values(), dense["size"], dense["age"], dense["sizes"]]
    return tf.estimator.LinearRegressor(found, folder, config=config()), REAL


def network_of_all_kinds(folder):
    _, dense = columns(folder)
    found = [dense[name] for name in IN_NETWORKS]
    return tf.estimator.DNNRegressor([3], found, folder, config=config()), REAL


def network_of_one_hots(folder):
    found = [column for name, column in columns(folder)[1].items() if "one_hot_" in name]
    return tf.estimator.DNNRegressor([3], found, folder, config=config()), REAL


def network_of_embeddings(folder):
    ids, dense = columns(folder)
    found = [column for name, column in dense.items() if name.replace("embedded_", "") in ids]
    return tf.estimator.DNNRegressor([3], found, folder, config=config()), REAL


def config():
    return tf.estimator.RunConfig(save_summary_steps=1, log_step_count_steps=None)


WIDE = ("hashed", "keys", "crossed", "weighted", "crossed_of_today")
DEEP = ("embedded_keys", "one_hot_weighted", "shared", "shared_too", "scattered", "size")


def chosen(folder):
    ids, dense = columns(folder)
    more = [dense["age"], fc.numeric_column("size", shape=[2])]
    return [ids[name] for name in WIDE] + more, [dense[name] for name in DEEP] + [dense["age"]]


def linear_classifier(folder):
    wide, _ = chosen(folder)
    model = tf.estimator.LinearClassifier(
        wide, folder, 3, "example", optimizer="Adagrad", config=config(), sparse_combiner="mean"
    )
    return model, CLASSES


def linear_regressor(folder):
    wide, _ = chosen(folder)
    return tf.estimator.LinearRegressor(wide, folder, config=config()), REAL


def linear_estimator(folder):
    wide, _ = chosen(folder)
    head = tf.contrib.estimator.poisson_regression_head()
    return tf.estimator.LinearEstimator(head, wide, folder, config=config()), abs(REAL)


def dnn_classifier(folder):
    _, deep = chosen(folder)
    return tf.estimator.DNNClassifier([4, 3], deep, folder, 3, config=config()), CLASSES


def dnn_regressor(folder):
    _, deep = chosen(folder)
    model = tf.estimator.DNNRegressor(
        [4], deep, folder, weight_column="example", optimizer="Adam", config=config()
    )
    return model, REAL


def dnn_estimator(folder):
    _, deep = chosen(folder)
    head = tf.contrib.estimator.binary_classification_head()
    model = tf.estimator.DNNEstimator(head, [4], deep, folder, config=config(), batch_norm=True)
    return model, BINARY


def both_classifier(folder):
    wide, deep = chosen(folder)
    model = tf.estimator.DNNLinearCombinedClassifier(
        folder, wide, dnn_feature_columns=deep, dnn_hidden_units=[4], config=config()
    )
    return model, BINARY


def both_regressor(folder):
    wide, deep = chosen(folder)
    model = tf.estimator.DNNLinearCombinedRegressor(
        folder, wide, dnn_feature_columns=deep, dnn_hidden_units=[4], config=config()
    )
    return model, REAL


def both_estimator(folder):
    wide, deep = chosen(folder)
    model = tf.estimator.DNNLinearCombinedEstimator(
        tf.contrib.estimator.regression_head(),
        folder,
        wide,
        dnn_feature_columns=deep,
        dnn_hidden_units=[4],
        config=config(),
    )
    return model, REAL


def baseline(folder):
    return tf.estimator.BaselineRegressor(folder, weight_column="example", config=config()), REAL


def own_model(folder):
    """The functions of `tf.feature_column` on contrib's columns."""

    def model_fn(features, labels, mode):
        wide, deep = chosen(folder)
        by_column = {}
        net = tf.layers.dense(fc.input_layer(features, deep, cols_to_vars=by_column), 1)
        net += fc.linear_model(features, wide)
        shown = {"net": net, "variables": tf.fill(tf.shape(net), len(by_column))}
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(mode, shown)
        loss = tf.losses.mean_squared_error(labels, net)
        step = tf.train.get_global_step()
        op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
        return tf.estimator.EstimatorSpec(mode, shown, loss, op)

    return tf.estimator.Estimator(model_fn, folder, config()), REAL


CASES = {
    make.__name__: make
    for make in (
        *(linear_of_all_kinds, network_of_all_kinds, network_of_one_hots, network_of_embeddings),
        *(linear_classifier, linear_regressor, linear_estimator),
        *(dnn_classifier, dnn_regressor, dnn_estimator),
        *(both_classifier, both_regressor, both_estimator),
        *(baseline, own_model),
    )
}


class SetValues(tf.train.SessionRunHook):
    """Gives trainable variables first values that depend on their names alone."""

    def begin(self):
        self.ops = [self.assigned(variable) for variable in tf.trainable_variables()]

    def after_create_session(self, session, coord):
        session.run(self.ops)

    def assigned(self, variable):
        shape, start = variable.shape.as_list(), len(variable.op.name.replace("/part_0", ""))
        values = 0.3 * np.sin(np.arange(np.prod(shape)) + start).reshape(shape)
        return variable.assign(values.astype(np.float32))


def losses(folder):
    found = []
    for path in glob.glob(os.path.join(folder, "events*")):
        for event in tf.train.summary_iterator(path):
            found += [v.simple_value for v in event.summary.value if v.tag == "loss"]
    return found


def plain(value):
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    value = np.asarray(value)
    if value.dtype.kind == "f":
        return [float("%.8g" % number) for number in value.ravel()]  # noqa: UP031
    return [v.decode() if isinstance(v, bytes) else v for v in value.ravel().tolist()]


def run(case, folder):
    model, labels = CASES[case](folder)
    model.train(input_fn(labels), hooks=[SetValues()], steps=STEPS)
    names = [name for name in model.get_variable_names() if "/Ad" not in name and "/Ft" not in name]
    predictions = model.predict(input_fn(labels), hooks=[tf.train.StopAtStepHook(num_steps=1)])
    return {
        "losses": plain(losses(folder)),
        "variables": plain({name: model.get_variable_value(name) for name in names}),
        "evaluated": plain(model.evaluate(input_fn(labels), steps=3)),
        "predicted": [plain(next(predictions)) for _ in range(2)],
    }


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.ERROR)
    found = {}
    for number, name in enumerate(sys.argv[2:] or CASES):
        folder = os.path.join(sys.argv[1], str(number))
        os.makedirs(folder)
        found[name] = run(name, folder)
    shown = ["%s: %s" % (json.dumps(k), json.dumps(v, sort_keys=True)) for k, v in found.items()]  # noqa: UP031
    print("{\n%s\n}" % ",\n".join(shown))  # noqa: UP031
