"""Adversarial regularization of an Estimator by neural-structured-learning."""

import json
import tempfile

import neural_structured_learning as nsl
import numpy as np
import tensorflow as tf
from neural_structured_learning.estimator.adversarial_regularization import (
    add_adversarial_regularization,
)

random = np.random.RandomState(0)
rows = random.rand(64, 2).astype(np.float32)
labels = (rows.sum(1) > 1).astype(np.int32)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": rows}, labels)).batch(16)


# The classes of TensorFlow 2 in any world: their loss is a mean.
plain = tf.compat.v2.estimator.LinearClassifier(
    [tf.feature_column.numeric_column("x", shape=(2,))],
    model_dir=tempfile.mkdtemp(),
    config=tf.estimator.RunConfig(tf_random_seed=1),
)
estimator = add_adversarial_regularization(
    plain,
    optimizer_fn=lambda: tf.compat.v1.train.GradientDescentOptimizer(0.1),
    adv_config=nsl.configs.make_adv_reg_config(multiplier=0.2, adv_step_size=0.05),
)
estimator.train(input_fn)
print("RESULT", json.dumps({k: float(v) for k, v in sorted(estimator.evaluate(input_fn).items())}))
