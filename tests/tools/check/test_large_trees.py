"""A tree that is too large to be read as one program is read in parts."""

from __future__ import annotations

import gc

import pytest

from estimator2strategy.tools.check.checking import check
from estimator2strategy.tools.check.project import Project
from estimator2strategy.tools.check.settings import Settings
from estimator2strategy.tools.check.source import Source, parse

PROGRAM = """\
import tensorflow as tf

import helpers

def model_fn(features, labels, mode):
    if tf.__version__ < '2':
        loss = tf.no_such_name(features)
    if helpers.USE_TPU:
        return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=loss)
"""


@pytest.fixture
def tree(tmp_path):
    for folder in "abc":
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "helpers.py").write_text("USE_TPU = False\n")
        (tmp_path / folder / "train.py").write_text(PROGRAM)
    return tmp_path


def live_sources():
    gc.collect()
    return sum(isinstance(thing, Source) for thing in gc.get_objects())


def test_the_parts_have_the_findings_of_the_whole(tree):
    settings = Settings(root=tree)
    whole = check([str(tree)], settings)
    parts = check([str(tree)], settings, together=len(PROGRAM) + 30)
    assert {finding.path for finding in whole.findings} == {
        "a/train.py",
        "b/train.py",
        "c/train.py",
    }
    assert parts.findings == whole.findings
    assert parts.files == whole.files


def test_the_report_says_how_many_parts(tree):
    report = check([str(tree)], Settings(root=tree), together=len(PROGRAM) + 30)
    (note,) = (place for place in report.not_checked if place.path == "all files")
    assert "read in 3 parts" in note.why


def test_a_file_that_is_larger_than_a_part_is_read(tree):
    found = check([str(tree)], Settings(root=tree), together=1).findings
    assert found == check([str(tree)], Settings(root=tree)).findings


def test_what_was_read_is_freed(tmp_path):
    for number in range(12):
        (tmp_path / f"train_{number}.py").write_text(PROGRAM)
    before = live_sources()
    report = check([str(tmp_path)], Settings(root=tmp_path), together=1)
    assert len(report.files) == 12
    assert live_sources() <= before


def test_modules_outside_are_read_as_far_as_there_is_room(tmp_path):
    """Not only what is checked takes memory, but what it imports."""
    for number in range(40):
        (tmp_path / f"part_{number}.py").write_text(f"X = {number}\n" + "#" * 100)
    imports = "".join(f"import part_{number}\n" for number in range(40))
    uses = "".join(f"part_{number}.X.y()\n" for number in range(40))
    source = parse(str(tmp_path / "train.py"), "train.py", imports + uses)
    project = Project([source], most=1000)
    for call in source.calls:
        source.name(call.node.func, call.scope)
    paths = [str(tmp_path / f"part_{number}.py") for number in range(40)]
    assert 5 < sum(project.load(path) is not None for path in paths) < 15
