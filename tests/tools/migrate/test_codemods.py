"""Each codemod makes of its samples what they say, once, and leaves alone what it must."""

from __future__ import annotations

import ast

import pytest

from estimator2strategy.tools.check.project import Project
from estimator2strategy.tools.check.source import parse
from estimator2strategy.tools.migrate import era, todo
from estimator2strategy.tools.migrate.apply import apply
from estimator2strategy.tools.migrate.codemod import SafetyTier, codemods
from estimator2strategy.tools.migrate.stages import WITHOUT_CHANGES

CODEMODS = list(codemods().values())
SAMPLES = [
    pytest.param(codemod, sample, id=f"{codemod.name}-{number}")
    for codemod in CODEMODS
    for number, sample in enumerate(codemod.samples, 1)
]
UNCHANGED = [
    pytest.param(codemod, text, id=f"{codemod.name}-{number}")
    for codemod in CODEMODS
    for number, text in enumerate(codemod.unchanged, 1)
]


def migrated(codemod, text, **options):
    source = parse("program.py", "program.py", text)
    Project([source])
    return apply(text, [codemod], facts=era.facts([source]), **options)


@pytest.mark.parametrize(("codemod", "sample"), SAMPLES)
def test_sample_becomes_what_it_says(codemod, sample):
    assert migrated(codemod, sample.before).text == sample.after


@pytest.mark.parametrize(("codemod", "sample"), SAMPLES)
def test_second_run_changes_nothing(codemod, sample):
    again = migrated(codemod, sample.after)
    assert again.text == sample.after
    assert not again.counts


@pytest.mark.parametrize(("codemod", "text"), UNCHANGED)
def test_program_that_must_stay_stays(codemod, text):
    outcome = migrated(codemod, text)
    assert outcome.text == text
    assert not outcome.marks


@pytest.mark.parametrize(("codemod", "sample"), SAMPLES)
def test_windows_line_ends_stay(codemod, sample):
    windows = sample.before.replace("\n", "\r\n")
    assert migrated(codemod, windows).text == sample.after.replace("\n", "\r\n")


@pytest.mark.parametrize("codemod", CODEMODS, ids=lambda codemod: codemod.name)
def test_codemod_says_what_why_and_on_what_it_rests(codemod):
    assert codemod.title
    assert not codemod.title.endswith(".")
    assert codemod.why.endswith(".")
    assert codemod.proof.endswith(".")
    assert codemod.samples
    assert codemod.unchanged
    assert codemod.stage not in WITHOUT_CHANGES
    for sample in codemod.samples:
        ast.parse(sample.before)
        ast.parse(sample.after)


@pytest.mark.parametrize(
    "codemod", [r for r in CODEMODS if r.tier is SafetyTier.REVIEW], ids=lambda r: r.name
)
def test_safe_tier_leaves_out_what_needs_a_review(codemod):
    sample = codemod.samples[0]
    outcome = migrated(codemod, sample.before, tier=SafetyTier.SAFE)
    assert all(tier is SafetyTier.SAFE for _, tier in outcome.counts)
    assert outcome.withheld[codemod.name] > 0


def test_mark_goes_when_its_reason_is_gone():
    star = "import tensorflow as tf\nfrom tensorflow import *\n\nx = tf.log(1.0)\n"
    marked = migrated(codemods()["imports"], star).text
    assert [codemod for _, codemod, _ in todo.marks(marked)] == ["imports"]
    named = marked.replace("import *", "import exp")
    assert migrated(codemods()["imports"], named).text == (
        "import estimator2strategy.tf1 as tf\n"
        "from estimator2strategy.tf1 import exp\n\nx = tf.log(1.0)\n"
    )


def test_marks_know_their_line_in_the_new_text():
    text = (
        "import tensorflow as tf\nimport tensorflow as other\n\n"
        "tf.logging.set_verbosity(tf.logging.INFO)\n\nif x:\n    tf.logging.set_verbosity(x)\n"
    )
    (mark,) = migrated(codemods()["logging"], text).marks
    after = migrated(codemods()["logging"], text).text.splitlines()
    assert after[mark.line - 1].startswith("    # TODO(e2s): logging: ")


def test_comments_and_odd_layout_stay():
    text = (
        "# -*- coding: utf-8 -*-\n'''Überschrift.'''\n\nimport tensorflow as tf # one\n\n\n"
        "def f(x) :\n\treturn {\t'ä' : tf.gfile.Open( x ,  # two\n\t\t'r') }\n\x0c\n# three"
    )
    after = migrated(codemods()["gfile"], text).text
    assert after == text.replace("tf.gfile.Open", "tf.io.gfile.GFile")
