"""What hooks get of variables after `disable_v2_behavior()`: a program of TF 2.

    python without_v2.py          # TensorFlow 2.15, and here

Prints JSON: the fetches of each of three steps, and where a hook stops that reads the global step.
tests/goldens/without_v2.json is its output on TensorFlow 2.15.1.
"""

import json
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf

try:
    estimator = tf.estimator
except AttributeError:
    from estimator2strategy import estimator

tf.disable_v2_behavior()


class Fetcher(tf.train.SessionRunHook):
    def __init__(self):
        self.found = []

    def begin(self):
        with tf.variable_scope("", reuse=True):
            plain = tf.get_variable("plain", [])
        self._fetches = {
            "plain": plain,
            "by name": "plain:0",
            "read_value()": plain.read_value(),
            "identity": tf.identity(plain),
            "step": tf.train.get_global_step(),
            "step by name": "global_step:0",
        }

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._fetches)

    def after_run(self, run_context, run_values):
        results = run_values.results
        self.found.append({name: float(np.ravel(results[name])[0]) for name in results})


class StopAt(tf.train.SessionRunHook):
    def before_run(self, run_context):
        return tf.train.SessionRunArgs(tf.train.get_global_step())

    def after_run(self, run_context, run_values):
        if run_values.results >= 4:
            run_context.request_stop()


def model_fn(features, labels, mode):
    plain = tf.get_variable("plain", [], initializer=tf.zeros_initializer())
    loss = -plain * tf.reduce_sum(features)
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    return tf.data.Dataset.from_tensors(tf.ones([1])).repeat()


def main():
    fetcher = Fetcher()
    estimator.Estimator(model_fn, tempfile.mkdtemp()).train(input_fn, hooks=[fetcher], steps=3)
    stopped = estimator.Estimator(model_fn, tempfile.mkdtemp())
    stopped.train(input_fn, hooks=[StopAt()])
    step = int(stopped.get_variable_value("global_step"))
    print(json.dumps({"fetched": fetcher.found, "stopped": step}, sort_keys=True))


if __name__ == "__main__":
    main()
