"""The variable that is read after each block of steps comes with the block's results."""

from __future__ import annotations

import pytest
import tensorflow as tf

from estimator2strategy.engine.replay.engines import Step
from estimator2strategy.engine.replay.session import ReplaySession
from estimator2strategy.engine.worlds import legacy_world, recording

tf1 = tf.compat.v1


@pytest.fixture
def counting():
    """A session, its counter, the step that adds one, a read, and an op that sets it to 100."""
    with legacy_world(), recording(seed=None) as graph:
        count = tf1.get_variable("count", [], tf.int64, tf1.zeros_initializer())
        step = tf1.assign_add(count, 1).op
        read = count.value()
        to_hundred = tf1.assign(count, 100).op
    session = ReplaySession(graph)
    session.run(count.initializer)
    session.expect(Step(step.name, counter=count.handle.op.name), 5)
    return session, count, step, read, to_hundred


def test_it_is_the_value_after_the_block(counting, monkeypatch):
    session, count, step, read, _ = counting
    session.run(step)
    with monkeypatch.context() as patched:
        patched.delattr(tf.raw_ops, "ReadVariableOp")  # nothing is read again
        assert (session.value(count), session.run(read)) == (5, 5)
    session.run(step)
    assert session.value(count) == 10


def test_what_a_hook_writes_then_is_seen(counting):
    session, count, step, _, to_hundred = counting
    session.run(step)
    session.run(to_hundred)
    assert session.value(count) == 100
    session.run(step)
    assert session.value(count) == 105


def test_a_block_with_other_fetches_tells_it_too(counting):
    session, count, step, read, _ = counting
    session.run([step, read])
    assert session.value(count) == 5
