"""Initializers that hold constants need no program."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy.engine.replay import engines
from estimator2strategy.engine.replay.engines.assign import Assign
from estimator2strategy.engine.replay.session import ReplaySession
from estimator2strategy.engine.worlds import legacy_world, recording

tf1 = tf.compat.v1


def zeros():
    return tf1.get_variable("v", [2, 3], initializer=tf1.zeros_initializer()).initializer


def text():
    return tf1.get_variable("v", initializer=tf.constant(["a", "b"])).initializer


def scalar():
    return tf1.get_variable("v", [], tf.bfloat16, tf1.constant_initializer(0.1)).initializer


def local():
    tf1.get_variable("v", [4], tf.int64, tf1.ones_initializer(), collections=["local_variables"])
    return tf.group(tf1.local_variables_initializer(), tf1.tables_initializer())


def large():
    return tf1.get_variable("v", [300, 300], initializer=tf1.ones_initializer()).initializer


def drawn():
    return tf1.get_variable("v", [3], initializer=tf1.random_normal_initializer(seed=1)).initializer


def computed():
    value = tf.cast(tf.constant([1, 2]), tf.float32)
    return tf1.get_variable("v", initializer=value).initializer


def twice():
    v = tf1.get_variable("v", initializer=tf.constant(1.0))
    with tf.control_dependencies([v.initializer]):
        return tf1.assign(v, 2.0).op


def run(build, monkeypatch):
    """(the values of `v` in a Session, and here; the type of the engine)."""
    made = []
    engine_for = engines.engine_for

    def noted(*args):
        made.append(engine_for(*args))
        return made[-1]

    monkeypatch.setattr("estimator2strategy.engine.replay.runs.engine_for", noted)
    with legacy_world(), recording(None) as graph:
        init = build()
        v = next(op for op in graph.get_operations() if op.name == "v")
        read = tf.raw_ops.ReadVariableOp(resource=v.outputs[0], dtype=v.get_attr("dtype"))
        session = ReplaySession(graph)
        session.run(init)
        ours = session.run(read)
        with tf1.Session(graph=graph) as real:
            real.run(init)
            return real.run(read), ours, type(made[0])


@pytest.mark.parametrize("build", [zeros, text, scalar, local])
def test_constants_are_given_without_a_program(build, monkeypatch):
    real, ours, engine = run(build, monkeypatch)
    np.testing.assert_array_equal(ours, real)
    assert ours.dtype == real.dtype
    assert engine is Assign


@pytest.mark.parametrize("build", [large, drawn, computed, twice])
def test_all_else_has_a_program(build, monkeypatch):
    real, ours, engine = run(build, monkeypatch)
    np.testing.assert_array_equal(ours, real)
    assert engine is not Assign
