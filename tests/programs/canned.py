"""Trains, evaluates, predicts and exports with canned Estimators: the real ones, or ours.

    python canned.py FOLDER v1|v2

Prints JSON: case -> losses, variables, metrics, predictions, signatures and summaries.
tests/goldens/canned.json is {"v1": ..., "v2": ...}, its output on TensorFlow 2.15.1: of
`tf.compat.v1.estimator`, and of `tf.estimator`.
"""

import glob
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
fc = tf.feature_column
RANDOM = np.random.RandomState(11)
N = 24
COLORS = np.array(["red", "green", "blue"])
FEATURES = {
    "size": RANDOM.randn(N, 2).astype(np.float32),
    "age": RANDOM.randint(10, 80, [N, 1]).astype(np.float32),
    "color": COLORS[RANDOM.randint(0, 3, [N, 1])],
    "tags": np.array(["a", "bb", "ccc", "d", ""])[RANDOM.randint(0, 5, [N, 3])],
    "amounts": RANDOM.rand(N, 3).astype(np.float32),
    "day": RANDOM.randint(0, 7, [N, 2]),
    "hour": RANDOM.randint(0, 7, [N, 1]),
    "weight": (0.5 + RANDOM.rand(N, 1)).astype(np.float32),
}
FEATURES["amounts"][FEATURES["tags"] == ""] = 0.0  # as no word, no weight
BINARY = (FEATURES["size"][:, :1] > 0).astype(np.int64)
NAMED = COLORS[(FEATURES["age"][:, 0] // 30).astype(int)][:, np.newaxis]
REAL = FEATURES["size"].sum(1, keepdims=True) + FEATURES["age"] / 40.0
PAIRS = np.concatenate([REAL, FEATURES["size"][:, :1] ** 2], axis=1)
MANY = RANDOM.randint(0, 2, [N, 3])


def columns():
    """Columns of all types, by what they are."""
    color = fc.categorical_column_with_vocabulary_list("color", ["red", "green"], num_oov_buckets=1)
    tags = fc.categorical_column_with_hash_bucket("tags", 5)
    day = fc.categorical_column_with_identity("day", 7)
    hour = fc.categorical_column_with_identity("hour", 7)
    age = fc.bucketized_column(fc.numeric_column("age"), [20.0, 40.0, 60.0])
    size = fc.numeric_column("size", shape=(2,), normalizer_fn=lambda x: x / 2.0)
    weighted = fc.weighted_categorical_column(tags, "amounts")
    with tf.Graph().as_default():  # TensorFlow makes these in graphs only
        shared = fc.shared_embeddings([day, hour], 2)
    return {
        "wide": [
            fc.crossed_column([age, "color"], 7),
            weighted,
            age,
            size,
            color,
        ],
        "deep": [
            fc.embedding_column(tags, 3, combiner="sqrtn"),
            fc.indicator_column(color),
            size,
            age,
            *shared,
        ],
        "few": [size],
        "embedded": [fc.embedding_column(color, 2), size],
    }


def optimizer(name, rate, version):
    if version == "v1":
        classes = {"Adam": tf1.train.AdamOptimizer, "SGD": tf1.train.GradientDescentOptimizer}
        return classes[name](rate)
    if hasattr(tf1, "estimator"):
        legacy = tf.keras.optimizers.legacy
    else:
        from tf_keras.optimizers import legacy
    return getattr(legacy, name)(rate)


def regression_head(dimension):
    """The head of v1's regressors, for its Estimators that take any: TF 2 has no public one."""
    if hasattr(tf1, "estimator"):
        from tensorflow_estimator.python.estimator.canned import head

        return head._regression_head(label_dimension=dimension)
    from estimator2strategy.estimator.heads import v1

    return v1.regression_head(label_dimension=dimension, loss_reduction="weighted_sum")


def cases(estimator, version):
    """Case -> (class, arguments, labels)."""
    of = columns()
    total = {"loss_reduction": "weighted_sum" if version == "v1" else "sum"}
    three = {"n_classes": 3, "label_vocabulary": COLORS.tolist(), "weight_column": "weight"}
    many = estimator.MultiLabelHead(3) if version == "v2" else regression_head(3)
    return {
        "linear classifier": ("LinearClassifier", {"feature_columns": of["wide"]}, BINARY),
        "linear classifier, names, weights, mean": (
            "LinearClassifier",
            {
                "feature_columns": of["wide"],
                "optimizer": optimizer("Adam", 0.1, version),
                "sparse_combiner": "mean",
                **three,
                **total,
            },
            NAMED,
        ),
        "linear regressor, callable": (
            "LinearRegressor",
            {
                "feature_columns": of["embedded"],
                "label_dimension": 2,
                "optimizer": lambda: optimizer("SGD", 0.05, version),
            },
            PAIRS,
        ),
        "linear estimator, default optimizer": (
            "LinearEstimator",
            {"feature_columns": of["few"], "head": many, "optimizer": None},
            MANY,
        ),
        "dnn classifier": (
            "DNNClassifier",
            {"feature_columns": of["deep"], "hidden_units": [4, 3]},
            BINARY,
        ),
        "dnn classifier, dropout, batch norm": (
            "DNNClassifier",
            {
                "feature_columns": of["deep"],
                "hidden_units": [8, 4],
                "dropout": 0.25,
                "batch_norm": True,
                "activation_fn": tf.nn.tanh,
                "optimizer": lambda: optimizer("Adam", 0.02, version),
                **three,
            },
            NAMED,
        ),
        "dnn regressor": (
            "DNNRegressor",
            {
                "feature_columns": of["embedded"],
                "hidden_units": [4],
                "optimizer": "Adam",
                "label_dimension": 2,
                "weight_column": "weight",
                "loss_reduction": "weighted_mean" if version == "v1" else "sum",
            },
            PAIRS,
        ),
        "dnn estimator": (
            "DNNEstimator",
            {
                "feature_columns": of["embedded"],
                "hidden_units": [4],
                "head": many,
                "batch_norm": True,
            },
            MANY,
        ),
        "combined classifier": (
            "DNNLinearCombinedClassifier",
            {
                "linear_feature_columns": of["few"],
                "dnn_feature_columns": of["embedded"],
                "dnn_hidden_units": [4, 3],
            },
            BINARY,
        ),
        "combined classifier, options": (
            "DNNLinearCombinedClassifier",
            {
                "linear_feature_columns": of["wide"],
                "linear_optimizer": optimizer("SGD", 0.1, version),
                "linear_sparse_combiner": "sqrtn",
                "dnn_feature_columns": of["deep"],
                "dnn_optimizer": "RMSProp",
                "dnn_hidden_units": [6],
                "dnn_activation_fn": tf.nn.selu,
                "dnn_dropout": 0.5,
                "batch_norm": True,
                **three,
                **total,
            },
            NAMED,
        ),
        "combined regressor, deep alone": (
            "DNNLinearCombinedRegressor",
            {
                "dnn_feature_columns": of["embedded"],
                "dnn_optimizer": "SGD",
                "dnn_hidden_units": [4],
                "label_dimension": 2,
            },
            PAIRS,
        ),
        "combined estimator, linear alone": (
            "DNNLinearCombinedEstimator",
            {"linear_feature_columns": of["few"], "head": many},
            MANY,
        ),
        "baseline estimator": ("BaselineEstimator", {"head": many}, MANY),
        "baseline classifier": ("BaselineClassifier", {}, BINARY),
        "baseline classifier, names, weights": (
            "BaselineClassifier",
            {"optimizer": "Adam", **three, **total},
            NAMED,
        ),
        "baseline regressor": (
            "BaselineRegressor",
            {"label_dimension": 2, "optimizer": optimizer("SGD", 0.01, version)},
            PAIRS,
        ),
    }


# The cases that are evaluated and exported too, which takes long.
SERVED = (
    "linear classifier",
    "dnn classifier, dropout, batch norm",
    "combined regressor, deep alone",
)
# Trained a second time, from what the first left.
WARM = "dnn classifier"


class Losses(tf1.train.SessionRunHook):
    def __init__(self):
        self.found = []

    def before_run(self, run_context):
        graph = run_context.session.graph
        return tf1.train.SessionRunArgs(graph.get_collection(tf1.GraphKeys.LOSSES)[-1])

    def after_run(self, run_context, run_values):
        self.found.append(float(run_values.results))


def modules(version):
    """The module of the Estimators, and what its names end in."""
    if hasattr(tf1, "estimator"):
        return (tf1.estimator if version == "v1" else tf.estimator), ""
    from estimator2strategy import estimator

    return estimator, "" if version == "v1" else "V2"


def names(version):
    return list(cases(modules(version)[0], version))


def run(case, folder, version):
    """What one case leaves behind."""
    estimator, suffix = modules(version)
    kind, options, labels = cases(estimator, version)[case]

    def input_fn():
        features = FEATURES
        if kind.startswith("Baseline"):
            # With more, TensorFlow 2.15's v2 fails: it reads the input to make its variable.
            weight = options.get("weight_column")
            features = {name: FEATURES[name] for name in ("size", *([weight] if weight else ()))}
        return tf1.data.Dataset.from_tensor_slices((features, labels)).batch(8)

    def made(name, **more):
        config = estimator.RunConfig(
            os.path.join(folder, name), tf_random_seed=5, save_summary_steps=1
        )
        return getattr(estimator, kind + suffix)(config=config, **options, **more)

    first = made(case)
    losses = Losses()
    model = first
    model.train(lambda: input_fn().repeat(), steps=6, hooks=[losses])
    if case == WARM:
        model = made(case + " warm", warm_start_from=first.model_dir)
        model.train(lambda: input_fn().repeat(), steps=6, hooks=[losses])
    predictions = next(iter(model.predict(input_fn, yield_single_examples=False)))
    found = {
        "losses": losses.found,
        "variables": {
            name: model.get_variable_value(name).tolist()
            for name in sorted(model.get_variable_names())
        },
        "predicted": {
            key: [value.dtype.kind, _plain(value)] for key, value in sorted(predictions.items())
        },
        "summaries": sorted(summaries(model.model_dir)),
    }
    if case not in SERVED:
        return found
    spec = fc.make_parse_example_spec(
        [
            *(options.get("feature_columns") or ()),
            *(options.get("linear_feature_columns") or ()),
            *(options.get("dnn_feature_columns") or ()),
        ]
        or columns()["few"]
    )
    receiver_fn = estimator.export.build_parsing_serving_input_receiver_fn(spec)
    exported = model.export_saved_model(os.path.join(folder, case + " exported"), receiver_fn)
    found["evaluated"] = {k: float(v) for k, v in sorted(model.evaluate(input_fn).items())}
    found["signatures"] = signatures(exported)
    return found


def _plain(value):
    if value.dtype == object:
        return [[item.decode() for item in row] for row in value.tolist()]
    return value.tolist()


def signatures(folder):
    from tensorflow.core.protobuf import saved_model_pb2

    saved = saved_model_pb2.SavedModel()
    with open(os.path.join(os.fsdecode(folder), "saved_model.pb"), "rb") as file:
        saved.ParseFromString(file.read())
    return {
        key: [
            signature.method_name.rpartition("/")[2],
            sorted(signature.inputs),
            sorted(signature.outputs),
        ]
        for key, signature in sorted(saved.meta_graphs[0].signature_def.items())
    }


def summaries(folder):
    """Tags of the summaries that training wrote, without the speed."""
    tags = set()
    for path in glob.glob(os.path.join(folder, "events*")):
        for event in tf1.train.summary_iterator(path):
            tags.update(value.tag for value in event.summary.value)
    return {tag for tag in tags if not tag.startswith("global_step")}


if __name__ == "__main__":
    found = {case: run(case, sys.argv[1], sys.argv[2]) for case in names(sys.argv[2])}
    json.dump(found, sys.stdout, indent=0)
