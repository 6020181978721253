"""Optimizers of Keras in a model_fn count and save what they did in TF 1.15."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tensorflow as tf

from tests import legacy_programs
from tests.same import assert_same

TESTS = Path(__file__).parents[1]
GOLDEN = json.loads((TESTS / "goldens" / "keras_optimizers.json").read_text())


@pytest.fixture(scope="module")
def program():
    with legacy_programs.imported("keras_optimizers") as program:
        yield program


@pytest.mark.parametrize("case", GOLDEN)
def test_iterations_of_a_keras_optimizer_are_those_of_tf_1_15(case, program):
    with tf.Graph().as_default():  # as where legacy code runs
        found = program.run(case)
    assert_same(json.loads(json.dumps(found)), GOLDEN[case], case)
