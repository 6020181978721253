"""Two updates of one variable in a step: a program of TF 1.15.

    python order_of_updates.py 10   # TensorFlow 1.15: ten runs of each case
    e2s run order_of_updates.py     # here

Prints JSON: kind of variables -> case -> what the variable is after ten steps, once for each run.
tests/goldens/order_of_updates.json is its output on TensorFlow 1.15.5. Threads race there: some
cases have several results.
"""

import json
import sys
import tempfile

import numpy as np
import tensorflow as tf

VARIANCE = "d/bn/moving_variance"


def batch_norm(x, name="bn"):
    return tf.layers.batch_normalization(x, momentum=0.9, training=True, name=name)


def twice(x):
    """A batch norm that two inputs share."""
    with tf.variable_scope("d", reuse=tf.AUTO_REUSE):
        return tf.reduce_mean(batch_norm(x)) + tf.reduce_mean(batch_norm(x * 0.0))


def gan(x):
    """A discriminator that is called on real and on made examples."""

    def discriminator(x):
        with tf.variable_scope("d", reuse=tf.AUTO_REUSE):
            hidden = batch_norm(tf.layers.dense(x, 8, name="hidden") * 0.0)
            return tf.reduce_mean(tf.layers.dense(hidden, 1, name="out"))

    with tf.variable_scope("g"):
        made = tf.layers.dense(tf.layers.dense(x, 3), 3)
    return discriminator(x) - discriminator(made)


def accumulated(x):
    """Sums that are added to in place: no order of theirs can be told."""
    total = tf.get_variable(VARIANCE, [], initializer=tf.zeros_initializer(), trainable=False)
    for part in (tf.reduce_mean(x) + 1.0, tf.reduce_mean(x) + 2.0):
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(total, part))
    return tf.reduce_mean(x) * tf.get_variable("w", [])


def assigned(x):
    """A sum that is read, added to and assigned, by a short way and then by a long one."""
    total = tf.get_variable(VARIANCE, [], initializer=tf.zeros_initializer(), trainable=False)
    long = x
    for _ in range(100):
        long = tf.tanh(long)
    for part in (1.0, tf.reduce_mean(long) + 2.0):
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign(total, total + part))
    return tf.reduce_mean(x) * tf.get_variable("w", [])


CASES = {"twice": twice, "gan": gan, "accumulated": accumulated, "assigned": assigned}


def trained(build, resource, no_op):
    def model_fn(features, mode):
        tf.get_variable_scope().set_use_resource(resource)
        with tf.control_dependencies([tf.no_op()] if no_op else []):
            loss = build(features)
            with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
                optimizer = tf.train.GradientDescentOptimizer(0.0)
                train_op = optimizer.minimize(loss, tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn():
        return tf.data.Dataset.from_tensors(np.zeros([4, 3], np.float32)).repeat()

    estimator = tf.estimator.Estimator(model_fn, tempfile.mkdtemp())
    estimator.train(input_fn, steps=10)
    return round(float(np.ravel(estimator.get_variable_value(VARIANCE))[0]), 5)


def results(runs=1):
    return {
        kind: {
            name + (", after a no-op" if no_op else ""): sorted(
                {trained(build, kind == "resource", no_op) for _ in range(runs)}
            )
            for name, build in CASES.items()
            for no_op in (False, True)
        }
        for kind in ("reference", "resource")
    }


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.ERROR)
    print(json.dumps(results(int([*sys.argv, "1"][1])), indent=1))
