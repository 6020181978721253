"""A run that reads a variable without a value says so, as a Session does."""

from __future__ import annotations

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.plan.graph import RecordedGraph
from estimator2strategy.record.legacy import legacy_world, recording
from estimator2strategy.replay.session import ReplaySession, Step

tf1 = tf.compat.v1


@pytest.fixture
def graph():
    with legacy_world(), recording(None) as graph:
        yield graph


def refused(name):
    return pytest.raises(tf.errors.FailedPreconditionError, match=f"uninitialized value {name}")


def test_a_fetch_that_reads_it(graph):
    first, second = tf1.get_variable("first", [3]), tf1.get_variable("second", [3])
    both = first + second
    session = ReplaySession(RecordedGraph(graph))
    session.run(first.initializer)
    with refused("second"):
        session.run([both])
    session.run(second.initializer)
    session.run([both])


def test_a_step_that_reads_it_and_writes_it_then(graph):
    weight = tf1.get_variable("weight", [], initializer=tf1.ones_initializer())
    step = tf1.train.GradientDescentOptimizer(0.1).minimize(weight * weight)
    session = ReplaySession(RecordedGraph(graph))
    session.step = Step(step.name)
    with refused("weight"):
        session.run(step)


def test_it_may_be_read_after_it_was_written(graph):
    weight = tf1.get_variable("weight", [2], initializer=tf1.ones_initializer())
    with tf.control_dependencies([weight.initializer]):
        value = weight.read_value()
    session = ReplaySession(RecordedGraph(graph))
    assert session.run([value])[0].tolist() == [1, 1]


def test_it_may_be_read_where_it_has_a_value(graph):
    weight = tf1.get_variable("weight", [2], initializer=tf1.ones_initializer())
    value = weight.initialized_value()
    session = ReplaySession(RecordedGraph(graph))
    assert session.run([value])[0].tolist() == [1, 1]


@pytest.mark.parametrize("shape", [[], [3]])
def test_a_variable_of_a_model_that_no_init_op_knows(model_dir, shape):
    def model_fn(features, labels, mode):
        kept = tf1.get_variable("kept", shape, collections=["mine"])
        loss = tf.reduce_sum(kept * features)
        train_op = tf1.train.get_global_step().assign_add(1)
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    model = estimator.Estimator(model_fn, model_dir)
    with refused("kept"):
        model.train(lambda: tf.data.Dataset.from_tensors((tf.ones([3]), 0.0)), steps=1)
