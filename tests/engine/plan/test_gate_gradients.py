"""Gradients that `minimize` makes wait for one another do not, where nothing can tell."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.worlds import legacy_world, recording

tf1 = tf.compat.v1


def waits(recorded):
    """The gradients that wait for a gate."""
    return [
        node.name
        for node in recorded.nodes
        if node.op == "Identity" and any("/group_deps" in edge for edge in node.input)
    ]


def recorded_step(gate_gradients=tf1.train.Optimizer.GATE_OP, between=lambda x: x):
    """A step of two layers; `between` is applied to what the second one is given."""
    with legacy_world(), recording(seed=None) as graph:
        layers = [tf1.get_variable(name, [2, 2]) for name in ("first", "second")]
        hidden = between(tf.matmul(tf.ones([1, 2]), layers[0]))
        loss = tf.reduce_sum(tf.square(tf.matmul(hidden, layers[1])))
        optimizer = tf1.train.GradientDescentOptimizer(0.1)
        optimizer.minimize(loss, gate_gradients=gate_gradients)
    return RecordedGraph(graph), graph


def test_the_gradients_of_an_op_do_not_wait_for_one_another():
    recorded, graph = recorded_step()
    gates = [op.name for op in graph.get_operations() if op.name.endswith("tuple/group_deps")]
    assert gates
    assert not waits(recorded)


def test_gradients_that_a_program_wants_all_at_once_are_waited_for():
    recorded, _ = recorded_step(tf1.train.Optimizer.GATE_GRAPH)
    assert len(waits(recorded)) == 2


def in_python(hidden):
    """An op, Python in one gradient of which changes something."""

    @tf.custom_gradient
    def scaled(x, scale):
        def gradient(upstream):
            (seen,) = tf1.py_func(lambda x: np.float32(x), [upstream], [tf.float32])
            return upstream, tf.reduce_sum(seen)

        return x * scale, gradient

    return scaled(hidden, tf1.get_variable("scale", []))


def checked(hidden):
    """The op itself is checked, and so all its gradients come after."""
    with tf.control_dependencies([tf1.assert_less(tf.reduce_sum(hidden), 1e9)]):
        return tf.identity(hidden)


@pytest.mark.parametrize(("between", "gates"), [(in_python, 1), (checked, 0)])
def test_what_has_an_effect_is_waited_for(between, gates):
    recorded, _ = recorded_step(between=between)
    assert len(waits(recorded)) == gates


def test_a_graph_with_a_loop_of_tf_1_is_left_as_it_is():
    def loop(hidden):
        _, hidden = tf1.while_loop(lambda i, _: i < 2, lambda i, x: (i + 1, x * 2), [0, hidden])
        return hidden

    with tf.Graph().as_default() as graph:
        tf1.disable_control_flow_v2()
        try:
            weight = tf1.get_variable("weight", [2, 2], use_resource=True)
            product = tf.matmul(loop(tf.ones([1, 2])), weight)
            loss = tf.reduce_sum(tf.matmul(product, weight))
            tf1.train.GradientDescentOptimizer(0.1).minimize(loss)
        finally:
            tf1.enable_control_flow_v2()
    assert waits(RecordedGraph(graph))
