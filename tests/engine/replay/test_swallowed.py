"""Where a kernel for CPUs raises and XLA says nothing, a flag of the compiled program tells."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay.importer import GraphImporter
from estimator2strategy.engine.replay.state import State
from estimator2strategy.engine.replay.swallowed import raised, swallowed, told
from estimator2strategy.engine.worlds import legacy_world, modern_world

tf1 = tf.compat.v1

TABLE = np.arange(12, dtype=np.float32).reshape(4, 3)


def variable():
    return tf1.get_variable("table", initializer=TABLE, use_resource=True)


# Name -> (the op that takes int32 ids, good ids, bad ids, a part of the message).
CASES = {
    "table": (lambda ids: tf.gather(TABLE, ids), [0, 3], [1, 4], "beyond the table"),
    "columns": (lambda ids: tf.gather(TABLE, ids, axis=1), [0, 2], [0, 3], "beyond the table"),
    "negative": (lambda ids: tf.gather(TABLE, ids), [0, 3], [0, -1], "beyond the table"),
    "variable": (lambda ids: tf.gather(variable(), ids), [0, 3], [0, 4], "beyond the table"),
    "lookup": (
        lambda ids: tf1.nn.embedding_lookup(variable(), ids),
        [0, 3],
        [0, 4],
        "beyond the table",
    ),
    "points": (lambda ids: tf.gather_nd(TABLE, [ids]), [3, 2], [2, 3], "beyond the table"),
    "scattered": (
        lambda ids: tf.tensor_scatter_nd_add(TABLE[:, 0], ids[:, None], [1.0, 1.0]),
        [0, 3],
        [0, 4],
        "beyond the table",
    ),
    "assigned": (
        lambda ids: variable().scatter_add(tf.IndexedSlices(TABLE[:2], ids)),
        [0, 3],
        [0, 4],
        "beyond the table",
    ),
    "labels": (
        lambda ids: tf1.losses.sparse_softmax_cross_entropy(ids, TABLE[:2]),
        [0, 2],
        [0, 3],
        "beyond the classes",
    ),
    "segments": (
        lambda ids: tf.math.unsorted_segment_sum(TABLE[:2], ids, 4),
        [-1, 3],
        [0, 4],
        "beyond the segments",
    ),
    "assertion": (lambda ids: tf1.assert_less(ids, 4), [0, 3], [0, 4], "the assertion fails"),
    "assertion in a cond": (
        lambda ids: tf1.Assert(tf.reduce_all(ids < 4), [tf.cast(ids, tf.float32)]),
        [0, 3],
        [0, 4],
        "the assertion fails",
    ),
    "numbers": (
        lambda ids: tf1.check_numerics(1 / tf.cast(ids, tf.float32), "of ids"),
        [1, 3],
        [0, 4],
        "infinite or NaN",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_flag_is_raised_where_a_session_fails(case):
    make, good, bad, why = CASES[case]
    with legacy_world(), tf.Graph().as_default() as graph:
        ids = tf1.placeholder(tf.int32, [2], name="ids")
        made = make(ids)
        op = made if isinstance(made, tf.Operation) else made.op
        with tf1.Session() as real:
            real.run(tf1.global_variables_initializer())
            real.run(op, {ids: good})
            with pytest.raises(tf.errors.InvalidArgumentError):
                real.run(op, {ids: bad})
    assert told_by_xla(graph, op, ids, good) == []
    (said,) = told_by_xla(graph, op, ids, bad)
    assert why in said
    assert "test_swallowed.py:" in said


def told_by_xla(graph, op, ids, value):
    """The failures that a compiled program tells."""
    recorded = RecordedGraph(graph)
    state = State(recorded)
    names = [name for name in recorded.ancestors([op.name]) if name != ids.op.name]
    found = swallowed(recorded, names)
    with modern_world():
        for name in names:
            if recorded[name].op == "VarHandleOp":
                state.variable(name).assign(TABLE)

        @tf.function(autograph=False, jit_compile=True)
        def step(given):
            importer = GraphImporter(recorded, state.handle, {ids.name: given})
            importer.fetch([], [op.name])
            return raised(recorded, importer.fetch, found)

        flags = step(tf.constant(value))
    return [told(recorded, failure) for failure, flag in zip(found, flags, strict=True) if flag]
