"""What conds and loops do to variables happens, though nothing takes their results."""

from __future__ import annotations

import pytest
import tensorflow as tf

from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay.engines import Step
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.replay.runs import Runs
from estimator2strategy.engine.replay.session import ReplaySession
from estimator2strategy.engine.replay.state import State
from estimator2strategy.engine.worlds import legacy_world, recording

tf1 = tf.compat.v1


def false():
    return tf.constant(False)


def in_a_cond(even, count):
    def counted():
        with tf.control_dependencies([tf1.assign_add(count, 1)]):
            return tf.constant(True)

    return tf.cond(even, counted, false)


def in_a_cond_in_a_cond(even, count):
    return tf.cond(even, lambda: in_a_cond(even, count), false)


def in_a_cond_that_waits_for_a_cond(even, count):
    def waited():
        with tf.control_dependencies([in_a_cond(even, count)]):
            return tf.constant(True)

    return tf.cond(even, waited, false)


def in_a_cond_of_ops(even, count):
    return tf.cond(even, lambda: tf1.assign_add(count, 1).op, tf.no_op)


def in_a_loop(even, count):
    once = tf.cast(even, tf.int32)

    def body(i):
        with tf.control_dependencies([tf1.assign_add(count, 1)]):
            return i + 1

    return tf.while_loop(lambda i: i < once, body, [tf.constant(0)])


@pytest.mark.oldest
@pytest.mark.parametrize(
    "counting",
    [
        in_a_cond,
        in_a_cond_in_a_cond,
        in_a_cond_that_waits_for_a_cond,
        in_a_cond_of_ops,
        in_a_loop,
    ],
)
@pytest.mark.parametrize("block", [1, 6])
def test_side_effects_happen_as_often_as_they_should(counting, block):
    with legacy_world(), recording(seed=None) as graph:
        steps = tf1.get_variable("steps", [], tf.int32, tf1.zeros_initializer())
        count = tf1.get_variable("count", [], tf.int32, tf1.zeros_initializer())
        even = tf.equal(tf1.assign_add(steps, 1) % 2, 0)
        step = tf.group(counting(even, count))
        init = tf1.global_variables_initializer()
    recorded = RecordedGraph(graph)
    session = ReplaySession(recorded.graph, Runs(Replay(recorded, State(recorded))))
    session.run(init)
    if block > 1:
        session.expect(Step(step.name), block)
    for _ in range(6 // block):
        session.run(step)
    assert (session.value(steps), session.value(count)) == (6, 3)
    session.close()
