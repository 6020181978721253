"""Two updates of one variable in a step: the second goes on from the first, or both start alike."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tensorflow as tf

from tests import legacy_programs

GOLDEN = json.loads((Path(__file__).parents[1] / "goldens" / "order_of_updates.json").read_text())
pytestmark = pytest.mark.slow
NO_OP = ", after a no-op"


@pytest.fixture(scope="module")
def results():
    with legacy_programs.imported("order_of_updates") as program, tf.Graph().as_default():
        return {
            kind: {case: value for case, (value,) in cases.items()}
            for kind, cases in program.results().items()
        }


@pytest.mark.parametrize("case", GOLDEN["reference"])
def test_the_second_update_of_a_reference_variable_goes_on_from_the_first(results, case):
    assert results["reference"][case] == max(GOLDEN["reference"][case])


@pytest.mark.parametrize("case", ["twice", "gan", "accumulated"])
def test_updates_of_a_resource_variable_start_from_the_value_before_the_step(results, case):
    assert results["resource"][case] == min(GOLDEN["resource"][case])


def test_what_raced_in_tf_1_15_has_one_result(results):
    assert len(GOLDEN["resource"]["assigned"]) > 1
    assert results["resource"]["assigned"] == 20.0  # ten times 2 more: the longer way wrote last


@pytest.mark.parametrize("kind", GOLDEN)
def test_a_no_op_to_wait_for_changes_nothing(results, kind):
    for case in results[kind]:
        assert results[kind][case] == results[kind][case.removesuffix(NO_OP)]
