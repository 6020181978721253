"""Nodes of a recorded graph, imported a few at a time."""

from __future__ import annotations

import pytest
import tensorflow as tf

from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay.importer import GraphImporter

tf1 = tf.compat.v1


@pytest.mark.oldest
def test_a_node_may_come_after_one_whose_scope_has_its_name():
    with tf.Graph().as_default() as graph:
        first = tf.constant(2.0, name="loss/half/of")
        whole = tf.add(first, 3.0, name="loss/half")
        with tf.control_dependencies([whole]):
            tf.identity(whole, name="last")
    recorded = RecordedGraph(graph)

    @tf.function
    def replayed():
        importer = GraphImporter(recorded, handle_of=lambda node: None)
        (of,) = importer.fetch(["loss/half/of:0"])
        (half,) = importer.fetch(["loss/half:0"])
        return of, half, *importer.fetch(["last:0"])

    assert [float(value) for value in replayed()] == [2.0, 5.0, 5.0]


def test_ops_that_wait_for_what_is_imported_already_share_one_edge_to_it():
    asked = 5
    with tf.Graph().as_default() as recorded:
        first = tf.constant(1.0, name="first")
        with tf.control_dependencies([first]):
            for number in range(asked):
                tf.constant(float(number), name=f"later_{number}")

    with tf.Graph().as_default() as graph:
        importer = GraphImporter(RecordedGraph(recorded), handle_of={}.__getitem__)
        (first,) = importer.fetch(["first:0"])
        before = len(graph.get_operations())
        later = importer.fetch([f"later_{number}:0" for number in range(asked)])
        (waits_for,) = {op for tensor in later for op in tensor.op.control_inputs}
        assert waits_for.control_inputs == [first.op]
        assert len(graph.get_operations()) == before + asked + 1
