"""Heads and Estimators that a program makes of private parts of TF 1.15's.

    python own_heads.py FOLDER

Prints JSON: case -> weights after two steps, metrics and predictions. tests/goldens/own_heads.json
is its output on TensorFlow 1.15.5.
"""

import json
import os
import sys

import numpy as np
import tensorflow as tf
from tensorflow.python.estimator.canned import (
    dnn,
    dnn_linear_combined,
    linear,
    metric_keys,
    prediction_keys,
)
from tensorflow.python.estimator.canned import head as head_lib
from tensorflow.python.estimator.export import export_output
from tensorflow_estimator.contrib.estimator.python.estimator import head as contrib_head
from tensorflow_estimator.python.estimator import model_fn as model_fn_lib

FEATURES = {
    "size": [[1.0, 2.0], [-2.0, 0.5], [0.3, -1.0], [2.0, 1.5]],
    "weight": [[1.0], [0.5], [2.0], [0.25]],
}
LABELS = [[1], [0], [0], [1]]
SIZE = tf.feature_column.numeric_column("size", shape=(2,))


class Steep(head_lib._Head):
    """A head with a loss of its own; it has all that `_Head` asked for but `create_loss`."""

    name = "steep"
    logits_dimension = 1

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
        logits = head_lib._check_logits_final_dim(logits, self.logits_dimension)
        scores = tf.sigmoid(logits)
        two = tf.concat([1.0 - scores, scores], axis=-1)
        predictions = {
            prediction_keys.PredictionKeys.LOGISTIC: scores,
            prediction_keys.PredictionKeys.ALL_CLASSES: head_lib._all_classes(logits, 2),
            prediction_keys.PredictionKeys.ALL_CLASS_IDS: head_lib._all_class_ids(logits, 2),
        }
        if mode == tf.estimator.ModeKeys.PREDICT:
            served = head_lib._classification_output(two, 2)
            return model_fn_lib._TPUEstimatorSpec(
                mode,
                predictions,
                export_outputs={
                    head_lib._DEFAULT_SERVING_KEY: served,
                    head_lib._PREDICT_SERVING_KEY: export_output.PredictOutput(predictions),
                },
            )
        labels = head_lib._check_dense_labels_match_logits_and_reshape(labels, logits, 1)
        labels = head_lib._assert_range(tf.cast(labels, tf.float32), 2)
        weights = head_lib._get_weights_and_check_match_logits(features, "weight", logits)
        losses = head_lib._call_loss_fn(
            lambda labels, logits: tf.abs(labels - tf.sigmoid(3.0 * logits)),
            labels,
            logits,
            features,
        )
        loss = tf.losses.compute_weighted_loss(losses, weights)
        if mode == tf.estimator.ModeKeys.EVAL:
            tensors = {"labels": labels, "scores": scores, "losses": losses, "weights": weights}
            metrics = head_lib._create_eval_metrics_tuple(self._metrics, tensors)
            return model_fn_lib._TPUEstimatorSpec(mode, predictions, loss, eval_metrics=metrics)
        step = tf.train.get_global_step()
        train_op = head_lib._append_update_ops(optimizer.minimize(loss, global_step=step))
        return model_fn_lib._TPUEstimatorSpec(mode, predictions, loss, train_op)

    def _metrics(self, labels, scores, losses, weights):
        mean = head_lib._indicator_labels_mean(labels=labels, weights=weights, name="mean")
        pairs = {
            metric_keys.MetricKeys.LOSS_MEAN: tf.metrics.mean(losses, weights),
            "labels": mean,
            "baseline": head_lib._accuracy_baseline(mean),
            "scores": head_lib._predictions_mean(predictions=scores, weights=weights),
            "auc": head_lib._auc(labels, scores, weights=weights),
            "auc_pr": head_lib._auc(labels, scores, weights=weights, curve="PR"),
            "right": head_lib._accuracy_at_threshold(labels, scores, weights, 0.6),
            "precise": head_lib._precision_at_threshold(labels, scores, weights, 0.6, name="p"),
            "found": head_lib._recall_at_threshold(labels, scores, weights, threshold=0.6),
        }
        return {head_lib._summary_key(self.name, key): pair for key, pair in pairs.items()}


class Weighted(head_lib._BinaryLogisticHeadWithSigmoidCrossEntropyLoss):
    """A head of TF 1's that also weights by the label."""

    def create_loss(self, features, mode, logits, labels):
        parts = super().create_loss(features, mode, logits, labels)
        loss = parts.training_loss + tf.reduce_sum(parts.processed_labels * parts.unreduced_loss)
        return parts._replace(training_loss=loss)


def optimizer():
    return tf.train.GradientDescentOptimizer(0.1)


def linear_fn(features, labels, mode, config):
    head = Weighted(weight_column="weight", name="two")
    columns = [SIZE]
    return linear._linear_model_fn(features, labels, mode, head, columns, optimizer, None, config)


def steep_fn(features, labels, mode, config):
    columns = [SIZE]
    return linear._linear_model_fn(
        features, labels, mode, Steep(), columns, optimizer(), None, config
    )


def dnn_fn(features, labels, mode, config):
    head = head_lib._RegressionHeadWithMeanSquaredErrorLoss(1)
    return dnn._dnn_model_fn(
        features=features,
        labels=labels,
        mode=mode,
        head=head,
        hidden_units=[2],
        feature_columns=[SIZE],
        optimizer=optimizer,
        activation_fn=tf.nn.tanh,
        config=config,
    )


def combined_fn(features, labels, mode, config):
    head = head_lib._MultiClassHeadWithSoftmaxCrossEntropyLoss(3)
    return dnn_linear_combined._dnn_linear_combined_model_fn(
        features,
        labels,
        mode,
        head,
        linear_feature_columns=[SIZE],
        linear_optimizer=optimizer,
        dnn_feature_columns=[SIZE],
        dnn_optimizer=optimizer,
        dnn_hidden_units=[2],
        config=config,
    )


def poisson_fn(features, labels, mode, config):
    head = contrib_head.poisson_regression_head()
    columns = [SIZE]
    return linear._linear_model_fn(features, labels, mode, head, columns, optimizer, None, config)


CASES = {
    "poisson": poisson_fn,
    "linear": linear_fn,
    "steep": steep_fn,
    "dnn": dnn_fn,
    "combined": combined_fn,
}


def input_fn():
    return tf.data.Dataset.from_tensors((FEATURES, LABELS)).repeat(2)


def with_fixed_weights(model_fn):
    def fixed(features, labels, mode, config):
        spec = model_fn(features, labels, mode, config)
        if mode != tf.estimator.ModeKeys.TRAIN:
            return spec
        weights = [tf.assign(v, tf.fill(v.shape, 0.3)) for v in tf.trainable_variables()]
        scaffold = tf.train.Scaffold(init_fn=lambda scaffold, session: session.run(weights))
        return spec._replace(scaffold=scaffold)

    return fixed


def run(folder):
    found = {}
    for case, model_fn in CASES.items():
        model = tf.estimator.Estimator(with_fixed_weights(model_fn), os.path.join(folder, case))
        model.train(input_fn)
        values = {name: model.get_variable_value(name) for name in model.get_variable_names()}
        predictions = next(iter(model.predict(input_fn)))
        found[case] = {
            "weights": {name: np.array(value).tolist() for name, value in values.items()},
            "metrics": {key: float(value) for key, value in model.evaluate(input_fn).items()},
            "predictions": {
                key: np.array(value).astype("U" if value.dtype == object else None).tolist()
                for key, value in predictions.items()
            },
        }
    return found


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1]), indent=1, sort_keys=True))
