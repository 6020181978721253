"""Metric classes of tf-keras that heads use; imported late, because tf-keras is slow to import."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tf_keras


class AccuracyBaseline(tf_keras.metrics.Mean):
    """Accuracy of always predicting the more frequent one of two classes."""

    def result(self) -> tf.Tensor:
        more = tf.maximum(self.total, self.count - self.total)
        return tf.math.divide_no_nan(more, self.count)


def find(name: str) -> Any:
    """A metric class by its name, from here or from tf-keras."""
    return globals().get(name) or getattr(tf_keras.metrics, name)
