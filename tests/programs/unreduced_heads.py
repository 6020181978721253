"""Heads derived from TF 1's, with the losses of examples and with metrics of their own.

    python unreduced_heads.py FOLDER

Prints JSON: case -> a step's losses, weights after two steps, and metrics.
tests/goldens/unreduced_heads.json is its output on TensorFlow 2.15.1. TensorFlow 1.15.5 prints the
same within 1e-6.
"""

import json
import os
import sys

import numpy as np
import tensorflow as tf
from tensorflow_estimator.python.estimator import model_fn as model_fn_lib
from tensorflow_estimator.python.estimator.canned import head as head_lib

tf1 = tf.compat.v1
NONE = tf1.losses.Reduction.NONE
SIZES = [[1.0, 2.0], [-2.0, 0.5], [0.3, -1.0], [2.0, 1.5]]
FEATURES = {"size": SIZES, "weight": [[1.0], [0.5], [2.0], [0.25]]}


class Unreduced:
    """Trains on the losses of examples, and measures as the head that it is mixed into."""

    def _create_tpu_estimator_spec(
        self,
        features,
        mode,
        logits,
        labels=None,
        optimizer=None,
        train_op_fn=None,
        regularization_losses=None,
    ):
        loss, losses, weights, labels = self.create_loss(features, mode, logits, labels)
        self.shapes = [loss.shape.rank, losses.shape.rank]
        mean = tf.reduce_mean(loss)
        if mode == tf1.estimator.ModeKeys.TRAIN:
            step = tf1.train.get_global_step()
            train_op = optimizer.minimize(tf.minimum(losses, 1.0), global_step=step)
            return model_fn_lib._TPUEstimatorSpec(mode, loss=mean, train_op=train_op)
        measured = {
            "labels": labels,
            "weights": weights,
            "unreduced_loss": losses,
            "regularization_loss": None,
            **self.measured(logits),
        }
        metrics = head_lib._create_eval_metrics_tuple(self._eval_metric_ops, measured)
        return model_fn_lib._TPUEstimatorSpec(mode, loss=mean, eval_metrics=metrics)


class UnreducedBinary(Unreduced, head_lib._BinaryLogisticHeadWithSigmoidCrossEntropyLoss):
    def measured(self, logits):
        class_ids = tf.cast(logits > 0.0, tf.int64)
        return {"logits": logits, "logistic": tf.sigmoid(logits), "class_ids": class_ids}


class UnreducedClasses(Unreduced, head_lib._MultiClassHeadWithSoftmaxCrossEntropyLoss):
    def measured(self, logits):
        return {"class_ids": tf.argmax(logits, axis=-1)[..., tf.newaxis]}


class UnreducedRegression(Unreduced, head_lib._RegressionHeadWithMeanSquaredErrorLoss):
    def measured(self, logits):
        return {"predicted_value": logits}


class MoreOfBinary(head_lib._BinaryLogisticHeadWithSigmoidCrossEntropyLoss):
    """Adds a metric of its logits, and overrides none of the rest."""

    def _eval_metric_ops(
        self, labels, logits, logistic, class_ids, weights, unreduced_loss, regularization_loss
    ):
        pairs = super()._eval_metric_ops(
            labels, logits, logistic, class_ids, weights, unreduced_loss, regularization_loss
        )
        return {**pairs, "logits/mean": tf1.metrics.mean(logits, weights)}


class MoreOfClasses(head_lib._MultiClassHeadWithSoftmaxCrossEntropyLoss):
    def _eval_metric_ops(self, class_ids, **others):
        pairs = super()._eval_metric_ops(class_ids=class_ids, **others)
        return {**pairs, "class/mean": tf1.metrics.mean(class_ids, others["weights"])}


class MoreOfRegression(head_lib._RegressionHeadWithMeanSquaredErrorLoss):
    def _eval_metric_ops(self, predicted_value, **others):
        pairs = super()._eval_metric_ops(predicted_value, **others)
        return {**pairs, "square/mean": tf1.metrics.mean(predicted_value**2, others["weights"])}


BINARY, CLASSES = [[1], [0], [0], [1]], [[2], [0], [1], [1]]
VALUES = [[1.0, 0.0], [0.5, 2.0], [1.0, 1.0], [-1.0, 0.0]]
WEIGHTED = {"weight_column": "weight", "name": "one"}
# Case -> (the head, its arguments, labels)
CASES = {
    "binary": (UnreducedBinary, {"loss_reduction": NONE, "thresholds": [0.3]}, BINARY),
    "binary, weights": (UnreducedBinary, {"loss_reduction": NONE, **WEIGHTED}, BINARY),
    "classes": (UnreducedClasses, {"loss_reduction": NONE, "n_classes": 3, **WEIGHTED}, CLASSES),
    "values": (UnreducedRegression, {"loss_reduction": NONE, "label_dimension": 2}, VALUES),
    "more of binary": (MoreOfBinary, WEIGHTED, BINARY),
    "more of classes": (MoreOfClasses, {"n_classes": 3, **WEIGHTED}, CLASSES),
    "more of values": (MoreOfRegression, {"label_dimension": 2, **WEIGHTED}, VALUES),
}


def run_case(case, folder):
    kind, arguments, labels = CASES[case]
    head = kind(**arguments)

    def model_fn(features, labels, mode):
        units = head.logits_dimension
        start = np.linspace(-1.0, 0.5, 2 * units).reshape([2, units]).astype(np.float32)
        weight = tf1.get_variable("weight", initializer=start)
        return head.create_estimator_spec(
            features=features,
            mode=mode,
            logits=tf.matmul(features["size"], weight),
            labels=labels,
            optimizer=tf1.train.GradientDescentOptimizer(0.1),
        )

    def input_fn():
        return tf1.data.Dataset.from_tensors((FEATURES, labels)).repeat(2)

    model = tf1.estimator.Estimator(model_fn, os.path.join(folder, case))
    model.train(input_fn)
    metrics = model.evaluate(input_fn)
    return {
        "ranks of losses": getattr(head, "shapes", None),
        "weight": model.get_variable_value("weight").tolist(),
        "metrics": {key: float(value) for key, value in sorted(metrics.items())},
    }


def run(folder):
    return {case: run_case(case, folder) for case in CASES}


if __name__ == "__main__":
    json.dump(run(sys.argv[1]), sys.stdout, indent=0)
