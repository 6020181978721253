"""A legacy program that reads from queues, or the same data from a Dataset; prints its steps/s.

python queue_program.py lines|records|arrays|dataset
"""

import logging
import os
import sys
import tempfile

import numpy as np
import tensorflow as tf

BATCH, EVERY, STEPS = 32, 250, 3001
ROWS = np.random.RandomState(0).uniform(size=[2000, 8]).astype("float32")


def _lines(folder):
    path = os.path.join(folder, "lines.csv")
    np.savetxt(path, ROWS, fmt="%.6f", delimiter=",")
    _, line = tf.TextLineReader().read(tf.train.string_input_producer([path]))
    return tf.train.batch([tf.stack(tf.decode_csv(line, [[0.0]] * 8))], BATCH, capacity=1000)


def _records_file(folder):
    path = os.path.join(folder, "rows.records")
    with tf.python_io.TFRecordWriter(path) as writer:
        for row in ROWS:
            example = tf.train.Example()
            example.features.feature["x"].float_list.value.extend(row)
            writer.write(example.SerializeToString())
    return path


FEATURES = {"x": tf.FixedLenFeature([8], tf.float32)}


def _records(folder):
    names = tf.train.string_input_producer([_records_file(folder)])
    _, record = tf.TFRecordReader().read(names)
    row = tf.parse_single_example(record, FEATURES)["x"]
    return tf.train.shuffle_batch([row], BATCH, 2000, 1000, num_threads=2)


def _arrays(folder):
    (row,) = tf.train.slice_input_producer([ROWS])
    return tf.train.batch([row], BATCH, capacity=1000)


def _dataset(folder):
    records = tf.data.TFRecordDataset(_records_file(folder)).shuffle(1000).repeat().batch(BATCH)
    return records.map(lambda batch: tf.parse_example(batch, FEATURES)["x"]).prefetch(2)


INPUTS = {"lines": _lines, "records": _records, "arrays": _arrays, "dataset": _dataset}


def model_fn(features, labels, mode):
    del labels
    hidden = tf.layers.dense(features, 32, tf.nn.relu)
    loss = tf.reduce_mean(tf.square(tf.layers.dense(hidden, 8) - features))
    train_op = tf.train.GradientDescentOptimizer(0.01).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def main():
    """Prints the median of the speeds that the training logs, the first of them aside."""
    tf.logging.set_verbosity(tf.logging.INFO)
    said = []
    handler = logging.StreamHandler(sys.stderr)
    handler.emit = lambda record: said.append(record.getMessage())
    logging.getLogger("tensorflow").addHandler(handler)
    with tempfile.TemporaryDirectory() as folder:
        config = tf.estimator.RunConfig(save_summary_steps=None, log_step_count_steps=EVERY)
        model = tf.estimator.Estimator(model_fn, os.path.join(folder, "model"), config)
        model.train(lambda: INPUTS[sys.argv[1]](folder), steps=STEPS)
    speeds = [float(line.split()[-1]) for line in said if line.startswith("global_step/sec")]
    print("steps/s:", np.median(speeds[1:]))


main()
