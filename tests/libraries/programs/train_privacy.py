"""DNNClassifier of tensorflow-privacy, with clipped gradients and no noise."""

import json
import tempfile

import numpy as np
import tensorflow as tf
import tensorflow_privacy as tfp

random = np.random.RandomState(0)
rows = random.rand(64, 2).astype(np.float32)
labels = (rows.sum(1) > 1).astype(np.int32)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"x": rows}, labels)).batch(16).repeat(5)


estimator = tfp.DNNClassifier(
    hidden_units=[4],
    feature_columns=[tf.feature_column.numeric_column("x", [2])],
    optimizer=lambda: tfp.DPKerasSGDOptimizer(
        l2_norm_clip=1.0, noise_multiplier=0.0, num_microbatches=1, learning_rate=0.1
    ),
    config=tf.estimator.RunConfig(tf_random_seed=1, model_dir=tempfile.mkdtemp()),
)
estimator.train(input_fn)
print("RESULT", json.dumps({k: float(v) for k, v in sorted(estimator.evaluate(input_fn).items())}))
