"""The results of an evaluation are read without a program."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy.engine.metrics.observe import observe_metric_calls
from estimator2strategy.engine.metrics.splices import metric_splices
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay.engines import Request, engine_for
from estimator2strategy.engine.replay.engines.one_step import OneStep
from estimator2strategy.engine.replay.engines.read import Read
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.replay.runs import Runs
from estimator2strategy.engine.replay.session import ReplaySession
from estimator2strategy.engine.replay.state import State
from estimator2strategy.engine.worlds import legacy_world, modern_world, recording

tf1 = tf.compat.v1


@pytest.fixture
def evaluated():
    """(session, value of a metric, a variable), after two batches."""
    with legacy_world(), recording(None) as graph:
        x = tf1.placeholder(tf.float32, [None], name="x")
        step = tf1.get_variable("step", initializer=tf.constant(7, tf.int64))
        with observe_metric_calls() as calls:
            value, update = tf1.metrics.mean(x)
        splices = metric_splices(graph, {"mean": (value, update)}, calls)
        recorded = RecordedGraph(graph)
        session = ReplaySession(graph, Runs(Replay(recorded, State(recorded), splices)))
        session.run([tf1.global_variables_initializer(), tf1.local_variables_initializer()])
        session.run(update, {x: [1.0, 2.0]})
        session.run(update, {x: [6.0]})
        yield session, value, step


def test_metrics_and_variables_are_read_without_a_program(evaluated):
    session, value, step = evaluated
    results = session.run({"mean": value, "step": step})
    assert results["mean"] == np.float32(3.0)
    assert results["mean"].dtype == np.float32
    assert results["step"] == 7
    request = Request((value.name, "step/Read/ReadVariableOp:0"))
    with modern_world():
        assert type(engine_for(session.replay, None, request)) is Read


def test_what_is_computed_of_a_result_has_a_program(evaluated):
    session, value, _ = evaluated
    twice = value * 2
    assert session.run(twice) == 6.0
    with modern_world():
        engine = engine_for(session.replay, None, Request((value.name, twice.name)))
    assert type(engine) is OneStep


def test_an_update_that_is_fetched_returns_the_metric_so_far(evaluated):
    session, _, _ = evaluated
    update = session.graph.get_tensor_by_name("mean/update_op:0")
    assert session.run(update, {"x:0": [3.0]}) == 3.0


def test_an_update_that_needs_no_batch_is_none_of_them():
    with legacy_world(), recording(None) as graph:
        local = [tf1.GraphKeys.LOCAL_VARIABLES]
        count = tf1.get_variable(
            "count", [], initializer=tf1.zeros_initializer(), collections=local
        )
        value, update = tf.identity(count), tf.identity(tf1.assign_add(count, 1.0))
        splices = metric_splices(graph, {"count": (value, update)}, [])
        recorded = RecordedGraph(graph)
        session = ReplaySession(graph, Runs(Replay(recorded, State(recorded), splices)))
        session.run(tf1.local_variables_initializer())
        assert [session.run(update) for _ in range(2)] == [1.0, 2.0]
        assert session.run(value) == 2.0
