"""Trains, evaluates, predicts and exports with heads, of the real Estimator or of ours.

    python heads.py FOLDER v1|v2

Prints JSON: case -> weights after two steps, metrics, predictions, signatures and summaries.
tests/goldens/heads.json is {"v1": its output with v1 on TensorFlow 1.15.5, "v2": with v2 on
TensorFlow 2.15.1}.
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
SIZES = [[1.0, 2.0], [-2.0, 0.5], [0.3, -1.0], [2.0, 1.5]]
FEATURES = {"size": SIZES, "weight": [[1.0], [0.5], [2.0], [0.25]]}
NAMES = ["ant", "bee", "cat"]
SUM = {"v1": "weighted_sum", "v2": "sum"}


def modules(version):
    """(estimator, head makers by V2's names)."""
    if not hasattr(tf1, "estimator"):
        from estimator2strategy import estimator
        from estimator2strategy.estimator.heads import v1 as v1_heads
    else:
        estimator = tf1.estimator
        v1_heads = tf.contrib.estimator if version == "v1" else None
    if version == "v2":
        return estimator, estimator
    return estimator, type(
        "Heads",
        (),
        {
            "BinaryClassHead": staticmethod(v1_heads.binary_classification_head),
            "MultiClassHead": staticmethod(v1_heads.multi_class_head),
            "RegressionHead": staticmethod(v1_heads.regression_head),
            "PoissonRegressionHead": staticmethod(v1_heads.poisson_regression_head),
            "LogisticRegressionHead": staticmethod(v1_heads.logistic_regression_head),
            "MultiLabelHead": staticmethod(v1_heads.multi_label_head),
            "MultiHead": staticmethod(v1_heads.multi_head),
        },
    )


def absolute(labels, logits):
    return tf.abs(labels - logits)


BINARY = [[1], [0], [0], [1]]
SPARSE = {"indices": [[0, 0], [0, 1], [2, 0]], "values": [0, 2, 1], "dense_shape": [4, 2]}
# Case -> (head, arguments, labels)
CASES = {
    "binary": ("BinaryClassHead", {}, BINARY),
    "binary, weights, thresholds, names": (
        "BinaryClassHead",
        {
            "weight_column": "weight",
            "thresholds": [0.3, 0.75],
            "label_vocabulary": NAMES[:2],
            "loss_reduction": "sum",
            "name": "which",
        },
        [["bee"], ["ant"], ["bee"], ["bee"]],
    ),
    "classes": ("MultiClassHead", {"n_classes": 3}, [[2], [0], [1], [1]]),
    "classes, weights, names": (
        "MultiClassHead",
        {"n_classes": 3, "weight_column": "weight", "label_vocabulary": NAMES},
        ["cat", "ant", "ant", "bee"],
    ),
    "regression": ("RegressionHead", {"label_dimension": 2}, SIZES[::-1]),
    "regression, sum, own loss": (
        "RegressionHead",
        {"weight_column": "weight", "loss_reduction": "sum", "loss_fn": absolute},
        [1.0, 2.0, 3.0, 4.0],
    ),
    "counts": ("PoissonRegressionHead", {"compute_full_loss": False}, [[1], [0], [3], [2]]),
    "probabilities": ("LogisticRegressionHead", {}, [[0.5], [0.0], [1.0], [0.9]]),
    "labels": (
        "MultiLabelHead",
        {
            "n_classes": 3,
            "thresholds": [0.4],
            "label_vocabulary": NAMES,
            "classes_for_class_based_metrics": ["bee"],
        },
        [[1, 0, 1], [0, 0, 0], [0, 1, 0], [1, 1, 1]],
    ),
    "sparse labels": (
        "MultiLabelHead",
        {"n_classes": 3, "weight_column": "weight", "classes_for_class_based_metrics": [0, 2]},
        SPARSE,
    ),
    "two heads": (
        "MultiHead",
        {
            "heads": [
                ("BinaryClassHead", {"name": "one"}),
                ("RegressionHead", {"name": "two", "label_dimension": 2}),
            ],
            "head_weights": [1.0, 0.1],
        },
        {"one": BINARY, "two": SIZES[::-1]},
    ),
}


def made(heads, kind, options, version):
    options = dict(options)
    if "heads" in options:
        options["heads"] = [made(heads, *head, version) for head in options["heads"]]
    if options.get("loss_reduction") == "sum":
        options["loss_reduction"] = SUM[version]
    return getattr(heads, kind)(**options)


def run(case, folder, version):
    """What one case leaves behind."""
    estimator, heads = modules(version)
    kind, options, labels = CASES[case]
    regularized = {} if kind == "MultiHead" else {"regularization_losses": [0.25, 0.5]}

    def model_fn(features, labels, mode):
        head = made(heads, kind, options, version)
        units = head.logits_dimension
        start = np.linspace(-1.0, 0.5, 2 * units).reshape([2, units]).astype(np.float32)
        weight = tf1.get_variable("weight", initializer=start)
        losses = {key: [tf.constant(x) for x in value] for key, value in regularized.items()}

        def train_op_fn(loss):
            step = tf1.train.get_global_step()
            return tf1.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)

        logits = tf.matmul(features["size"], weight)
        return head.create_estimator_spec(
            features=features,
            mode=mode,
            logits=logits,
            labels=labels,
            train_op_fn=train_op_fn,
            **losses,
        )

    def input_fn():
        given = tf.SparseTensor(**labels) if labels is SPARSE else labels
        return tf1.data.Dataset.from_tensors((FEATURES, given))

    def batches():
        return input_fn().repeat(2)

    model_dir = os.path.join(folder, case)
    model = estimator.Estimator(model_fn, model_dir, estimator.RunConfig(save_summary_steps=1))
    model.train(batches)
    # A batch of a Dataset that was never batched: predictions are compared as a batch too.
    (predictions,) = model.predict(input_fn, yield_single_examples=False)
    with tf.Graph().as_default():
        features = {
            "size": tf1.placeholder(tf.float32, [None, 2]),
            "weight": tf1.placeholder(tf.float32, [None, 1]),
        }
        receiver_fn = estimator.export.build_raw_serving_input_receiver_fn(features)
    exported = model.export_saved_model(os.path.join(folder, case + " exported"), receiver_fn)
    return {
        "weight": model.get_variable_value("weight").tolist(),
        "evaluated": {k: float(v) for k, v in sorted(model.evaluate(batches).items())},
        "predicted": {
            "/".join(key) if isinstance(key, tuple) else key: [value.dtype.kind, _plain(value)]
            for key, value in sorted(predictions.items(), key=str)
        },
        "signatures": signatures(exported),
        "summaries": sorted(summaries(model_dir)),
    }


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
        key: [signature.method_name.rpartition("/")[2], sorted(signature.outputs)]
        for key, signature in sorted(saved.meta_graphs[0].signature_def.items())
    }


def summaries(folder):
    """Tags of the scalars that training wrote, without the speed."""
    tags = set()
    for path in glob.glob(os.path.join(folder, "events*")):
        for event in tf1.train.summary_iterator(path):
            tags.update(value.tag for value in event.summary.value)
    return {tag for tag in tags if not tag.startswith("global_step")}


if __name__ == "__main__":
    found = {case: run(case, sys.argv[1], sys.argv[2]) for case in CASES}
    json.dump(found, sys.stdout, indent=0)
