"""Writes scikit-learn's 1,797 handwritten digits as TFRecords: 1,437 to train, 360 to test.

    python make_data.py --data_dir=/tmp/digits

Works with TensorFlow 1.15 and 2.x, and writes the same bytes with each: the split is fixed and
the records are serialized deterministically.
"""

import argparse
import os

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

TRAIN_EXAMPLES = 1437


def write_digits(data_dir):
    """Writes train.tfrecords and test.tfrecords into `data_dir`; returns their paths."""
    os.makedirs(data_dir, exist_ok=True)
    paths = [os.path.join(data_dir, name) for name in ("train.tfrecords", "test.tfrecords")]
    for path, (images, labels) in zip(paths, split_digits()):
        write_records(path, images, labels)
    return paths


def split_digits():
    """Returns (images, labels) to train and (images, labels) to test; images are Nx8x8 uint8."""
    digits = load_digits()
    order = np.random.RandomState(0).permutation(len(digits.images))
    images = digits.images[order].astype(np.uint8)  # values 0 to 16
    labels = digits.target[order]
    train, test = slice(None, TRAIN_EXAMPLES), slice(TRAIN_EXAMPLES, None)
    return (images[train], labels[train]), (images[test], labels[test])


def write_records(path, images, labels):
    with tf.io.TFRecordWriter(path) as writer:
        for image, label in zip(images, labels):
            writer.write(digit_example(image, label).SerializeToString(deterministic=True))


def digit_example(image, label):
    """Returns the tf.train.Example of one digit: `image_raw` (64 bytes, row by row), `label`."""
    return tf.train.Example(
        features=tf.train.Features(
            feature={
                "image_raw": tf.train.Feature(
                    bytes_list=tf.train.BytesList(value=[image.tobytes()])
                ),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(label)])),
            }
        )
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data_dir", required=True, help="directory to write to")
    for written in write_digits(parser.parse_args().data_dir):
        print(written)
