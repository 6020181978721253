"""Graphs that compute the same have one fingerprint, whatever TensorFlow called their functions."""

from __future__ import annotations

import tensorflow as tf

from estimator2strategy.engine.plan.fingerprint import fingerprint
from estimator2strategy.engine.worlds import legacy_world

tf1 = tf.compat.v1


def graph(factor: float) -> tf.Graph:
    with legacy_world(), tf.Graph().as_default() as made:
        x = tf1.placeholder(tf.float32, [], name="x")
        more = lambda i, y: i < 3  # noqa: E731
        _, y = tf1.while_loop(more, lambda i, y: (i + 1, y * factor), [0, x])
        tf1.gradients(y, x)
    return made


def test_loops_are_equal_though_their_conditions_have_numbers():
    first = fingerprint(graph(2.0))
    assert fingerprint(graph(2.0)) == first
    assert fingerprint(graph(3.0)) != first
