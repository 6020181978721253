"""Each rule about recorded graphs finds its failing sample, and says nothing of its passing one."""

from __future__ import annotations

import pytest
from subjects import subject

from estimator2strategy.tools.check.all_rules import rules_of
from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.checking import check_text
from estimator2strategy.tools.check.graph_samples import TPU_TRAIN_OP, tpu_model
from estimator2strategy.tools.check.levels import recorded

SAMPLED = [rule for rule in rules_of(Evidence.RECORDED) if rule.bad is not None]


def findings(text, folder):
    report = recorded.check(subject(text, folder))
    assert report.problems == ()
    return report.findings


@pytest.mark.parametrize("rule", SAMPLED, ids=lambda rule: rule.id)
def test_failing_sample_is_found(rule, tmp_path):
    found = [f for f in findings(rule.bad, tmp_path) if f.rule == rule.id]
    assert found
    assert max(f.severity for f in found) == rule.severity
    assert all(f.path == "program.py" and f.text and f.fix for f in found)
    assert all(f.evidence == Evidence.RECORDED for f in found)


@pytest.mark.parametrize("rule", SAMPLED, ids=lambda rule: rule.id)
def test_passing_sample_is_a_good_example_altogether(rule, tmp_path):
    assert [f for f in findings(rule.good, tmp_path) if f.severity > Severity.INFO] == []


@pytest.mark.parametrize("rule", SAMPLED, ids=lambda rule: rule.id)
def test_passing_sample_reads_well_too(rule):
    found = check_text(rule.good).findings
    assert [f for f in found if f.severity > Severity.INFO] == []


def test_a_train_op_that_waits_for_batch_norm_sums_all_the_same(tmp_path):
    waiting = TPU_TRAIN_OP.replace(
        "    train_op = optimizer",
        "    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):\n"
        "        train_op = optimizer",
    )
    assert waiting != TPU_TRAIN_OP
    text = tpu_model("hidden = tf.layers.batch_normalization(hidden, training=True)", waiting)
    assert [f for f in findings(text, tmp_path) if f.rule == "E2S611"] == []
