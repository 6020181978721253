"""An optimizer of `tf.train` that takes what it took in TF 1.15."""

from __future__ import annotations

import numbers
from typing import Any

import tensorflow as tf


class FtrlOptimizer(tf.compat.v1.train.FtrlOptimizer):
    """TensorFlow's own, also with a whole number for its learning rate.

    TensorFlow 2 compares the rate with a small fraction, which an integer tensor refuses.
    """

    def __init__(self, learning_rate: Any, *args: Any, **kwargs: Any) -> None:
        if isinstance(learning_rate, numbers.Integral):
            learning_rate = float(learning_rate)
        super().__init__(learning_rate, *args, **kwargs)
