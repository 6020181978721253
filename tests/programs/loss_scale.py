"""Optimizers that scale the loss, in a model_fn: a program of TF 1.15.

    python loss_scale.py            # TensorFlow 1.15
    e2s run loss_scale.py           # here

Prints JSON: case -> the values that a checkpoint holds in the end. The gradients of one batch are
infinite in the cases whose scale is dynamic. tests/goldens/loss_scale.json is its output on
TensorFlow 1.15.5.
"""

import json
import sys
import tempfile

import numpy as np
import tensorflow as tf

SCALES = {
    "dynamic": lambda: "dynamic",
    "number": lambda: 8,
    "fixed": lambda: tf.train.experimental.FixedLossScale(4.0),
}


def by_get_gradients(optimizer, loss, weights):
    return zip(optimizer.get_gradients(loss, weights), weights)


def by_scaled_loss(optimizer, loss, weights):
    gradients = tf.gradients(optimizer.get_scaled_loss(loss), weights)
    return zip(optimizer.get_unscaled_gradients(gradients), weights)


WAYS = (by_get_gradients, by_scaled_loss)
CASES = {name + " " + way.__name__: (name, way) for name in sorted(SCALES) for way in WAYS}


def run(case):
    """The values of a checkpoint after training, by name."""
    name, way = CASES[case]

    def model_fn(features, labels, mode):
        layer = tf.keras.layers.Dense(1, kernel_initializer=tf.keras.initializers.constant(0.5))
        loss = tf.reduce_mean(tf.square(layer(features) - labels))
        optimizer = tf.keras.mixed_precision.experimental.LossScaleOptimizer(
            tf.keras.optimizers.SGD(0.125, momentum=0.5), SCALES[name]()
        )
        optimizer.iterations = tf.train.get_or_create_global_step()
        train_op = optimizer.apply_gradients(way(optimizer, loss, layer.trainable_weights))
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn():
        rows = [[1.0, 2.0]] * 3 + [[1e30, 1.0]] * (name == "dynamic") + [[2.0, 1.0]] * 5
        labels = np.ones([len(rows), 1], np.float32)
        return tf.data.Dataset.from_tensor_slices((np.float32(rows), labels)).batch(1)

    model = tf.estimator.Estimator(model_fn, tempfile.mkdtemp())
    model.train(input_fn)
    return {name: model.get_variable_value(name).tolist() for name in model.get_variable_names()}


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.ERROR)
    json.dump({case: run(case) for case in sorted(CASES)}, sys.stdout, indent=1, sort_keys=True)
