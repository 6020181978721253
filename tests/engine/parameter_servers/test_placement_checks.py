"""Python functions that a program puts where they are not."""

from __future__ import annotations

import types

import pytest
import tensorflow as tf

from estimator2strategy.engine.parameter_servers.same_program import check_python_ops
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.errors import UnsupportedError

tf1 = tf.compat.v1
WORKER = types.SimpleNamespace(task_type="worker", task_id=1)


def doubled(x):
    return tf1.py_func(lambda value: 2 * value, [x], tf.float32)


def check(build, device):
    with tf.Graph().as_default() as graph, tf1.device(device):
        build()
        check_python_ops(RecordedGraph(graph), WORKER)


def in_a_dataset():
    tf1.data.make_one_shot_iterator(tf.data.Dataset.range(3).map(tf.identity)).get_next()
    data = tf.data.Dataset.from_tensors(1.0).map(doubled)
    tf1.data.make_initializable_iterator(data).get_next()


@pytest.mark.parametrize("device", ["/job:ps/task:0", "/job:worker/task:0", "/job:chief"])
def test_on_another_process_its_line_is_named(device):
    with pytest.raises(UnsupportedError, match="calls a Python function") as error:
        check(lambda: doubled(1.0), device)
    said = str(error.value)
    assert f"on {device}, but the function is in this process, worker 1" in said
    assert f"{__file__}:" in said
    assert "tf1.py_func(lambda value: 2 * value, [x], tf.float32)" in said


def test_so_is_that_of_a_dataset():
    with pytest.raises(UnsupportedError, match=r"tf\.data\.Dataset\.from_tensors\(1\.0\)\.map"):
        check(in_a_dataset, "/job:ps/task:0")


@pytest.mark.parametrize(
    "device", [None, "/cpu:0", "/job:worker/task:1", "/job:worker/task:1/cpu:0"]
)
@pytest.mark.parametrize("build", [lambda: doubled(1.0), in_a_dataset])
def test_in_this_process_it_may_be(build, device):
    check(build, device)


def test_the_setter_of_replicas_leaves_it_on_the_worker():
    setter = tf1.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker/task:1")
    check(lambda: doubled(tf1.get_variable("x", [])), setter)
