"""Columns of `tf.contrib.layers` in the canned Estimators of `tf.estimator`, as in TF 1.15."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tensorflow as tf2

import estimator2strategy.tf1 as tf
from estimator2strategy import estimator
from tests import legacy_programs
from tests.same import assert_same

TESTS = Path(__file__).parents[2]
GOLDEN = json.loads((TESTS / "goldens" / "contrib_columns.json").read_text())
layers = tf.contrib.layers


@pytest.fixture(scope="module")
def program():
    with legacy_programs.imported("contrib_columns") as program:
        yield program


@pytest.mark.parametrize("case", GOLDEN)
def test_a_model_on_columns_of_contrib_trains_evaluates_and_predicts_as_in_tf_1_15(
    case, program, tmp_path
):
    with tf2.Graph().as_default():  # as where legacy code runs
        found = program.run(case, str(tmp_path))
    assert_same(json.loads(json.dumps(found)), GOLDEN[case], case)


@pytest.mark.parametrize(
    "make",
    [
        lambda column: estimator.LinearClassifierV2([column]),
        lambda column: estimator.DNNRegressorV2([2], [column]),
        lambda column: estimator.DNNLinearCombinedRegressorV2(linear_feature_columns=[column]),
    ],
)
def test_an_estimator_of_tf_2_refuses_a_column_of_contrib_as_in_tf_1_15(make, tmp_path):
    model = make(layers.real_valued_column("x"))
    with pytest.raises(ValueError, match="Received a feature column from TensorFlow v1"):
        model.train(lambda: ({"x": tf2.ones([2, 1])}, tf2.ones([2, 1], tf2.int64)), steps=1)


def test_features_of_records_are_parsed_as_columns_of_contrib_say():
    town = layers.sparse_column_with_keys("town", ["Oslo", "Rome"])
    columns = [
        layers.real_valued_column("size", 2, 0.5),
        layers.crossed_column([town, layers.sparse_column_with_hash_bucket("day", 5)], 9),
        layers.embedding_column(layers.weighted_sparse_column(town, "weight"), 2),
    ]
    expected = {
        "size": tf.FixedLenFeature([2], tf.float32, [0.5, 0.5]),
        "town": tf.VarLenFeature(tf.string),
        "day": tf.VarLenFeature(tf.string),
        "weight": tf.VarLenFeature(tf.float32),
    }
    assert tf.feature_column.make_parse_example_spec(columns) == expected
    assert tf.estimator.classifier_parse_example_spec(columns, "label") == {
        **expected,
        "label": tf.FixedLenFeature((1,), tf.int64, None),
    }


def test_a_column_of_ids_is_no_input_of_a_network():
    town = layers.sparse_column_with_keys("town", ["Oslo", "Rome"])
    model = tf.estimator.DNNClassifier([2], [town])
    with pytest.raises(ValueError, match="must be a _DenseColumn"):
        model.train(lambda: ({"town": tf.constant([["Oslo"]])}, tf.constant([[1]])), steps=1)


@pytest.mark.parametrize("keys", [[], [1, 2], [[1]], [[1, "2"]]])
def test_hash_keys_are_pairs_of_integers(keys):
    with pytest.raises(ValueError, match="hash_keys must be a"):
        layers.sparse_column_with_hash_bucket("a", 5, hash_keys=keys)


@pytest.mark.parametrize(
    ("match", "arguments"),
    [
        ("greater than 0", (0, 2, 7)),
        ("greater than 0", (5, 0, 7)),
        ("must be a number", (5, 2, None)),
        ("'mean', 'sqrtn' or 'sum'", (5, 2, 7, "max")),
        ("must be callable", (5, 2, 7, "sum", 0.5)),
    ],
)
def test_a_scattered_column_that_cannot_be_is_refused(match, arguments):
    with pytest.raises(ValueError, match=match):
        layers.scattered_embedding_column("a", *arguments)


def test_shared_columns_are_named_in_the_order_of_tf_1_15():
    first = layers.sparse_column_with_integerized_feature("a", 5)
    second = layers.sparse_column_with_hash_bucket("b", 5, dtype=tf.int64)
    shared = layers.shared_embedding_columns([first, second], 2)
    # In the order in which columns print: _SparseColumnHashed, _SparseColumnIntegerized.
    assert shared[0].shared_embedding_name == "b_a_shared_embedding"


def test_scattered_embeddings_are_those_of_tf_1_15():
    """Parameter i is i, so an embedding is the places of its parameters."""
    slim = tf.contrib.slim
    with tf.Graph().as_default(), tf.Session() as session:
        words = tf.SparseTensor([[0, 0], [0, 1], [2, 0]], ["a", "b", "a"], [3, 2])
        params = tf.range(100.0)
        of_key = slim.scattered_embedding_lookup(params, ["a", "b"], 3, hash_key=7)
        of_first_hash = slim.scattered_embedding_lookup(params, ["a", "b"], 3)
        mean = slim.scattered_embedding_lookup_sparse(params, words, 2, "mean", hash_key=7)
        found = session.run([of_key, of_first_hash, mean])
    assert found[0].tolist() == [[95, 10, 2], [95, 22, 50]]
    assert found[1].tolist() == [[18, 0, 81], [95, 59, 34]]
    assert found[2].tolist() == [[95, 16], [62, 43], [95, 10]]
