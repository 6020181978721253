"""`tf.graph_util.remove_training_nodes` leaves a graph that runs with its loops."""

from __future__ import annotations

import tensorflow

import estimator2strategy.tf1 as tf


def _frozen():
    """A graph with a loop as exports have it, and with a node that only training needs."""
    with tensorflow.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [3], name="x")
        doubled = tensorflow.map_fn(lambda row: tf.identity(row) * 2.0, x)
        tf.check_numerics(doubled, "not a number")
        tf.identity(doubled, name="result")
        return graph.as_graph_def()


def test_loops_keep_their_functions():
    smaller = tf.graph_util.remove_training_nodes(_frozen(), protected_nodes=["result"])
    assert not [node.name for node in smaller.node if node.op == "CheckNumerics"]
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(smaller, name="")
        with tf.Session() as session:
            result = session.run(graph.get_tensor_by_name("result:0"), {"x:0": [1.0, 2.0, 3.0]})
    assert result.tolist() == [2.0, 4.0, 6.0]


def test_the_function_is_one_under_all_of_its_names():
    framework = tf.python.framework
    ours = tf.graph_util.remove_training_nodes
    assert tf.compat.v1.graph_util.remove_training_nodes is ours
    assert framework.graph_util.remove_training_nodes is ours
    assert framework.graph_util_impl.remove_training_nodes is ours
