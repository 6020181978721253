"""Which reads of variables come before all writes of a step."""

from __future__ import annotations

import pytest
import tensorflow as tf

from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.worlds import legacy_world, recording

tf1 = tf.compat.v1
pytestmark = pytest.mark.oldest


def comes_first(build, reference=True):
    """Whether the last read of the variable comes first that `build(variable)` makes."""
    with legacy_world(), recording(seed=None, tf115=reference) as graph:
        variable = tf1.get_variable("v", [], trainable=False)
        build(variable)
        reads = [op for op in variable.handle.consumers() if op.type == "ReadVariableOp"]
    return RecordedGraph(graph).comes_first(reads[-1].name)


def subtract(variable, value):
    """`assign_sub` without the read of the result."""
    tf.raw_ops.AssignSubVariableOp(resource=variable.handle, value=value)


def waiting_for(op):
    def build(variable):
        with tf.control_dependencies([op()]):
            variable.read_value()

    return build


@pytest.mark.parametrize(
    "nothing", [tf.no_op, lambda: tf.group(tf.no_op()), lambda: tf.square(2.0)]
)
def test_waiting_for_no_op_is_waiting_for_nothing(nothing):
    assert comes_first(waiting_for(nothing))


@pytest.mark.parametrize(
    "something",
    [
        lambda: tf1.placeholder(tf.float32),
        lambda: tf1.get_variable("w", []).assign_add(1.0),
        lambda: tf.random.uniform([]),
        lambda: tf.debugging.assert_positive(tf1.placeholder(tf.float32)),
    ],
)
def test_a_read_that_waits_for_something_is_where_it_was_written(something):
    assert not comes_first(waiting_for(something))


def decay(variable):
    subtract(variable, (variable - tf1.placeholder(tf.float32)) * 0.1)


def test_the_read_of_an_update_is_where_it_was_written():
    assert not comes_first(decay)


def test_the_read_of_an_update_of_a_resource_variable_comes_first():
    assert comes_first(decay, reference=False)


def test_a_value_that_updates_another_variable_comes_first():
    assert comes_first(lambda v: subtract(tf1.get_variable("copy", []), v * 0.1))


def test_the_read_of_a_trained_weight_comes_first():
    def build(variable):
        loss = tf.reduce_sum(tf.square(variable * tf.ones([3])))
        (gradient,) = tf.gradients(loss, [variable])
        subtract(variable, 0.1 * gradient)

    assert comes_first(build)
