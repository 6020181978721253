"""Heads that programs make of private parts of TF 1.15's train and measure as they did there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tensorflow as tf
from estimator2strategy.tf1.python.estimator.canned import head as head_lib
from estimator2strategy.tf1.python.estimator.canned import linear

from tests import legacy_programs
from tests.same import assert_same

GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "own_heads.json").read_text())


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    with legacy_programs.imported("own_heads") as program, tf.Graph().as_default():
        return program.run(str(tmp_path_factory.mktemp("models")))


@pytest.mark.parametrize("case", GOLDEN)
def test_a_model_trains_evaluates_and_predicts_as_in_tf_1_15(results, case):
    assert_same(json.loads(json.dumps(results[case])), GOLDEN[case], case)


def test_a_head_need_not_implement_all_of_the_interface():
    class Named(head_lib._Head):
        name = "named"

    assert Named().name == "named"
    with pytest.raises(NotImplementedError, match="Subclasses of _Head must implement"):
        Named().create_estimator_spec({}, "train", None)


def test_the_fraction_of_weights_that_are_zero():
    variables = [
        tf.Variable([0.0, 2.0]),
        [tf.Variable([[3.0, 0.0]]), tf.Variable(tf.zeros([0, 2]))],
    ]
    assert float(linear._compute_fraction_of_zero(variables)) == 0.5
