"""TensorFlow's messages call the nodes of a recorded graph by their labels."""

from __future__ import annotations

import pytest
import tensorflow as tf

from estimator2strategy.engine.plan.edges import known, label_of, labels_in
from estimator2strategy.engine.plan.graph import RecordedGraph

tf1 = tf.compat.v1
FAILED, AROUND = "[[{{node loss/xent}}]]", "[[IteratorGetNext]]"
MESSAGE = f"bad {FAILED}\n\t [[{{{{function_node f}}}}]] {AROUND}\n\t {FAILED}"


def recorded():
    with tf.Graph().as_default() as graph:
        x = tf.ones([2], name="x")
        tf1.cond(tf.reduce_sum(x) > 0, lambda: tf.sqrt(x, name="root"), lambda: x, name="choice")
    return RecordedGraph(graph)


@pytest.mark.oldest
def test_a_node_is_labelled_by_its_name_and_that_of_a_function_by_both():
    nodes = recorded()
    assert label_of(nodes["choice"]) == "choice"
    inner = [label_of(node) for f in nodes.library.values() for node in f.node_def]
    (label,) = (label for label in inner if "root" in label)
    assert label.partition("/")[0] in nodes.library


@pytest.mark.oldest
def test_tensorflow_prints_the_label_whatever_the_node_is_called():
    with tf.Graph().as_default() as graph:
        tf.debugging.check_numerics(tf.constant(float("nan")), "", name="check")
    graph_def = tf1.GraphDef(node=RecordedGraph(graph).nodes)

    @tf.function(autograph=False)
    def twice():
        for name in ("first", "second"):
            tf.graph_util.import_graph_def(graph_def, name=name)

    with pytest.raises(tf.errors.InvalidArgumentError) as raised:
        twice()
    assert "check" in labels_in(raised.value.message)


def test_ops_that_failed_are_told_from_those_around_them():
    assert labels_in(MESSAGE) == ["loss/xent", "f", "IteratorGetNext"]
    assert labels_in(MESSAGE, failed=True) == ["loss/xent", "f"]


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("loss/xent", "loss/xent"),
        ("replay/loss/xent", "loss/xent"),
        ("while/body/_1/while/replay_2/loss/xent", "loss/xent"),
        ("replay/xent", None),
    ],
)
def test_a_name_is_known_in_the_scopes_of_an_import(label, name):
    assert known(label, {"loss/xent": 0}) == name
