"""Large constants are given to programs, which hold small ones."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy.engine.replay.engines import Request
from estimator2strategy.engine.replay.session import ReplaySession
from estimator2strategy.engine.worlds import legacy_world, modern_world, recording

tf1 = tf.compat.v1

LARGE = np.arange(2**17, dtype=np.float32)
SMALL = LARGE[:8]
WORDS = np.array([f"word {i}" for i in range(10_000)])


def bytes_held(session, op):
    with modern_world():
        function = session.runs.function(Request((), (op.name,)))
    return sum(node.ByteSize() for node in function.graph.as_graph_def().node)


@pytest.mark.parametrize(("value", "most"), [(LARGE, 2**13), (WORDS, 2**13), (SMALL, 2**13)])
def test_an_input_starts_without_its_examples_in_the_program(value, most):
    with legacy_world(), recording(None) as graph:
        dataset = tf.data.Dataset.from_tensor_slices(value)
        iterator = tf1.data.make_initializable_iterator(dataset)
        element = iterator.get_next()
        session = ReplaySession(graph)
        session.run(iterator.initializer)
        got = [session.run(element) for _ in range(3)]
        expected = value[:3].astype("S") if value is WORDS else value[:3]
        np.testing.assert_array_equal(got, expected)
        assert bytes_held(session, iterator.initializer) < most


def test_a_large_initial_value_is_given_too():
    with legacy_world(), recording(None) as graph:
        table = tf1.get_variable("table", initializer=tf.constant(LARGE))
        session = ReplaySession(graph)
        session.run(table.initializer)
        np.testing.assert_array_equal(session.run(table), LARGE)
        assert bytes_held(session, table.initializer) < 2**13


def test_a_value_that_was_given_does_not_change_with_its_variable():
    with legacy_world(), recording(None) as graph:
        table = tf1.get_variable("table", initializer=tf.constant(LARGE))
        session = ReplaySession(graph)
        session.run(table.initializer)
        session.run(tf1.assign_add(table, tf.ones_like(table)))
        session.run(tf1.scatter_update(table, [0], [5.0]))
        session.run(table.initializer)
        np.testing.assert_array_equal(session.run(table), LARGE)


def test_a_feed_takes_the_place_of_a_large_constant():
    with legacy_world(), recording(None) as graph:
        constant = tf.constant(LARGE)
        first = constant[0]
        session = ReplaySession(graph)
        assert session.run(first, {constant: LARGE + 3}) == 3
