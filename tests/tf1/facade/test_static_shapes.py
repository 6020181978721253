"""Static shapes that TF 1.15 knew; the numbers are those of TF 1.15.5."""

from __future__ import annotations

import pytest

import estimator2strategy.tf1 as tf


def of(tensor):
    return None if tensor.shape.rank is None else tensor.shape.as_list()


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default():
        yield


@pytest.mark.parametrize("function", [tf.parse_example, tf.io.parse_example])
def test_records_of_unknown_shape_are_parsed_to_a_batch(function):
    spec = {
        "x": tf.FixedLenFeature([4], tf.float32),
        "n": tf.FixedLenFeature([], tf.int64),
        "q": tf.FixedLenSequenceFeature([3], tf.float32, allow_missing=True),
        "v": tf.VarLenFeature(tf.int64),
    }
    parsed = function(tf.placeholder(tf.string), spec)
    assert [of(parsed[key]) for key in "xnq"] == [[None, 4], [None], [None, None, 3]]
    assert of(parsed["v"]) == [None, None]
    assert of(parsed["v"].indices) == [None, 2]
    assert of(parsed["v"].dense_shape) == [2]


def test_sequences_of_unknown_shape_are_parsed_to_a_batch():
    steps = {"x": tf.FixedLenSequenceFeature([3], tf.float32), "w": tf.VarLenFeature(tf.string)}
    context, sequences, lengths = tf.io.parse_sequence_example(
        tf.placeholder(tf.string), {"n": tf.FixedLenFeature([2], tf.int64)}, steps
    )
    assert of(context["n"]) == [None, 2]
    assert of(sequences["x"]) == [None, None, 3]
    assert of(sequences["w"].indices) == [None, 3]
    assert of(lengths["x"]) == [None]


def test_an_encoded_image_is_a_scalar_and_a_solution_a_matrix():
    assert of(tf.image.encode_png(tf.placeholder(tf.uint8))) == []
    known, unknown = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32)
    assert of(tf.matrix_triangular_solve(known, unknown)) == [3, None]
    assert of(tf.linalg.triangular_solve(unknown, known)) == [None, 3]


def test_what_is_made_of_a_sparse_placeholder_with_a_shape_has_it():
    ids = tf.sparse_placeholder(tf.int64, [3, 4])
    numbers = tf.cast(ids, tf.float32)
    assert of(tf.sparse_tensor_to_dense(ids)) == [3, 4]
    assert of(tf.sparse.to_dense(ids, default_value=1)) == [3, 4]
    assert of(tf.sparse_reduce_sum(numbers, 1)) == [3]
    assert of(tf.sparse_reduce_sum(numbers, 1, keepdims=True)) == [3, 1]
    assert of(tf.sparse_reduce_sum(numbers, reduction_axes=[-2])) == [4]
    assert of(tf.sparse_reduce_max(numbers)) == []
    assert of(tf.sparse_tensor_to_dense(tf.sparse_minimum(ids, ids))) == [3, 4]
    assert of(tf.sparse_tensor_to_dense(tf.sparse_merge(ids, ids, 10))) == [3, 10]
    assert of(tf.sparse_to_indicator(ids, 10)) == [3, 10]
    assert of(tf.edit_distance(ids, ids)) == [3]
    assert of(tf.nn.safe_embedding_lookup_sparse(tf.zeros([9, 5]), ids)) == [3, 5]


def test_a_sparse_placeholder_of_unknown_shape_stays_as_it_is():
    ids, some = tf.sparse_placeholder(tf.int64), tf.sparse_placeholder(tf.int64, [None, 4])
    assert of(tf.sparse_tensor_to_dense(ids)) is None
    assert of(tf.sparse_reduce_sum(tf.cast(ids, tf.float32), 1)) is None
    assert of(tf.edit_distance(ids, ids)) is None
    assert of(some) == [None, 4]


def test_a_sparse_placeholder_with_a_shape_can_be_fed():
    ids = tf.sparse_placeholder(tf.int64, [2, 3])
    dense, total = tf.sparse_tensor_to_dense(ids), tf.sparse_reduce_sum(ids, 1)
    with tf.Session() as session:
        value = tf.SparseTensorValue([[0, 1], [1, 2]], [5, 7], [2, 3])
        found = session.run([dense, total], {ids: value})
    assert [part.tolist() for part in found] == [[[0, 5, 0], [0, 0, 7]], [5, 7]]


def test_a_sparse_feature_of_unknown_records_has_its_size():
    spec = {"s": tf.SparseFeature("i", "w", tf.float32, 10)}
    assert of(tf.parse_example(tf.placeholder(tf.string), spec)["s"]) == [None, 10]


def test_exported_keys_are_a_vector():
    table = tf.contrib.lookup.MutableHashTable(tf.int64, tf.float32, [0.0, 0.0])
    assert [of(part) for part in table.export()] == [[None], [None, 2]]
