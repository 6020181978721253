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
