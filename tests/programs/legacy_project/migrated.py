"""Imported by main.py; TF2 code, as its import of estimator2strategy tells."""

import tensorflow as tf

import estimator2strategy.tf1 as tf1


def observed():
    shape = tf.constant([[1, 2]]).shape
    return {
        "shape": [type(dimension).__name__ for dimension in shape],
        "contrib": hasattr(tf, "contrib"),
        "keras": tf.keras.__name__,
        "same types": tf.float32 is tf1.float32,
    }
