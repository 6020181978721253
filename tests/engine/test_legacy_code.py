"""Legacy code is known by its module, its file, and the frame that runs it."""

from __future__ import annotations

import builtins
import sys
from types import FrameType

import pytest

from estimator2strategy.engine import legacy_code
from estimator2strategy.engine.legacy_code import Scope
from tests.test_package import in_fresh_process


@pytest.fixture
def program(tmp_path):
    """A file of a program that knows nothing of this package, and one that imports it."""
    (tmp_path / "train.py").write_text("import tensorflow as tf\n")
    (tmp_path / "migrated.py").write_text("from estimator2strategy import estimator\n")
    return tmp_path


def test_a_whole_program_is_legacy_but_for_what_is_installed_or_migrated(program):
    scope = Scope(whole_program=True)
    assert scope.holds("train", str(program / "train.py"))
    assert not scope.holds("migrated", str(program / "migrated.py"))
    assert not scope.holds("pytest", pytest.__file__)
    assert not scope.holds("built_in", None)


@pytest.mark.parametrize("name", ["json", "tensorflow.compat", "estimator2strategy.tf1", "numpy"])
def test_some_modules_are_never_legacy(name):
    assert not Scope(legacy=frozenset({name.partition(".")[0]}), whole_program=True).may_hold(name)


def test_a_named_package_is_legacy_wherever_it_comes_from():
    scope = Scope(legacy=frozenset({"bert"}), modern=("bert.tf2_*",))
    assert scope.holds("bert.modeling", pytest.__file__)
    assert not scope.holds("bert.tf2_layers", pytest.__file__)
    assert not scope.may_hold("trainer")


def test_scopes_add_up():
    both = Scope(frozenset({"a"}), ("a.new",), tf2=True) | Scope(frozenset({"b"}), graph_mode=True)
    assert both == Scope(frozenset({"a", "b"}), ("a.new",), graph_mode=True, tf2=True)


def test_what_is_added_stays_in_force(monkeypatch):
    monkeypatch.setattr(legacy_code, "_in_force", Scope())
    legacy_code.add(Scope(legacy=frozenset({"a"})))
    legacy_code.add(Scope(whole_program=True))
    assert legacy_code.scope() == Scope(frozenset({"a"}), whole_program=True)


def frame_of(marked: bool) -> FrameType:
    """A frame of code whose builtins are marked, or not."""
    names = {**vars(builtins), legacy_code.MARK: True} if marked else vars(builtins)
    found = {"__builtins__": names, "frame": sys._getframe, "__name__": "program"}
    exec("here = (lambda: frame(0))()", found)
    return found["here"]


def test_a_frame_is_legacy_by_the_mark_in_its_builtins():
    assert legacy_code.is_legacy_frame(frame_of(True))
    assert not legacy_code.is_legacy_frame(frame_of(False))


@pytest.mark.parametrize("tf2", [False, True])
def test_legacy_code_speaks_tf115_unless_the_program_was_written_for_tf2(monkeypatch, tf2):
    monkeypatch.setattr(legacy_code, "_in_force", Scope(tf2=tf2))
    assert legacy_code.works_for_tf115(frame_of(True)) is not tf2
    assert not legacy_code.works_for_tf115(None)


def test_nothing_of_it_imports_tensorflow():
    program = "import sys\nfrom estimator2strategy.engine import legacy_code, user_code\n"
    assert in_fresh_process(f"{program}print('tensorflow' in sys.modules)") == "False"
