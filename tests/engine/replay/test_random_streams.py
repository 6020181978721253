"""A seeded random op draws, over all functions that it is part of, what it drew in a Session."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay.engines import Step
from estimator2strategy.engine.replay.replicas import ReplicatedModel
from estimator2strategy.engine.replay.runs import Runs
from estimator2strategy.engine.replay.session import ReplaySession
from estimator2strategy.engine.replay.state import State
from tests.strategies import mirrored

tf1 = tf.compat.v1

OPS = {
    "uniform": lambda shape, **kw: tf1.random_uniform(shape, **kw),
    "uniform float64": lambda shape, **kw: tf1.random_uniform(shape, dtype=tf.float64, **kw),
    "uniform int32": lambda shape, **kw: tf1.random_uniform(shape, -3, 99, tf.int32, **kw),
    "uniform int64": lambda shape, **kw: tf1.random_uniform(shape, -3, 99, tf.int64, **kw),
    "normal": lambda shape, **kw: tf1.random_normal(shape, **kw),
    "normal float16": lambda shape, **kw: tf1.random_normal(shape, dtype=tf.float16, **kw),
    "truncated normal": lambda shape, **kw: tf1.truncated_normal(shape, **kw),
}


@pytest.mark.oldest
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("seed", [5, -7, 2**40 + 3])
def test_runs_draw_what_a_session_draws(op, seed):
    with tf.Graph().as_default() as graph:
        drawn = OPS[op]([3, 7], seed=seed)
        with tf1.Session() as real:
            expected = [real.run(drawn) for _ in range(3)]
    session = ReplaySession(graph)
    for values in expected:
        np.testing.assert_array_equal(session.run(drawn), values)


def test_seed_of_the_graph_counts():
    with tf.Graph().as_default() as graph:
        tf1.set_random_seed(3)
        drawn = tf1.nn.dropout(tf.ones([50]), rate=0.5)
        with tf1.Session() as real:
            expected = [real.run(drawn) for _ in range(2)]
    session = ReplaySession(graph)
    for values in expected:
        np.testing.assert_array_equal(session.run(drawn), values)


def test_stream_goes_on_whatever_is_fetched_beside_it():
    with tf.Graph().as_default() as graph:
        first, second = tf1.random_uniform([4], seed=1), tf1.random_normal([2], seed=2)
        fetches = [first, [first, second], second, [second, first], first + 1]
        with tf1.Session() as real:
            expected = [real.run(fetch) for fetch in fetches]
    session = ReplaySession(graph)
    for fetch, values in zip(fetches, expected):
        tf.nest.map_structure(np.testing.assert_array_equal, session.run(fetch), values)


def test_place_moves_by_what_was_drawn_where_sizes_vary():
    with tf.Graph().as_default() as graph:
        size = tf1.placeholder(tf.int32, [])
        drawn = tf1.random_uniform([size, 2], seed=4)
        sizes = [1, 5, 0, 3]
        with tf1.Session() as real:
            expected = [real.run(drawn, {size: n}) for n in sizes]
    session = ReplaySession(graph)
    for n, values in zip(sizes, expected):
        np.testing.assert_array_equal(session.run(drawn, {size: n}), values)


def test_steps_of_a_block_are_runs():
    with tf.Graph().as_default() as graph:
        drawn = tf1.random_uniform([3], seed=1)
        step = drawn.op
        with tf1.Session() as real:
            expected = [real.run(drawn) for _ in range(6)]
    session = ReplaySession(graph)
    session.expect(Step(step.name), 5)
    np.testing.assert_array_equal(session.run([step, drawn])[1], expected[4])
    session.expect(Step(step.name), 1)
    np.testing.assert_array_equal(session.run([step, drawn])[1], expected[5])


def test_step_without_input_draws_nothing():
    with tf.Graph().as_default() as graph:
        iterator = tf1.data.make_initializable_iterator(tf.data.Dataset.range(2))
        fetches = [iterator.get_next(), tf1.random_uniform([3], seed=1)]
        noise = fetches[1]
        with tf1.Session() as real:
            expected = [real.run(noise) for _ in range(3)]
    session = ReplaySession(graph)
    session.run(iterator.initializer)
    session.run(fetches)
    session.run(fetches)
    with pytest.raises(tf.errors.OutOfRangeError):
        session.run(fetches)
    np.testing.assert_array_equal(session.run(noise), expected[2])


def test_op_without_a_seed_draws_anew_in_each_session():
    with tf.Graph().as_default() as graph:
        drawn = tf1.random_uniform([4])
    values = [ReplaySession(graph).run(drawn).tolist() for _ in range(2)]
    assert values[0] != values[1]


def test_replicas_have_streams_of_their_own_and_the_first_has_the_sessions():
    strategy = mirrored(2)
    with tf.Graph().as_default() as graph:
        drawn = tf1.random_uniform([4], seed=1)
        with tf1.Session() as real:
            expected = [real.run(drawn) for _ in range(2)]
    recorded = RecordedGraph(graph)
    state = State(recorded, strategy)
    model = ReplicatedModel(strategy, feeds=(), outputs=(drawn.name,))
    step = tf.function(lambda: model.trace(recorded, state, [])[0], autograph=False)
    again = tf.function(lambda: model.trace(recorded, state, [])[0], autograph=False)
    (first, other), (first_again, other_again) = step(), again()
    np.testing.assert_array_equal([first, first_again], expected)
    drawn_by_all = [tuple(part.numpy()) for part in (first, other, first_again, other_again)]
    assert len(set(drawn_by_all)) == 4


def test_session_that_is_used_again_begins_anew():
    with tf.Graph().as_default() as graph:
        drawn = tf1.random_uniform([4], seed=1)
    session = ReplaySession(graph)
    session.keep(Runs.revive)
    first, _ = session.run(drawn), session.run(drawn)
    session.close()
    np.testing.assert_array_equal(session.run(drawn), first)


def test_session_goes_on_from_the_places_of_another():
    with tf.Graph().as_default() as graph:
        first, second = tf1.random_uniform([4], seed=1), tf1.random_normal([2], seed=2)
        with tf1.Session() as real:
            expected = [real.run([first, second]) for _ in range(3)]
    old = ReplaySession(graph)
    old.run([first, second])
    old.run([first, second])
    new = ReplaySession(graph)
    new.run(first)
    new.state.move_random(old.state.random_places())
    assert new.state.random_places() == old.state.random_places()
    np.testing.assert_array_equal(new.run(second), expected[2][1])
    np.testing.assert_array_equal(new.run(first), expected[2][0])
