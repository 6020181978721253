"""Each codemod makes of its samples what they say, once, and leaves alone what it must."""

from __future__ import annotations

import ast
import builtins
import re
import textwrap
from pathlib import Path

import pytest

from estimator2strategy.tools.migrate import era
from estimator2strategy.tools.migrate.apply import apply, marks
from estimator2strategy.tools.migrate.codemod import WITHOUT_CHANGES, SafetyTier, codemods
from estimator2strategy.tools.reader.project import Project
from estimator2strategy.tools.reader.python_files import parse

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
    assert [codemod for _, codemod, _ in marks(marked)] == ["imports"]
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


def commented(text):
    """The text with an empty line and a comment above each statement, and one behind it."""
    lines = text.splitlines()
    firsts, lasts = {}, {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt):
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            firsts[first] = lines[node.lineno - 1][: node.col_offset]
            if not hasattr(node, "body"):
                lasts[node.end_lineno] = f"  # behind {node.end_lineno}"
    return "".join(
        (f"\n{firsts[n]}# above {n}\n" if n in firsts else "") + line + lasts.get(n, "") + "\n"
        for n, line in enumerate(lines, 1)
    )


def without_comments(text):
    """The lines of code of a commented text, and its comments in their order."""
    comments = re.findall(r"# (?:above|behind) \d+", text)
    bare = re.sub(r" *# (?:above|behind) \d+", "", text)
    return [line for line in bare.splitlines() if line.strip()], comments


@pytest.mark.parametrize(("codemod", "sample"), SAMPLES)
def test_blank_lines_and_comments_between_statements_change_nothing_and_stay(codemod, sample):
    before = commented(sample.before)
    code, comments = without_comments(migrated(codemod, before).text)
    assert code == [line for line in sample.after.splitlines() if line.strip()]
    assert set(comments) == set(without_comments(before)[1])


def with_names_one_by_one(text):
    """The program with `from tensorflow import log` for each `tf.log`."""
    module = re.search(r"import ([\w.]+) as tf$", text, re.MULTILINE)
    names = sorted(set(re.findall(r"(?<![\w.])tf\.(\w+)", text)))
    if module is None or not names:
        return None
    line = f"from {module[1]} import {', '.join(names)}"
    return re.sub(r"(?<![\w.])tf\.(?=\w)", "", text.replace(module[0], line, 1))


def unbound(text):
    """The names that a program reads, and that nothing in it binds."""
    nodes = list(ast.walk(ast.parse(text)))
    bound = {n.asname or n.name.partition(".")[0] for n in nodes if isinstance(n, ast.alias)}
    bound |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    bound |= {n.name for n in nodes if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    names = [n for n in nodes if isinstance(n, ast.Name)]
    bound |= {n.id for n in names if isinstance(n.ctx, ast.Store)}
    return {n.id for n in names} - bound


@pytest.mark.parametrize(("codemod", "sample"), SAMPLES)
def test_names_that_are_imported_one_by_one_are_left_with_what_they_need(codemod, sample):
    before = with_names_one_by_one(sample.before)
    if before is not None:
        after = migrated(codemod, before).text
        assert unbound(after) <= unbound(before) | set(dir(builtins))


def test_comments_and_odd_layout_stay():
    text = (
        "# -*- coding: utf-8 -*-\n'''Überschrift.'''\n\nimport tensorflow as tf # one\n\n\n"
        "def f(x) :\n\treturn {\t'ä' : tf.gfile.Open( x ,  # two\n\t\t'r') }\n\x0c\n# three"
    )
    after = migrated(codemods()["gfile"], text).text
    assert after == text.replace("tf.gfile.Open", "tf.io.gfile.GFile")


LADDER = Path(__file__).resolve().parents[3] / "migration_guide" / "ladder.md"


@pytest.mark.parametrize("stage", [5])
def test_guide_shows_what_the_codemods_write(stage):
    text = LADDER.read_text(encoding="utf-8").partition(f"## Stage {stage}:")[2]
    diff = re.search(r"```diff\n(.*?)```", text, re.DOTALL)[1].splitlines()
    before, after = (
        textwrap.indent("\n".join(line[1:] for line in diff if line[0] == sign), "    ")
        for sign in "-+"
    )
    program = f"import tensorflow as tf\n\n\ndef f(loss, use_tpu, global_step):\n{before}\n"
    program = program.replace(
        "f(loss, use_tpu, global_step):\n",
        ("f(loss, use_tpu):\n    global_step = tf.train.get_global_step()\n"),
    )
    chosen = [codemod for codemod in CODEMODS if codemod.stage == stage]
    assert after in apply(program, chosen).text
