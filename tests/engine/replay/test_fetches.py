"""The feeds of a run, beside those of a real Session."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy.engine.replay.session import ReplaySession

tf1 = tf.compat.v1


@pytest.fixture(scope="module")
def graph():
    with tf.Graph().as_default() as graph:
        a = tf1.placeholder(tf.float32, [], name="a")
        b = tf1.placeholder(tf.float32, [2], name="b")
        number = tf1.placeholder(tf.int32, [], name="number")
        text = tf1.placeholder(tf.string, [], name="text")
        values = tf1.placeholder(tf.float32, [None, 2], name="values")
        rows = tf1.placeholder(tf.int32, [None], name="rows")
        fed = {
            "a": a,
            "b": b,
            "number": number,
            "text": text,
            "sparse": tf1.sparse_placeholder(tf.float32, name="sparse"),
            "ragged": tf1.ragged.placeholder(tf.int64, 1, name="ragged"),
            "slices": tf.IndexedSlices(values, rows, tf.constant([3, 2])),
            "constant": tf.constant(1.0, name="constant"),
        }
        tf.add(a, b, name="sum")
        tf.identity(number, name="same_number")
        tf.identity(text, name="same_text")
        tf.identity(tf.sparse.to_dense(fed["sparse"]), name="dense")
        tf.reduce_sum(fed["ragged"].values, name="ragged_sum")
        tf.identity(tf.convert_to_tensor(fed["slices"]), name="whole")
    return graph, fed


def outcome(session, fetch, feed_dict):
    """The value of a run, or the class and words of its error."""
    try:
        return np.asarray(session.run(fetch, feed_dict)).tolist()
    except (TypeError, ValueError) as error:
        return type(error), str(error)


SPARSE = tf1.SparseTensorValue([[0, 1]], [3.0], [2, 2])
CASES = {
    "a tensor and a name": ("sum:0", lambda t: {t["a"]: 1, "b:0": [1.0, 2.0]}),
    "a tuple of tensors": ("sum:0", lambda t: {(t["a"], t["b"]): (1.0, np.array([1, 2]))}),
    "another shape": ("sum:0", lambda t: {t["a"]: 1.0, t["b"]: [1.0, 2.0, 3.0]}),
    "no tensor of the graph": ("sum:0", lambda t: {"nobody:0": 1.0}),
    "no tensor at all": ("sum:0", lambda t: {5: 1.0}),
    "a tensor as a value": ("sum:0", lambda t: {t["a"]: t["constant"], t["b"]: [1.0, 2.0]}),
    "a number that is too large": ("same_number:0", lambda t: {t["number"]: 2**40}),
    "a number for a text": ("same_text:0", lambda t: {t["text"]: 5}),
    "a text": ("same_text:0", lambda t: {t["text"]: "words"}),
    "a sparse value": ("dense:0", lambda t: {t["sparse"]: SPARSE}),
    "the parts of a sparse value": ("dense:0", lambda t: {t["sparse"]: tuple(SPARSE)}),
    "a ragged value": (
        "ragged_sum:0",
        lambda t: {t["ragged"]: tf1.ragged.constant_value([[1, 2], [3]])},
    ),
    "the parts of slices": ("whole:0", lambda t: {t["slices"]: ([[1.0, 2.0]], [0], [3, 2])}),
    "no dict": ("sum:0", lambda t: [(t["a"], 1.0)]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_feed_is_taken_or_refused_as_by_a_session(graph, case):
    graph, fed = graph
    fetch, feed_dict = CASES[case]
    with graph.as_default(), tf1.Session() as session:
        expected = outcome(session, fetch, feed_dict(fed))
        assert outcome(ReplaySession(graph), fetch, feed_dict(fed)) == expected


def test_a_tensor_that_may_not_be_fed_is_refused():
    with tf.Graph().as_default() as graph:
        tensor = tf.constant(1.0)
        graph.prevent_feeding(tensor)
        with pytest.raises(ValueError, match="may not be fed"):
            ReplaySession(graph).run(tensor, {tensor: 2.0})
