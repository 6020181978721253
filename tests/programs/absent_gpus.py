"""Trains on GPUs that the machine does not have, as TF 1.15 let a program do."""

import json
import sys

import numpy as np
import tensorflow as tf

STRATEGIES = {
    "public": lambda: tf.distribute.MirroredStrategy(["/gpu:7", "/gpu:8"]),
    "v2": lambda: tf.compat.v2.distribute.MirroredStrategy(["gpu:7", "/device:GPU:8"]),
    "contrib": lambda: tf.contrib.distribute.MirroredStrategy(num_gpus=2),
}


def model_fn(features, labels, mode):
    weight = tf.get_variable("weight", [], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean((features * weight - labels) ** 2)
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    ones = np.ones([4], np.float32)
    return tf.data.Dataset.from_tensor_slices((ones, 2 * ones)).batch(2).repeat()


tf.config.experimental.list_logical_devices()  # starts the devices, in graph mode
for name in sys.argv[1:]:
    config = tf.estimator.RunConfig(train_distribute=STRATEGIES[name]())
    estimator = tf.estimator.Estimator(model_fn, config=config)
    estimator.train(input_fn, steps=2)
    print(json.dumps([name, float(estimator.get_variable_value("weight"))]))
