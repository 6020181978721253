"""Nodes of a recorded graph, imported a few at a time."""

from __future__ import annotations

import pytest
import tensorflow as tf

from estimator2strategy.plan.graph import RecordedGraph
from estimator2strategy.replay.importer import GraphImporter

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
