"""Feature columns in a model_fn of one's own make the variables and numbers of TF 1.15."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tensorflow as tf

from estimator2strategy.engine import _tf_switches
from estimator2strategy.tf1 import contrib
from tests import legacy_programs
from tests.same import assert_same

TESTS = Path(__file__).parents[1]
GOLDEN = json.loads((TESTS / "goldens" / "columns.json").read_text())


@pytest.fixture(scope="module")
def program():
    with legacy_programs.imported("columns") as program:
        yield program


@pytest.mark.parametrize("case", GOLDEN)
def test_a_model_on_columns_trains_evaluates_and_predicts_as_in_tf_1_15(case, program, tmp_path):
    with tf.Graph().as_default():  # as where legacy code runs
        found = program.run(case, str(tmp_path))
    assert_same(json.loads(json.dumps(found)), GOLDEN[case], case)


@pytest.mark.oldest
def test_a_column_that_is_not_of_sequences_is_no_input_of_them():
    columns = [tf.feature_column.numeric_column("size")]
    with tf.Graph().as_default(), pytest.raises(ValueError, match=r"_SequenceDenseColumn.*'size'"):
        contrib.feature_column.sequence_input_layer({"size": tf.ones([2, 1])}, columns)


@pytest.mark.oldest
def test_sequences_that_are_not_equally_long_are_told():
    numbers = contrib.feature_column.sequence_numeric_column
    with _tf_switches.graph_mode(), tf.Graph().as_default(), tf.compat.v1.Session() as session:
        features = {
            "one": tf.sparse.from_dense([[1.0, 2.0], [3.0, 0.0]]),
            "two": tf.sparse.from_dense([[1.0, 2.0], [3.0, 4.0]]),
        }
        _, lengths = contrib.feature_column.sequence_input_layer(
            features, [numbers("two"), numbers("one")]
        )
        with pytest.raises(tf.errors.InvalidArgumentError, match="x == y did not hold"):
            session.run(lengths)
