"""A step that updates a variable and uses it again gives TF 1.15's result where it had one."""

from __future__ import annotations

import pytest

from tests import legacy_programs, updates_table

QUICK = (
    "one loss, `b`'s optimizer made after `a`'s step",
    "swap of `a` and `b` by `tf.identity`",
    "a copy by `tf.reshape`, used after the step",
    "`tf.cond` after a step uses what was read before it",
    "table: rows looked up in the next line, without waiting for the step",
)
# TF 1.15 takes out a common factor, and its new sum no longer waits for the step.
HOISTED = (
    "target network: mixed half and half after the step",
    "target network: mixed by `tf.add_n` of halves after the step",
    "target network: mixed half and half, and a number, after the step",
    "target network: mixed after the step by a constant from before it",
)


def test_some_stable_outcomes_are_equal():
    _are_equal(QUICK)


def test_a_common_factor_is_taken_out_of_a_sum_as_in_tf_1_15():
    _are_equal(HOISTED)


def test_an_average_of_a_reference_variable_is_one_too():
    _are_equal(["moving average: read before its update, used after it"])


def _are_equal(cases):
    with legacy_programs.imported("alternating") as program:
        for case in cases:
            found = program.by_estimator(case, resource=False)
            assert " ".join(found) == updates_table.stable("reference")[case], case


@pytest.fixture(scope="module")
def found():
    return updates_table.here()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["reference", "resource"])
def test_all_stable_outcomes_are_equal(found, kind):
    stable = updates_table.stable(kind)
    assert len(stable) > 30
    assert {case: found[kind][case] for case in stable} == stable


def test_the_guide_has_the_table_of_the_golden():
    recorded, page = updates_table.golden(), updates_table.PAGE.read_text()
    assert recorded["date"] in page
    for case in recorded["outcomes"]["reference"]:
        assert f"| {case} |" in page
