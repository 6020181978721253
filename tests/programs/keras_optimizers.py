"""What optimizers of Keras count in a model_fn: a program of TF 1.15.

    python keras_optimizers.py            # TensorFlow 1.15
    e2s run keras_optimizers.py           # here

Prints JSON: case -> `optimizer.iterations` after each step, the weights then, and what a checkpoint
holds. tests/goldens/keras_optimizers.json is its output on TensorFlow 1.15.5.
"""

import json
import sys
import tempfile

import tensorflow as tf

STEPS = 3

OPTIMIZERS = {
    "SGD": lambda: tf.keras.optimizers.SGD(0.125, momentum=0.5, decay=0.25),
    "Adam": lambda: tf.keras.optimizers.Adam(0.125, amsgrad=True),
    "Nadam": lambda: tf.keras.optimizers.Nadam(0.125),
}


def get_updates(optimizer, loss, weights, step):
    return tf.group(step.assign_add(1), *optimizer.get_updates(loss, weights))


def apply_gradients(optimizer, loss, weights, step):
    pairs = zip(tf.gradients(loss, weights), weights)
    with tf.control_dependencies([optimizer.apply_gradients(pairs)]):
        return step.assign_add(1)


def counts_global_steps(optimizer, loss, weights, step):
    optimizer.iterations = step
    return optimizer.apply_gradients(zip(optimizer.get_gradients(loss, weights), weights))


WAYS = (get_updates, apply_gradients, counts_global_steps)
CASES = {
    name + " " + way.__name__: (optimizer, way)
    for name, optimizer in sorted(OPTIMIZERS.items())
    for way in WAYS
}


class Asking(tf.train.SessionRunHook):
    """Asks for tensors after each step."""

    def __init__(self, tensors):
        self._tensors = tensors
        self.values = []

    def after_run(self, run_context, run_values):
        values = run_context.session.run(self._tensors())
        self.values.append([value.tolist() for value in values])


def run(case):
    """What `optimizer.iterations` and the weights are after each step, and what is saved."""
    make, way = CASES[case]
    kept = []

    def model_fn(features, labels, mode):
        tf.get_variable_scope().set_use_resource(True)  # these optimizers know no others
        weight = tf.get_variable("weight", [2], initializer=tf.ones_initializer())
        bias = tf.get_variable("bias", [], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(features * weight + bias - labels))
        optimizer = make()
        train_op = way(optimizer, loss, [weight, bias], tf.train.get_global_step())
        kept[:] = [optimizer.iterations, weight, bias]
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn():
        features, labels = [[1.0, 2.0], [0.5, -1.0]], [[0.0, 1.0], [3.0, 2.0]]
        return tf.data.Dataset.from_tensor_slices((features, labels)).repeat().batch(1)

    asking = Asking(lambda: kept)
    model = tf.estimator.Estimator(model_fn, tempfile.mkdtemp())
    model.train(input_fn, hooks=[asking], steps=STEPS)
    names = sorted(model.get_variable_names())
    return {
        "steps": asking.values,
        "saved": {name: model.get_variable_value(name).tolist() for name in names},
    }


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.ERROR)
    json.dump({case: run(case) for case in sorted(CASES)}, sys.stdout, indent=1, sort_keys=True)
