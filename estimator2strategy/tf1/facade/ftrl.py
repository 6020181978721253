"""`tf.train.FtrlOptimizer`, which takes what it took in TF 1.15."""

from __future__ import annotations

import numbers
from typing import Any

import tensorflow as tf

from estimator2strategy.tf1.facade.stand_ins import class_of_tf115

_Ftrl = tf.compat.v1.train.FtrlOptimizer


def _made(learning_rate: Any, *args: Any, **kwargs: Any) -> tf.compat.v1.train.Optimizer:
    """Makes TensorFlow's own, also with a whole number for its learning rate.

    TensorFlow 2 compares the rate with a small fraction, which an integer tensor refuses.
    """
    if isinstance(learning_rate, numbers.Integral):
        learning_rate = float(learning_rate)
    return _Ftrl(learning_rate, *args, **kwargs)


FtrlOptimizer = class_of_tf115(_Ftrl, _made)
