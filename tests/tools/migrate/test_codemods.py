"""Each codemod makes of its samples what they say, once, and leaves alone what it must."""

from __future__ import annotations

import ast

import pytest

from estimator2strategy.tools.check.project import Project
from estimator2strategy.tools.check.source import parse
from estimator2strategy.tools.migrate import era, todo
from estimator2strategy.tools.migrate.apply import apply
from estimator2strategy.tools.migrate.codemod import Tier, rules
from estimator2strategy.tools.migrate.stages import WITHOUT_CHANGES

RULES = list(rules().values())
SAMPLES = [
    pytest.param(rule, sample, id=f"{rule.name}-{number}")
    for rule in RULES
    for number, sample in enumerate(rule.samples, 1)
]
UNCHANGED = [
    pytest.param(rule, text, id=f"{rule.name}-{number}")
    for rule in RULES
    for number, text in enumerate(rule.unchanged, 1)
]


def migrated(rule, text, **options):
    source = parse("program.py", "program.py", text)
    Project([source])
    return apply(text, [rule], facts=era.facts([source]), **options)


@pytest.mark.parametrize(("rule", "sample"), SAMPLES)
def test_sample_becomes_what_it_says(rule, sample):
    assert migrated(rule, sample.before).text == sample.after


@pytest.mark.parametrize(("rule", "sample"), SAMPLES)
def test_second_run_changes_nothing(rule, sample):
    again = migrated(rule, sample.after)
    assert again.text == sample.after
    assert not again.counts


@pytest.mark.parametrize(("rule", "text"), UNCHANGED)
def test_program_that_must_stay_stays(rule, text):
    outcome = migrated(rule, text)
    assert outcome.text == text
    assert not outcome.marks


@pytest.mark.parametrize(("rule", "sample"), SAMPLES)
def test_windows_line_ends_stay(rule, sample):
    windows = sample.before.replace("\n", "\r\n")
    assert migrated(rule, windows).text == sample.after.replace("\n", "\r\n")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_rule_says_what_why_and_on_what_it_rests(rule):
    assert rule.title
    assert not rule.title.endswith(".")
    assert rule.why.endswith(".")
    assert rule.proof.endswith(".")
    assert rule.samples
    assert rule.unchanged
    assert rule.stage not in WITHOUT_CHANGES
    for sample in rule.samples:
        ast.parse(sample.before)
        ast.parse(sample.after)


@pytest.mark.parametrize("rule", [r for r in RULES if r.tier is Tier.REVIEW], ids=lambda r: r.name)
def test_safe_tier_leaves_out_what_needs_a_review(rule):
    sample = rule.samples[0]
    outcome = migrated(rule, sample.before, tier=Tier.SAFE)
    assert all(tier is Tier.SAFE for _, tier in outcome.counts)
    assert outcome.withheld[rule.name] > 0


def test_mark_goes_when_its_reason_is_gone():
    star = "import tensorflow as tf\nfrom tensorflow import *\n\nx = tf.log(1.0)\n"
    marked = migrated(rules()["imports"], star).text
    assert [rule for _, rule, _ in todo.marks(marked)] == ["imports"]
    named = marked.replace("import *", "import exp")
    assert migrated(rules()["imports"], named).text == (
        "import estimator2strategy.tf1 as tf\n"
        "from estimator2strategy.tf1 import exp\n\nx = tf.log(1.0)\n"
    )


def test_marks_know_the_line_as_it_was_and_as_it_becomes():
    text = (
        "import tensorflow as tf\nimport tensorflow as other\n\n"
        "tf.logging.set_verbosity(tf.logging.INFO)\n\nif x:\n    tf.logging.set_verbosity(x)\n"
    )
    (mark,) = migrated(rules()["logging"], text).marks
    lines = text.splitlines()
    assert lines[mark.line - 1] == "    tf.logging.set_verbosity(x)"
    after = migrated(rules()["logging"], text).text.splitlines()
    assert after[mark.new_line - 1].startswith("    # TODO(e2s): logging: ")


def test_comments_and_odd_layout_stay():
    text = (
        "# -*- coding: utf-8 -*-\n'''Überschrift.'''\n\nimport tensorflow as tf # one\n\n\n"
        "def f(x) :\n\treturn {\t'ä' : tf.gfile.Open( x ,  # two\n\t\t'r') }\n\x0c\n# three"
    )
    after = migrated(rules()["gfile"], text).text
    assert after == text.replace("tf.gfile.Open", "tf.io.gfile.GFile")
