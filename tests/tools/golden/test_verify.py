"""Goldens that the real TPUEstimator recorded: ours passes every tier, and mistakes do not."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy.estimator import Estimator
from estimator2strategy.tools.golden import output, tiers, verify
from estimator2strategy.tools.golden.recorder.feeds import Feed
from tests.tools.golden.parity_replay import GOLDENS, details, program, replayed, statuses


@pytest.fixture(scope="module")
def whole():
    """The comparison on all tiers but the cores'."""
    return replayed()


def test_the_golden_of_tf_1_15_passes_every_tier_on_the_host(whole):
    assert statuses(whole) == {
        "contract": "PASSED",
        "forward": "PASSED",
        "one step": "PASSED",
        "N steps": "PASSED",
        "replicas": "UNCHECKED",
        "evaluation": "PASSED",
        "export": "PASSED",
    }
    assert whole.exit_code == 0
    assert whole.cause == ""


def test_each_check_has_its_tolerance_and_slack(whole):
    checks = [check for tier in whole.tiers for check in tier.checks if tier.name != "replicas"]
    assert all(check.tolerance and check.slack for check in checks)
    (losses,) = (check for check in checks if check.what == "loss of each step")
    assert losses.share is not None
    assert losses.share < 0.1


def test_a_bias_before_batch_norm_is_left_out_as_rounding(whole):
    assert "6 tensors, 1 of them only rounding" in details(whole, "one step")


@pytest.mark.oldest
def test_dropout_is_compared_since_its_draws_are_fed():
    comparison = replayed("parity_dropout_tf215", dropout="0.3")
    expected = dict.fromkeys(statuses(comparison), "PASSED") | {"replicas": "UNCHECKED"}
    assert statuses(comparison) == expected, output.text_of(comparison)
    assert comparison.golden.about["train"]["draws"][0]["shape"] == [16, 8]


@pytest.mark.slow
def test_eight_cores_do_what_one_device_did(emulated_cores):
    emulated_cores(8)
    comparison = replayed(what=("train",), cores=8)
    text = details(comparison, "replicas")
    assert "whole batch on each core (8): passed" in text
    assert "batch dealt out to the cores (8): explained batch norm averages" in text
    assert "predictions (8): passed" in text


def test_cores_that_no_optimizer_sums_over_are_not_checked_and_the_rest_is(
    emulated_cores, monkeypatch
):
    emulated_cores(2)
    tpu = program().tf.tpu
    monkeypatch.setattr(tpu, "CrossShardOptimizer", lambda optimizer, reduction: optimizer)
    comparison = replayed(what=("train",), cores=2)
    assert comparison.exit_code == 0
    assert statuses(comparison)["N steps"] == "PASSED"
    (check,) = details(comparison, "replicas").splitlines()
    assert "not checked the gradients are not summed over the cores" in check
    assert "Give the program its flags for a TPU" in check


# Mistake -> the first tier that sees it, and what is said of it.
MISTAKES = {
    "sum for mean": ("forward", "16 times the golden's: a sum for a mean"),
    "skipped update ops": ("one step", "norm/moving_mean, norm/moving_variance did not move"),
    "shifted learning rate": ("N steps", "0.5 times the golden's: another learning rate"),
    "swapped betas": (
        "one step",
        "slots differ (hidden/kernel/Adam, hidden/kernel/Adam_1): other",
    ),
}


# Long, and found at a tier where others are found, or later; CI looks for them, too.
LONG = {"skipped update ops", "shifted learning rate"}


@pytest.mark.parametrize(
    "mistake", [pytest.param(m, marks=[pytest.mark.slow] if m in LONG else []) for m in MISTAKES]
)
def test_a_mistake_is_found_at_its_tier(mistake):
    comparison = replayed(what=("train",), mutation=mistake)
    tier, cause = MISTAKES[mistake]
    assert comparison.exit_code == 1
    failed = comparison.first_failure
    assert failed is not None
    assert failed[0].name == tier
    assert cause in comparison.cause
    failures = ElementTree.fromstring(output.junit_of(comparison)).findall(".//failure")
    assert cause in failures[0].text


@pytest.fixture(scope="module")
def raced():
    """The comparison with a golden of TF 1.15 whose first step moved the weights; ours does not."""
    program = GOLDENS.parent / "programs" / "warmup.py"
    golden = verify.read(str(GOLDENS / "warmup_tf115"))
    return verify.verified(golden, {"program": [str(program)]}, 0)[0]


def test_a_race_of_the_original_is_shown_as_such_and_is_no_difference(raced):
    first = raced.golden.results["train/updates"][0]
    assert first.any()
    assert not raced.here.results["train/updates"][0, 1:].any()  # but for the global step
    assert statuses(raced)["one step"] == statuses(raced)["N steps"] == "EXPLAINED"
    assert raced.exit_code == 0
    said = output.text_of(raced)
    assert said.startswith("the same model: ")
    assert "the original races, see the note" in said
    assert "the program races: step 1 run again from the same values gives other updates" in said


def test_on_cores_a_program_that_races_is_no_difference_either(raced):
    """TF 1.15's strategy adds the losses of replicas where no optimizer has scaled them."""
    program = GOLDENS.parent / "programs" / "warmup.py"
    golden = verify.read(str(GOLDENS / "warmup_tf115"))
    found = verify.verified(golden, {"program": [str(program)]}, 2)[0]
    assert statuses(found)["replicas"] == "EXPLAINED"
    assert found.exit_code == 0
    assert "does not take its gradients by minimize" in details(found, "replicas")
    assert "11.4804 in the golden, 22.96081 here" in details(found, "replicas")


def test_a_difference_beside_a_race_is_still_found(raced):
    results = dict(raced.here.results)
    results["train/updates"] = raced.here.results["train/updates"] + 3.0  # of no run there
    other = tiers.comparison(raced.golden, raced.here._replace(results=results), ())
    assert other.exit_code == 1
    assert "differ in tier 'one step', updates" in output.text_of(other)


def test_the_first_step_and_tensor_that_differ_are_named():
    comparison = replayed(what=("train",), mutation="shifted learning rate")
    text = details(comparison, "N steps")
    assert re.search(r"first at step 5, update of \S+: norm \S+ in the golden, \S+ here", text)


@pytest.mark.slow
def test_mistakes_on_cores_alone_are_found_there_alone(emulated_cores, monkeypatch):
    emulated_cores(4)
    monkeypatch.setattr(tf.compat.v1, "boolean_mask", lambda values, real: values)
    comparison = replayed(what=("train",), mutation="sum over cores", cores=4)
    failed = [name for name, status in statuses(comparison).items() if status == "FAILED"]
    assert failed == ["replicas"]
    whole, _, predictions = details(comparison, "replicas").splitlines()
    assert whole.startswith("whole batch on each core (4): FAILED first at step 1, update of")
    assert "predictions (4): FAILED shape [56] in the golden, [64] here" in predictions


def test_a_dropped_last_batch_is_found_in_evaluation(monkeypatch):
    stops = Estimator._eval_stops
    monkeypatch.setattr(Estimator, "_eval_stops", lambda self, steps: stops(self, steps - 1))
    comparison = replayed(what=("train", "evaluate"))
    failed = comparison.first_failure
    assert failed is not None
    assert failed[0].name == "evaluation"
    assert "shape [4] in the golden, [3] here" in details(comparison, "evaluation")
    assert "metric accuracy: FAILED" in details(comparison, "evaluation")


def test_padding_that_is_kept_is_found_in_evaluation(monkeypatch):
    feed = Feed.feed

    def padded(self, session):
        fed = feed(self, session)
        return {
            t: np.concatenate([v, np.repeat(v[:1], 16 - len(v), axis=0)]) for t, v in fed.items()
        }

    monkeypatch.setattr(Feed, "feed", padded)
    comparison = replayed(what=("train", "evaluate", "predict"))
    assert [name for name, status in statuses(comparison).items() if status == "FAILED"] == [
        "forward",  # its predictions: one row for each example
        "evaluation",
    ]
    assert "metric first class: FAILED" in details(comparison, "evaluation")
    assert "predictions class: FAILED shape [56] in the golden, [64] here" in details(
        comparison, "evaluation"
    )


def test_the_page_has_its_plots_in_itself(whole):
    text = output.page(whole)
    assert text.count("<svg") == 3
    assert not re.search(r"https?://|<script|<link|<img", text)
    assert text.count("<circle") > 3 * 20


def test_json_says_what_the_table_says(whole):
    found = json.loads(output.json_of(whole))
    assert found["verdict"] == "same"
    assert found["versions"]["golden"]["tensorflow"] == "1.15.5"
    assert {t["tier"]: t["status"].upper() for t in found["tiers"]} == statuses(whole)
    assert len(found["losses"]["golden"]) == 20


def test_junit_has_a_case_for_each_check(whole):
    suites = ElementTree.fromstring(output.junit_of(whole))
    cases = [(suite.get("name"), case.get("name")) for suite in suites for case in suite]
    assert cases == [(t.name, c.what) for t in whole.tiers for c in t.checks]
    assert suites.find("testsuite[@name='replicas']").get("skipped") == "1"
    assert not suites.findall(".//failure")


def test_wider_tolerances_of_a_tier_let_its_differences_pass():
    found = replayed(what=("train",), mutation="shifted learning rate")
    assert [name for name, status in statuses(found).items() if status == "FAILED"] == ["N steps"]
    wider = tiers.comparison(found.golden, found.here, (), {"N steps": 1e4})
    assert wider.exit_code == 0
    assert "tolerances: N steps 10000 x as wide" in output.text_of(wider)
    of_another = tiers.comparison(found.golden, found.here, (), {"one step": 1e4})
    assert of_another.exit_code == 1


def test_narrower_tolerances_find_smaller_differences(whole):
    narrow = tiers.comparison(whole.golden, whole.here, (), {"N steps": 1e-6})
    failed = narrow.first_failure
    assert failed is not None
    assert failed[0].name == "N steps"
    assert failed[1].tolerance == "1e-10 relative + 1e-11"


def test_tolerances_are_read_for_all_tiers_or_for_one():
    options = verify.parser().parse_args(
        ["golden", "--tolerance", "10", "--tolerance", "one-step=2"]
    )
    assert options.tolerance[0] == dict.fromkeys(tiers.MEASURED, 10.0)
    assert options.tolerance[1] == {"one step": 2.0}


@pytest.mark.parametrize("given", ["0", "-1", "inf", "nan", "contract=2", "ten", "one-step="])
def test_a_tolerance_that_is_none_is_refused(given, capsys):
    with pytest.raises(SystemExit):
        verify.parser().parse_args(["golden", f"--tolerance={given}"])
    assert "give a number above 0, or TIER=NUMBER with one of forward" in capsys.readouterr().err
