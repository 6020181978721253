"""A tree that is too large to be read as one program is read in parts."""

from __future__ import annotations

import ast
import gc
import tracemalloc
import weakref
from unittest import mock

import pytest

from estimator2strategy.tools.check import checking
from estimator2strategy.tools.check.checking import check
from estimator2strategy.tools.check.settings import Settings
from estimator2strategy.tools.migrate.codemod import SafetyTier, codemods
from estimator2strategy.tools.migrate.preview import make_plan
from estimator2strategy.tools.reader.project import Project
from estimator2strategy.tools.reader.python_files import parse
from estimator2strategy.tools.reader.source import Source, walk

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


def live(kind):
    gc.collect()
    return sum(isinstance(thing, kind) for thing in gc.get_objects())


@pytest.fixture
def projects(monkeypatch):
    """Weak references to all projects that are made."""
    made = []
    make = Project.__init__

    def noted(self, *args, **kwargs):
        made.append(weakref.ref(self))
        make(self, *args, **kwargs)

    monkeypatch.setattr(Project, "__init__", noted)
    return made


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
    before = live(Source)
    report = check([str(tmp_path)], Settings(root=tmp_path), together=1)
    assert len(report.files) == 12
    assert live(Source) <= before


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


@pytest.mark.parametrize("together", [1, 10**6])
def test_no_project_is_alive_after_a_check(tree, projects, together):
    assert check([str(tree)], Settings(root=tree), together=together).findings
    gc.collect()
    assert len(projects) == (6 if together == 1 else 1)
    assert [made for made in projects if made() is not None] == []


@pytest.mark.parametrize("together", [1, 10**6])
def test_no_project_is_alive_after_a_migration(tree, projects, together):
    chosen = [codemod for codemod in codemods().values() if codemod.stage <= 4]
    plan = make_plan([str(tree)], chosen, tier=SafetyTier.REVIEW, together=together)
    assert plan.changed
    gc.collect()
    assert projects
    assert [made for made in projects if made() is not None] == []


def test_a_part_is_freed_before_the_next_is_read(tree, projects, monkeypatch):
    alive = []
    read = checking.parse

    def counted(*args, **kwargs):
        alive.append(sum(made() is not None for made in projects))
        return read(*args, **kwargs)

    monkeypatch.setattr(checking, "parse", counted)
    check([str(tree)], Settings(root=tree), together=1)
    assert alive == [0] * 6


def test_four_parts_take_the_memory_of_one(tmp_path):
    """Each is some 30 KB of source, whose trees take megabytes."""
    for folder in "abcd":
        (tmp_path / folder).mkdir()
        functions = PROGRAM.partition("def")[2].replace("helpers.USE_TPU", "mode")
        text = "import tensorflow as tf\n" + "".join(
            f"def f{number}_{functions}" for number in range(100)
        )
        (tmp_path / folder / "train.py").write_text(text)

    def peak(*folders):
        tracemalloc.start()
        check([str(tmp_path / f) for f in folders], Settings(root=tmp_path), together=1)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak("a")  # what is imported at first
    assert peak(*"abcd") < 1.3 * peak("a")


def test_the_collector_of_cycles_is_on_again_after_a_check(tree, monkeypatch):
    assert gc.isenabled()
    check([str(tree)], Settings(root=tree))
    assert gc.isenabled()

    def failing(*args):
        assert not gc.isenabled()
        raise KeyboardInterrupt

    monkeypatch.setattr(checking, "parse", failing)
    with pytest.raises(KeyboardInterrupt):
        check([str(tree)], Settings(root=tree))
    assert gc.isenabled()


GUARDED = """\
import sys
import tensorflow as tf

class Layer:
    def build(self):
        return [x for x in self.y] if self.z else {k: -v for k, v in a.b[1:2].c(*d, e=f)}

if sys.version_info[0] > 2:
"""


def test_a_walk_gives_the_nodes_that_ast_gives_in_their_order():
    tree = ast.parse(
        GUARDED + "    match x:\n        case {'a': [1, *_]} | None:\n            pass\n"
    )
    left_out = (ast.expr_context, ast.unaryop, ast.operator, ast.cmpop, ast.boolop)
    assert walk(tree) == [node for node in ast.walk(tree) if not isinstance(node, left_out)]


def test_a_condition_is_written_out_once_for_all_that_it_guards(tmp_path):
    (tmp_path / "train.py").write_text(GUARDED + "    x = [unicode(d) for d in raw_input()]\n" * 50)
    with mock.patch.object(ast, "unparse", wraps=ast.unparse) as unparse:
        check([str(tmp_path)], Settings(root=tmp_path))
    conditions = [call for call in unparse.call_args_list if isinstance(call.args[0], ast.Compare)]
    assert 0 < len(conditions) <= 3
