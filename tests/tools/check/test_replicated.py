"""One step on emulated cores against one device: what differs, and why."""

from __future__ import annotations

import pytest
from graph_samples import VARIED_INPUT
from subjects import subject

from estimator2strategy.tools.check.check_report import Evidence, Outcome
from estimator2strategy.tools.check.levels import memory, replicated_step
from estimator2strategy.tools.check.rule import rules, rules_of

SAMPLED = [rule for rule in rules_of(Evidence.REPLICATED) if rule.text.flagged]


CORES = 2
_REPORTS = {}  # what was checked before is not checked again


@pytest.fixture
def checked(emulated_cores, tmp_path):
    emulated_cores(CORES)

    def check(text, **asked):
        key = (text, *sorted(asked))
        if key not in _REPORTS:
            made = subject(text, tmp_path, cores=CORES, **asked)
            _REPORTS[key] = replicated_step.check(made)
        return _REPORTS[key]

    return check


@pytest.mark.parametrize("rule", SAMPLED, ids=lambda rule: rule.name)
def test_cause_is_named(rule, checked):
    report = checked(rule.text.flagged)
    assert report.problems == ()
    assert [v.outcome for v in report.verdicts] == [Outcome.FAILED]
    loud = [f for f in report.findings if f.rule != "E2S625"]
    assert [(f.rule, f.severity, f.evidence) for f in loud] == [
        (rule.id, rule.severity, Evidence.REPLICATED)
    ]
    assert loud[0].path == "program.py"
    assert loud[0].line > 1


@pytest.mark.parametrize("rule", SAMPLED, ids=lambda rule: rule.name)
def test_passing_sample_is_the_same_on_cores(rule, checked):
    report = checked(rule.text.clean)
    assert report.problems == ()
    assert [v.outcome for v in report.verdicts] == [Outcome.PASSED]
    assert report.findings == ()


def test_first_tensor_that_differs_is_named_and_what_drifts(checked):
    report = checked(rules()["E2S620"].text.flagged)
    said = [f.message for f in report.findings if f.rule == "E2S620"]
    assert "the first tensor that differs: batch_normalization/" in said[0]
    drifting = [f.message for f in report.findings if f.rule == "E2S625"]
    assert any("batch_normalization/moving_mean" in message for message in drifting)


def test_summed_gradients_are_told_from_a_summed_loss(checked):
    text = rules()["E2S621"].text.clean.replace(
        "Optimizer(1e-4))", "Optimizer(1e-4), reduction=tf.losses.Reduction.SUM)"
    )
    (found,) = checked(text).findings
    assert found.rule == "E2S621"
    assert "2 times as much" in found.message
    assert "gradients are summed over the cores" in found.message


def test_batch_that_cores_cannot_share_is_uneven_and_no_problem_of_the_check(checked):
    text = rules()["E2S621"].text.clean.replace('params["batch_size"]', "15")
    report = checked(text)
    assert report.problems == ()
    assert [f.rule for f in report.findings] == ["E2S623"]
    assert "a batch of 15 examples" in report.findings[0].message


def test_random_numbers_leave_it_open(checked):
    text = rules()["E2S621"].text.clean.replace(
        'features["x"], 1', 'tf.nn.dropout(features["x"], 0.5), 1'
    )
    report = checked(text)
    assert report.findings == ()
    assert report.verdicts[0].outcome is Outcome.UNKNOWN
    assert "random numbers" in report.verdicts[0].message


EVALUATED = """\
def model_fn(features, labels, mode, params):
    predicted = tf.layers.dense(features["x"], 1)
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.tpu.TPUEstimatorSpec(mode, predictions={"y": predicted})
    loss = tf.losses.mean_squared_error(labels, predicted)
    metric = lambda labels, y: {"error": tf.metrics.mean_absolute_error(labels, y)}
    metrics = (metric, [labels, predicted])
    return tf.estimator.tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics)
"""


def test_metrics_and_predictions_are_compared_too(checked):
    report = checked(VARIED_INPUT + EVALUATED, modes=("eval", "predict"))
    assert [v.outcome for v in report.verdicts] == [Outcome.PASSED] * 2
    (table,) = [f for f in report.facts if getattr(f, "title", "") == "eval: one step"]
    assert [row[0] for row in table.rows] == ["loss", "metric error"]
    assert all(one == pytest.approx(cores, rel=1e-4) for _, one, cores in table.rows)


def test_input_without_data_is_said(checked):
    text = rules()["E2S621"].text.clean.replace(".repeat()", ".take(3)")
    report = checked(text)
    assert "input_fn has no data" in report.problems[0]


def test_more_memory_than_there_is_is_refused_before_it_is_taken(checked, monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 100.0)
    report = checked("# a larger one\n" + rules()["E2S621"].text.clean)
    assert "3 copies of the variables need" in report.problems[0]
    assert "100 bytes left" in report.problems[0]
