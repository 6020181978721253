"""Values of the first core reach all cores of a pod by a few calls for each host."""

from __future__ import annotations

import contextlib
from collections import Counter
from unittest import mock

import pytest
import tensorflow as tf
from tensorflow.python.framework import op_callbacks

from estimator2strategy.engine.replay import tpu_variables
from estimator2strategy.engine.replay.tpu_variables import to_all_cores, uninitialized_variable
from estimator2strategy.engine.runtime import tpu_system
from tests.rehearsal import rehearsal


@pytest.fixture
def pod():
    """A strategy of two hosts with two cores each."""
    with rehearsal(num_hosts=2, cores_per_host=2) as runtime:
        resolver = runtime.resolver()
        tpu_system.start(resolver)
        yield tf.distribute.TPUStrategy(resolver)


def copies_of(strategy, number, dtype=tf.float32):
    variable = uninitialized_variable(strategy, f"v{number}", tf.TensorShape([2]), dtype)
    return strategy.experimental_local_results(variable)


@pytest.mark.oldest
def test_all_cores_get_what_the_first_has(pod):
    variables = [copies_of(pod, 0), copies_of(pod, 1, tf.int64), copies_of(pod, 2)]
    variables[0][0].assign([1.0, 2.0])
    variables[1][0].assign([3, 4])
    to_all_cores(variables, pod.extended.worker_devices)
    assert [copy.numpy().tolist() for copy in variables[0]] == [[1.0, 2.0]] * 4
    assert [copy.numpy().tolist() for copy in variables[1]] == [[3, 4]] * 4
    initialized = [tf.raw_ops.VarIsInitializedOp(resource=copy.handle) for copy in variables[2]]
    assert not any(initialized)


@contextlib.contextmanager
def watched():
    """The types of the ops that run, and of those that are traced, while the body runs."""
    eager: Counter[str] = Counter()
    traced: Counter[str] = Counter()

    def count(op_type, inputs, attrs, outputs, op_name=None, graph=None):
        (traced if graph else eager)[op_type] += 1

    op_callbacks.add_op_callback(count)
    try:
        yield eager, traced
    finally:
        op_callbacks.remove_op_callback(count)


def with_values(strategy, number, dtype=tf.float32):
    variables = [copies_of(strategy, i, dtype) for i in range(number)]
    for copies in variables:
        copies[0].assign([1, 2])
    return variables


def test_calls_are_as_many_as_hosts_and_not_as_variables(pod):
    def calls(number):
        variables = with_values(pod, number)
        with watched() as (eager, _):
            to_all_cores(variables, pod.extended.worker_devices)
        return sum(eager.values())

    # Which variables have a value; for each host its values, and their assignments.
    assert calls(2) == calls(20) == 1 + 2 * 2


def test_all_hosts_call_what_was_traced_once(pod):
    variables = with_values(pod, 5, tf.float64)  # which no other test here has traced
    with watched() as (_, traced):
        to_all_cores(variables, pod.extended.worker_devices)
    assert traced["ReadVariableOp"] == 5
    assert traced["AssignVariableOp"] == 5 * 2  # on the two cores of a host


def test_values_are_brought_to_each_host_before_its_cores_take_them(pod):
    variables = with_values(pod, 2)
    given = []

    def note(values, handles):
        given.append([value.device for value in values])

    with mock.patch.object(tpu_variables, "_assign", note):
        to_all_cores(variables, pod.extended.worker_devices)
    hosts = ["/job:localhost/replica:0/task:0/device:CPU:0"] * 2  # the CPUs that stand for them
    others = ["/job:localhost/replica:0/task:0/device:CPU:2"] * 2
    assert given == [hosts, others]


def test_variables_of_one_shape_share_their_kernels_on_all_cores_but_the_first(pod):
    """TensorFlow builds a kernel for each attribute that it has not seen: a name is one."""
    kernels = set()

    def note(op_type, inputs, attrs, outputs, op_name=None, graph=None):
        if op_type == "VarHandleOp":
            kernels.add((outputs[0].device, tuple(map(str, attrs))))

    op_callbacks.add_op_callback(note)
    try:
        for number in range(10):
            copies_of(pod, number)
    finally:
        op_callbacks.remove_op_callback(note)
    assert len(kernels) == 10 + 3
