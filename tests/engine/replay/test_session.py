"""The members of a Session that hooks and listeners use beside `run`."""

from __future__ import annotations

from collections import OrderedDict

import pytest
import tensorflow as tf

from estimator2strategy.engine.replay.session import ReplaySession

tf1 = tf.compat.v1


@pytest.fixture(params=[tf1.Session, ReplaySession])
def session(request):
    """A Session, and ours."""
    with tf.Graph().as_default() as graph:
        a, b = (tf1.placeholder(tf.float32, [], name=name) for name in "ab")
        tf.subtract(a, b, name="difference")
        tf.constant(2.0, name="two")
        yield request.param(graph=graph)


def test_its_graph_can_be_written(session):
    assert [node.name for node in session.graph_def.node] == ["a", "b", "difference", "two"]


def test_a_callable_takes_the_values_of_its_feeds(session):
    difference = session.make_callable("difference:0", ["a:0", "b:0"])
    assert difference(3.0, 1.0) == 2.0
    assert difference(3.0, 2.0) == 1.0


def test_a_callable_without_feeds_takes_options(session):
    two = session.make_callable({"two": "two:0"}, accept_options=True)
    assert two(options=tf1.RunOptions(), run_metadata=None) == {"two": 2.0}


def test_the_cpu_is_among_its_devices(session):
    assert "CPU" in {device.device_type for device in session.list_devices()}
    assert any(device.name.endswith("/device:CPU:0") for device in session.list_devices())


def test_results_have_the_types_of_their_fetches(session):
    two = session.graph.get_tensor_by_name("two:0")
    fetches = [{"two": two}, OrderedDict(two=two), [two], (two,)]
    assert [type(session.run(each)) for each in fetches] == [dict, OrderedDict, list, tuple]


def test_hooks_find_that_it_is_a_session_and_no_monitored_one(session):
    """In TF 1.15 `run_context.session`, and the session of `end` and of listeners, was one."""
    kinds = (tf1.Session, tf1.train.MonitoredSession, tf1.train.SingularMonitoredSession)
    assert [isinstance(session, kind) for kind in kinds] == [True, False, False]
