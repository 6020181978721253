"""Imported by main.py; TF 1.x too."""

import tensorflow as tf


def double(x):
    assert tf.__version__ == "1.15.5"
    return tf.to_int32(x) * 2


def last_dimension(tensor):
    return [dimension.value for dimension in tensor.shape][-1]


def upsampled(images):
    """A Keras layer of TF 1.15 keeps the dtype of its input."""
    return tf.keras.layers.UpSampling2D()(images)
