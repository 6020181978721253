"""DeepFM of deepctr, on a numeric and a hashed column."""

import json
import tempfile

import numpy as np
import tensorflow as tf
from deepctr.estimator import DeepFMEstimator

random = np.random.RandomState(0)
price = random.rand(64).astype(np.float32)
word = random.randint(0, 4, 64)
labels = (price + word / 4 > 1).astype(np.float32)


def input_fn():
    return tf.data.Dataset.from_tensor_slices(({"price": price, "word": word}, labels)).batch(16)


words = tf.feature_column.categorical_column_with_identity("word", 4)
numbers = tf.feature_column.numeric_column("price")
estimator = DeepFMEstimator(
    [numbers, words],
    [numbers, tf.feature_column.embedding_column(words, 4)],
    dnn_hidden_units=(8,),
    model_dir=tempfile.mkdtemp(),
    config=tf.estimator.RunConfig(tf_random_seed=1),
)
estimator.train(input_fn)
print("RESULT", json.dumps({k: float(v) for k, v in sorted(estimator.evaluate(input_fn).items())}))
