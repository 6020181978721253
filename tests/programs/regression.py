"""A TPUEstimator program in one file, run by the real TPUEstimator and by ours.

    python regression.py MODEL_DIR MAX_STEPS

Prints one line of JSON: the loss of each step, the metrics, the predictions, the variables.
"""

import json
import os
import sys

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf

tf1 = tf.compat.v1
if hasattr(tf1, "estimator"):
    estimator = tf1.estimator  # TensorFlow 2.15
else:
    from estimator2strategy import estimator

RANDOM = np.random.RandomState(7)
FEATURES = RANDOM.randn(100, 6).astype("float32")
LABELS = (FEATURES[:, :3].sum(axis=1) > 0).astype("int32")


def dense(x, units, name):
    kernel = tf1.get_variable(
        name + "/kernel", [x.shape[1], units], initializer=tf1.glorot_uniform_initializer(seed=1)
    )
    bias = tf1.get_variable(name + "/bias", [units], initializer=tf1.zeros_initializer())
    return tf.matmul(x, kernel) + bias


def metric_fn(labels, logits):
    probabilities = tf.nn.softmax(logits)[:, 1]
    predicted = tf1.argmax(logits, axis=1)
    precision = tf1.metrics.precision(labels, predicted)
    recall = tf1.metrics.recall(labels, predicted)
    f1 = 2 * precision[0] * recall[0] / (precision[0] + recall[0])
    return {
        "accuracy": tf1.metrics.accuracy(labels, predicted),
        "auc": tf1.metrics.auc(labels, probabilities),
        "f1": (f1, tf.group(precision[1], recall[1])),
        "mean_squared_error": tf1.metrics.mean_squared_error(
            tf.cast(labels, tf.float32), probabilities
        ),
        "precision": precision,
    }


def model_fn(features, labels, mode, params):
    del params
    logits = dense(tf.nn.relu(dense(features, 8, "hidden")), 2, "logits")
    if mode == estimator.ModeKeys.PREDICT:
        predictions = {"class": tf1.argmax(logits, 1), "probabilities": tf.nn.softmax(logits)}
        return estimator.tpu.TPUEstimatorSpec(mode, predictions=predictions)
    loss = tf1.losses.sparse_softmax_cross_entropy(labels, logits)
    step = tf1.train.get_global_step()
    rate = tf1.train.exponential_decay(0.05, step, 5, 0.9)
    train_op = tf1.train.AdamOptimizer(rate).minimize(loss, global_step=step)
    return estimator.tpu.TPUEstimatorSpec(
        mode, loss=loss, train_op=train_op, eval_metrics=(metric_fn, [labels, logits])
    )


def input_fn(params):
    dataset = tf1.data.Dataset.from_tensor_slices((FEATURES, LABELS))
    return dataset.repeat().batch(params["batch_size"], drop_remainder=True)


def evaluation_input_fn(params):
    """The last of its batches is partial."""
    return tf1.data.Dataset.from_tensor_slices((FEATURES, LABELS)).batch(params["batch_size"])


class LossRecorder(tf1.train.SessionRunHook):
    def begin(self):
        self.losses = []
        self._loss = tf1.losses.get_losses()[0]

    def before_run(self, run_context):
        return tf1.train.SessionRunArgs(self._loss)

    def after_run(self, run_context, run_values):
        self.losses.append(float(run_values.results))


def main(model_dir, max_steps):
    config = estimator.tpu.RunConfig(
        model_dir=model_dir, tf_random_seed=1, tpu_config=estimator.tpu.TPUConfig()
    )
    model = estimator.tpu.TPUEstimator(
        model_fn,
        config=config,
        use_tpu=False,
        train_batch_size=16,
        eval_batch_size=16,
        predict_batch_size=16,
    )
    recorder = LossRecorder()
    model.train(input_fn, max_steps=max_steps, hooks=[recorder])
    metrics = model.evaluate(evaluation_input_fn)
    predictions = list(model.predict(evaluation_input_fn))
    print(
        json.dumps(
            {
                "losses": recorder.losses,
                "metrics": {name: float(value) for name, value in metrics.items()},
                "probabilities": [p["probabilities"].tolist() for p in predictions],
                "variables": {
                    name: model.get_variable_value(name).tolist()
                    for name in model.get_variable_names()
                },
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
