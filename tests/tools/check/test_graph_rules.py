"""Each rule about recorded graphs finds its failing sample, and says nothing of its passing one."""

from __future__ import annotations

import pytest
from graph_samples import TPU_TRAIN_OP, tpu_model
from subjects import subject

from estimator2strategy.tools.check.check_report import Evidence, Severity
from estimator2strategy.tools.check.checking import check_text
from estimator2strategy.tools.check.levels import recorded
from estimator2strategy.tools.check.rule import rules_of

SAMPLED = [rule for rule in rules_of(Evidence.RECORDED) if rule.text.flagged]


def findings(text, folder):
    report = recorded.check(subject(text, folder))
    assert report.problems == ()
    return report.findings


@pytest.mark.parametrize("rule", SAMPLED, ids=lambda rule: rule.id)
def test_failing_sample_is_found(rule, tmp_path):
    everything = findings(rule.text.flagged, tmp_path)
    lines = [f"{f.line}:{f.column} {f.rule} {f.severity}: {f.message}" for f in everything]
    assert tuple(line.replace(f"{tmp_path}/", "") for line in lines) == rule.text.findings
    found = [f for f in everything if f.rule == rule.id]
    assert max(f.severity for f in found) == rule.severity
    assert all(f.path == "program.py" and f.text and f.fix for f in found)
    assert all(f.evidence == Evidence.RECORDED for f in found)


@pytest.mark.parametrize("rule", SAMPLED, ids=lambda rule: rule.id)
def test_passing_sample_is_a_good_example_altogether(rule, tmp_path):
    assert [f for f in findings(rule.text.clean, tmp_path) if f.severity > Severity.INFO] == []


@pytest.mark.parametrize("rule", SAMPLED, ids=lambda rule: rule.id)
def test_passing_sample_reads_well_too(rule):
    found = check_text(rule.text.clean).findings
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


@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_the_messages_of_assertions_are_no_texts_on_a_core(dtype, tmp_path):
    assertions = (
        f"    ids = tf.cast(features['x'], tf.{dtype})\n"
        "    more = [ids, tf.constant(4, ids.dtype)]\n"
        "    waits = [getattr(tf, f'assert_{name}')(*more, data=['seen', ids], message='why') "
        "for name in ('equal', 'none_equal', 'less', 'less_equal', 'greater', 'greater_equal')]\n"
        "    waits += [getattr(tf, f'assert_{name}')(ids, message='why') "
        "for name in ('negative', 'non_negative', 'positive', 'non_positive')]\n"
        "    waits += [tf.debugging.assert_rank_in(ids, [1, tf.rank(ids)]), tf.assert_rank(ids, "
        "tf.rank(ids)), tf.debugging.assert_near(features['x'], 1.0)]\n"
        "    waits += [tf.Assert(tf.reduce_all(ids < tf.cast(9, ids.dtype)), ['too large', ids])]\n"
        "    with tf.control_dependencies([wait for wait in waits if wait is not None]):\n"
        "        features = {'x': tf.identity(features['x'])}\n"
    )
    text = tpu_model("hidden = hidden + 0", TPU_TRAIN_OP)
    head = "    hidden = tf.layers.dense"
    assert head in text
    found = findings(text.replace(head, assertions + head, 1), tmp_path)
    assert [f.message for f in found if f.rule == "E2S603"] == []
    used = "    features['x'] += tf.cast(tf.strings.length(tf.constant('text')), tf.float32)\n"
    found = findings(text.replace(head, used + head, 1), tmp_path)
    assert [f.rule for f in found if f.rule == "E2S603"] == ["E2S603"]
