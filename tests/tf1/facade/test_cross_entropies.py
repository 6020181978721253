"""Cross entropies take labels and logits by their names only, as in TF 1.15."""

from __future__ import annotations

import pytest
import tensorflow as tf

import estimator2strategy.tf1 as tf1

NAMES = [
    "sigmoid_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits",
    "sparse_softmax_cross_entropy_with_logits",
]


@pytest.mark.parametrize("name", NAMES)
def test_arguments_by_position_are_refused(name):
    # Today's TensorFlow takes the first for the labels, which in TF 0.x were the second.
    with tf.Graph().as_default(), pytest.raises(ValueError, match=f"Only call `{name}` with named"):
        getattr(tf1.nn, name)(tf.constant([[2.0, 3.0]]), tf.constant([[0.0, 1.0]]))


@pytest.mark.parametrize("name", NAMES)
def test_arguments_by_name_give_the_loss(name):
    with tf.Graph().as_default():
        labels = tf.constant([1] if name.startswith("sparse") else [[0.0, 1.0]])
        logits = tf.constant([[2.0, 3.0]])
        by_name = getattr(tf1.nn, name)(labels=labels, logits=logits)
        # None is the place that TF 1.15 kept free.
        by_position = getattr(tf1.nn, name)(None, labels, logits)
        with tf1.Session() as session:
            assert session.run(by_name).tolist() == session.run(by_position).tolist()
