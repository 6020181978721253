"""DeepFM of deepctr, as large as that of its examples: 39 columns from TFRecords, 256 rows."""

import os
import sys
import tempfile

import numpy as np
import tensorflow as tf
import turns
from deepctr.estimator import DeepFMEstimator
from deepctr.estimator.inputs import input_fn_tfrecord

EVERY, BATCH, ROWS, WORDS = 100, 256, 4096, 1000
words = [f"word_{i}" for i in range(26)]
numbers = [f"number_{i}" for i in range(13)]
random = np.random.RandomState(0)
folder = tempfile.mkdtemp()
records = os.path.join(folder, "rows.tfrecords")

with tf.io.TFRecordWriter(records) as writer:
    for _ in range(ROWS):
        example = tf.train.Example()
        for name in words:
            example.features.feature[name].int64_list.value.append(random.randint(WORDS))
        for name in (*numbers, "label"):
            example.features.feature[name].float_list.value.append(random.randint(2))
        writer.write(example.SerializeToString())

spec = {name: tf.io.FixedLenFeature([1], tf.int64) for name in words}
spec.update({name: tf.io.FixedLenFeature([1], tf.float32) for name in (*numbers, "label")})
ids = [tf.feature_column.categorical_column_with_identity(name, WORDS) for name in words]
numeric = [tf.feature_column.numeric_column(name) for name in numbers]
estimator = DeepFMEstimator(
    [*ids, *numeric],
    [*(tf.feature_column.embedding_column(column, 4) for column in ids), *numeric],
    model_dir=os.path.join(folder, "model"),
    config=tf.estimator.RunConfig(tf_random_seed=1, log_step_count_steps=EVERY),
)
turns.start(EVERY)
estimator.train(
    input_fn_tfrecord(records, spec, "label", batch_size=BATCH, num_epochs=None),
    steps=EVERY * int(sys.argv[1]) + 1,
)
