"""Values of the first core reach all cores of a pod by a few calls for each host."""

from __future__ import annotations

from collections import Counter

import pytest
import tensorflow as tf
from tensorflow.python.framework import op_callbacks

from estimator2strategy.engine.replay.broadcast import to_all_cores
from estimator2strategy.engine.replay.tpu_variables import uninitialized_variable
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


def test_calls_are_as_many_as_hosts_and_not_as_variables(pod):
    def calls(number):
        variables = [copies_of(pod, i) for i in range(number)]
        for copies in variables:
            copies[0].assign([1.0, 2.0])
        eager: Counter[str] = Counter()

        def count(op_type, inputs, attrs, outputs, op_name=None, graph=None):
            if graph is None:
                eager[op_type] += 1

        op_callbacks.add_op_callback(count)
        try:
            to_all_cores(variables, pod.extended.worker_devices)
        finally:
            op_callbacks.remove_op_callback(count)
        return sum(eager.values())

    # Which variables have a value; for each host its values, and their assignments.
    assert calls(2) == calls(20) == 1 + 2 * 2
