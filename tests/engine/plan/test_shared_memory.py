"""Reads of a reference variable share its memory."""

from __future__ import annotations

import tensorflow as tf

from estimator2strategy.engine import worlds
from estimator2strategy.engine.plan.graph import RecordedGraph

tf1 = tf.compat.v1


def recorded(build, resource=False):
    """The nodes of what `build` makes of a variable, and the name of its result."""
    with worlds.recording(seed=1, tf115=True) as graph:
        with tf1.variable_scope("", use_resource=resource):
            result = build(tf1.get_variable("v", [3, 2]))
        return RecordedGraph(graph), result.op.name


def after_an_update(v):
    read = tf.reshape(v, [6])
    with tf.control_dependencies([v.assign(v * 2.0)]):
        return tf.negative(read, name="used")


def test_an_op_that_waits_for_a_write_gets_a_read_after_it():
    graph, name = recorded(after_an_update)
    reshaped = graph[graph[name].input[0]]
    assert reshaped.op == "Reshape"
    read = graph[reshaped.input[0]]
    assert read.op == "ReadVariableOp"
    assert [graph[edge[1:]].op for edge in read.input[1:]] == ["AssignVariableOp"]
    assert not graph.comes_first(read.name)


def test_a_read_of_a_resource_variable_is_a_copy():
    graph, name = recorded(after_an_update, resource=True)
    assert graph.comes_first(graph[graph[name].input[0]].input[0])


def test_an_op_that_waits_for_no_write_keeps_its_read():
    def beside_an_update(v):
        read = tf.identity(v)
        v.assign(v * 2.0)
        return tf.negative(read)

    graph, name = recorded(beside_an_update)
    assert graph.comes_first(graph[graph[name].input[0]].input[0])


def test_rows_that_wait_for_no_write_are_looked_up_before_it():
    def looked_up(v):
        v.assign(v * 2.0)
        ids = tf1.placeholder(tf.int32, [1], name="ids")
        return tf.nn.embedding_lookup(v, ids + 1)

    graph, _ = recorded(looked_up)
    names = [node.name for node in graph.nodes]
    order = [graph[name].op for name in graph.in_order_of_effects(names)]
    last_write = max(i for i, op in enumerate(order) if op == "AssignVariableOp")
    assert order.index("ResourceGather") < last_write
    assert order.index("Placeholder") < order.index("ResourceGather")
