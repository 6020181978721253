"""What hooks get of variables that they fetch in before_run: a program of TF 1.15.

    python fetched.py            # TensorFlow 1.15
    e2s run fetched.py           # here

Prints JSON: case -> name of a fetch -> its value at each of three steps; what is logged of the
global step; where a hook stops training that reads the global step; and which steps are summarised.
tests/goldens/fetched.json is its output on TensorFlow 1.15.5. What is computed of a variable
(`slice`) raced with its update there, and came before it in most runs. What a step reads of
resource variables raced in all of them, so there are none but the global step of TPUEstimator.
"""

import glob
import json
import tempfile

import numpy as np
import tensorflow as tf

STEPS = 3


def fetches():
    plain, table = tf.get_variable("plain", []), tf.get_variable("table", [4, 3])
    step = tf.train.get_global_step()
    dense = next(v for v in tf.global_variables() if v.name == "dense/kernel:0")
    return {
        "plain": plain,
        "by name": tf.get_default_graph().get_tensor_by_name("plain:0"),
        "value()": plain.value(),
        "read_value()": plain.read_value(),
        "identity": tf.identity(tf.identity(plain)),
        "plus nothing": plain + 0.0,
        "product": table * 1.0,
        "sum": tf.reduce_sum(table),
        "slice": table[0],
        "cast": tf.cast(step, tf.int32),
        "no cast": tf.cast(step, tf.int64),
        "reshaped": tf.reshape(table, [2, 6]),
        "expanded": tf.expand_dims(table, 0),
        "squeezed": tf.squeeze(tf.expand_dims(table, 0)),
        "gradient stopped": tf.stop_gradient(table),
        "assigned": tf.get_variable("assigned", []),
        "local": tf.local_variables()[0],
        "dense": dense,
        "step": step,
        "identity of the step": tf.identity(step),
    }


class Fetcher(tf.train.SessionRunHook):
    def __init__(self):
        self.found = {}

    def begin(self):
        with tf.variable_scope("", reuse=True):
            self._fetches = fetches()

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self._fetches)

    def after_run(self, run_context, run_values):
        for name, value in run_values.results.items():
            self.found.setdefault(name, []).append(float(np.ravel(value)[0]))


class StopAt(tf.train.SessionRunHook):
    """Stops when the step that it fetched has been reached, as many programs do."""

    def __init__(self, last):
        self._last = last

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(tf.train.get_global_step())

    def after_run(self, run_context, run_values):
        if run_values.results >= self._last:
            run_context.request_stop()


def model_fn(features, labels, mode, params):
    zeros = tf.zeros_initializer()
    variables = [
        tf.get_variable("plain", [], initializer=zeros),
        tf.get_variable("table", [4, 3], initializer=zeros),
    ]
    assigned = tf.get_variable("assigned", [], initializer=zeros, trainable=False)
    collections = [tf.GraphKeys.LOCAL_VARIABLES]
    local = tf.Variable(0.0, collections=collections, trainable=False, name="local")
    output = tf.layers.dense(features, 1, kernel_initializer=zeros, name="dense")
    loss = -tf.add_n([tf.reduce_sum(variable) for variable in [output, *variables]])
    optimizer = tf.train.GradientDescentOptimizer(1.0)
    with tf.control_dependencies([optimizer.minimize(loss, tf.train.get_global_step())]):
        train_op = tf.group(assigned.assign_add(1.0), tf.assign(local, local + 1.0))
    return params["spec"](mode, loss=loss, train_op=train_op)


def input_fn(params):
    return tf.data.Dataset.from_tensors(tf.ones([1, 1])).repeat()


def on_host(folder):
    params = {"spec": tf.estimator.EstimatorSpec}
    config = tf.estimator.RunConfig(save_summary_steps=3)
    return tf.estimator.Estimator(model_fn, folder, config, params)


def by_tpu_estimator(folder):
    """Its global step is a resource variable also where there is no TPU."""
    return tf.contrib.tpu.TPUEstimator(
        model_fn,
        config=tf.contrib.tpu.RunConfig(model_dir=folder, save_summary_steps=3),
        params={"spec": tf.contrib.tpu.TPUEstimatorSpec},
        use_tpu=False,
        train_batch_size=1,
    )


def summarised(make):
    """The steps that have a summary, where each third is asked for and a hook is shown them all."""
    folder = tempfile.mkdtemp()
    make(folder).train(input_fn, steps=11, hooks=[Fetcher()])
    (path,) = glob.glob(folder + "/events*")
    events = tf.train.summary_iterator(path)
    return [event.step for event in events if any(v.tag == "loss" for v in event.summary.value)]


def run(make):
    fetcher = Fetcher()
    make(tempfile.mkdtemp()).train(input_fn, steps=STEPS, hooks=[fetcher])
    stopped = make(tempfile.mkdtemp())
    stopped.train(input_fn, hooks=[StopAt(4)])
    return {
        "fetched": fetcher.found,
        "stopped": int(stopped.get_variable_value("global_step")),
        "summarised": summarised(make),
    }


def main():
    makers = {"Estimator": on_host, "TPUEstimator": by_tpu_estimator}
    print(json.dumps({name: run(make) for name, make in makers.items()}, sort_keys=True))


if __name__ == "__main__":
    main()
