"""A session that is closed gives back all that it kept."""

from __future__ import annotations

import gc

import keras
import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy.engine import _tf_switches
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay.shared_state import SharedState
from estimator2strategy.engine.replay.state import State
from tests.engine.runtime.programs import falling, host_estimator, numbers

tf1 = tf.compat.v1
SIZE = 2**16


@pytest.fixture
def handles(monkeypatch):
    """Those of all variables that are made from now on, by the name of the node."""
    made = {}
    make = State._make_copies

    def noting(state, node):
        copies = make(state, node)
        made[node] = copies[0].handle
        return copies

    monkeypatch.setattr(State, "_make_copies", noting)
    return made


def elements(handle):
    with _tf_switches.eager_mode():
        return int(tf.reduce_prod(tf.raw_ops.VariableShape(input=handle)))


def test_a_training_gives_back_what_its_variables_held_before_garbage_is_collected(
    model_dir, handles
):
    held = []

    class Look(tf1.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            held.append(elements(handles["large"]))

    def model_fn(features, labels, mode, params):
        tf1.get_variable("large", [SIZE], initializer=tf1.zeros_initializer())
        spec = falling(features, labels, mode, params)
        return spec._replace(training_hooks=[Look()])

    gc.disable()
    try:
        host_estimator(model_dir, model_fn).train(numbers(1))
    finally:
        gc.enable()
    assert held == [SIZE]
    assert elements(handles["large"]) == 1


def test_what_another_owns_stays_as_it_is():
    with tf.Graph().as_default() as graph:
        tf1.get_variable("shared", [SIZE], use_resource=True)
        tf1.get_variable("own", [SIZE], use_resource=True)
    shared = keras.Variable(np.ones(SIZE, np.float32))
    state = SharedState(RecordedGraph(graph), None, (), {"shared": shared})
    own = state.variable("own")
    own.assign(tf.ones([SIZE]))
    assert elements(state.handle("shared")) == SIZE
    state.close()
    assert elements(own.handle) == 1
    np.testing.assert_array_equal(shared.numpy(), np.ones(SIZE))
