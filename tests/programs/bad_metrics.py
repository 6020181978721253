"""Evaluations of bad input, by the real Estimator and by ours.

    python bad_metrics.py > ../goldens/bad_metrics.json        # with TensorFlow 2.15

Prints for each kind of bad input what each metric gives: a number, or the name of the error.
"""

import json
import os
import tempfile

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

tf1 = tf.compat.v1
if hasattr(tf1, "estimator"):
    estimator = tf1.estimator  # TensorFlow 2.15
else:
    from estimator2strategy import estimator

NAN = float("nan")
PREDICTIONS = [0.1, 0.9, 0.8, 0.3, 0.6]
LABELS = [0, 1, 0, 1, 1]


def f1(labels, positive, weights):
    precision = tf1.metrics.precision(labels, positive, weights)
    recall = tf1.metrics.recall(labels, positive, weights)
    both = precision[0] + recall[0]
    return 2 * precision[0] * recall[0] / both, tf.group(precision[1], recall[1])


def own_mean(values):
    """A streaming mean of the user's own, that divides by 0 if it comes to that."""
    local = [tf1.GraphKeys.LOCAL_VARIABLES]
    zeros = tf1.zeros_initializer()
    total = tf1.get_variable("total", [], initializer=zeros, collections=local, trainable=False)
    count = tf1.get_variable("count", [], initializer=zeros, collections=local, trainable=False)
    size = tf.cast(tf.size(values), tf.float32)
    return total / count, tf.group(total.assign_add(tf.reduce_sum(values)), count.assign_add(size))


def at_k(function):
    def metric(labels, p, weights):
        return function(labels, tf.stack([p, 1 - p, 0 * p], 1), k=1, weights=weights)

    return metric


METRICS = {
    "accuracy": lambda y, p, w: tf1.metrics.accuracy(y, tf.cast(p > 0.5, tf.int64), w),
    "auc": tf1.metrics.auc,
    "average_precision": at_k(tf1.metrics.average_precision_at_k),
    "f1": lambda y, p, w: f1(y, p > 0.5, w),
    "iou": lambda y, p, w: tf1.metrics.mean_iou(y, tf.cast(p > 0.5, tf.int64), 2, w),
    "mean": lambda y, p, w: tf1.metrics.mean(p, w),
    "own_mean": lambda y, p, w: own_mean(p),
    "per_class": lambda y, p, w: tf1.metrics.mean_per_class_accuracy(
        y, tf.cast(p > 0.5, tf.int64), 2, w
    ),
    "precision": lambda y, p, w: tf1.metrics.precision(y, p > 0.5, w),
    "recall_at_k": at_k(tf1.metrics.recall_at_k),
    "squared_error": lambda y, p, w: tf1.metrics.mean_squared_error(tf.cast(y, tf.float32), p, w),
}


def batches(predictions=PREDICTIONS, labels=LABELS, weights=None):
    """Batches of 2, 2 and 1."""
    predictions = np.array(predictions, np.float32)
    features = {"p": predictions}
    if weights is not None:
        features["w"] = np.array(weights, np.float32)
    labels = np.array(labels, np.int64)
    return lambda: tf1.data.Dataset.from_tensor_slices((features, labels)).batch(2)


def of_lengths(*lengths):
    """A batch for each (number of predictions, number of labels)."""

    def generate():
        for predictions, labels in lengths:
            yield {"p": np.linspace(0, 1, predictions, dtype=np.float32)}, np.arange(labels) % 2

    types, shapes = ({"p": tf.float32}, tf.int64), ({"p": [None]}, [None])
    return lambda: tf1.data.Dataset.from_generator(generate, types, shapes)


# Kind of bad input -> the input, and the metrics that end the evaluation by an error.
KINDS = {
    "none": (batches(), ()),
    "no batch": (batches([], []), ()),
    "an empty batch": (of_lengths((2, 2), (0, 0), (1, 1)), ()),
    "only an empty batch": (of_lengths((0, 0)), ()),
    "a prediction is NaN": (batches([0.1, NAN, 0.8, 0.3, 0.6]), ("auc",)),
    "labels are no classes": (batches(labels=[0, 1, 7, 1, -1]), ("iou", "per_class")),
    "no weight": (batches(weights=[0] * 5), ()),
    "a weight is NaN": (batches(weights=[1, NAN, 1, 1, 1]), ()),
    "weights below zero": (batches(weights=[1, -3, 1, -1, 1]), ()),
    "fewer labels": (
        of_lengths((2, 2), (3, 2)),
        set(METRICS) - {"mean", "own_mean"},
    ),
    "one label for all": (
        of_lengths((3, 3), (3, 1)),
        ("average_precision", "iou", "per_class", "recall_at_k"),
    ),
}


def evaluate(names, input_fn):
    def model_fn(features, labels, mode):
        p, weights = features["p"], features.get("w")
        metrics = {}
        for name in sorted(names):
            with tf1.variable_scope(name):
                metrics[name] = METRICS[name](labels, p, weights)
        return estimator.EstimatorSpec(mode, loss=tf.reduce_sum(p), eval_metric_ops=metrics)

    config = estimator.RunConfig(model_dir=tempfile.mkdtemp())
    return estimator.Estimator(model_fn, config=config).evaluate(input_fn)


def outcomes(kind):
    """Metric -> its value as text, or the name of the error that it ends the evaluation by."""
    input_fn, failing = KINDS[kind]
    results = evaluate(set(METRICS) - set(failing), input_fn)
    found = {name: repr(float(results[name])) for name in results}
    for name in sorted(failing):
        try:
            found[name] = repr(float(evaluate([name], input_fn)[name]))
        except Exception as error:  # whichever it is, it is what is to be compared
            found[name] = type(error).__name__
    return found


if __name__ == "__main__":
    print(json.dumps({kind: outcomes(kind) for kind in KINDS}, indent=1, sort_keys=True))
