"""Legacy code is known by its module, its file, and the frame that runs it."""

from __future__ import annotations

import builtins

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
    monkeypatch.setattr(legacy_code, "_added", ())
    legacy_code.add(Scope(legacy=frozenset({"a"})))
    legacy_code.add(Scope(whole_program=True))
    assert legacy_code.scope() == Scope(frozenset({"a"}), whole_program=True)


def test_programs_of_different_times_have_scopes_of_their_own(monkeypatch):
    monkeypatch.setattr(legacy_code, "_added", ())
    old, new = Scope(legacy=frozenset({"old"})), Scope(legacy=frozenset({"new"}), tf2=True)
    for scope in (old, new, old):
        legacy_code.add(scope)
    assert legacy_code.scope_of("old.model", None) == old
    assert legacy_code.scope_of("new", None) == new
    assert legacy_code.scope_of("other", None) is None


class Partly:
    """What this function of a module's globals is of."""

    def __init__(self, source: str, **names):
        self.names = names
        exec(source, names)

    def __getitem__(self, name):
        return self.names[name]


FUNCTIONS = """
import functools

def plain(): pass

def decorate(function):
    @functools.wraps(function)
    def call(): return function()
    return call

decorated = decorate(plain)
partial = functools.partial(plain)

class Callable:
    def __call__(self): pass
    def method(self): pass

made = Callable()
method = made.method
"""


@pytest.mark.parametrize("name", ["plain", "decorated", "partial", "made", "method"])
@pytest.mark.parametrize("mark", [None, legacy_code.TF115, legacy_code.TF2])
def test_a_function_is_of_the_program_of_its_module(name, mark):
    names = {} if mark is None else {"__builtins__": {**vars(builtins), legacy_code.MARK: mark}}
    assert legacy_code.is_of_tf115(Partly(FUNCTIONS, **names)[name]) is (mark == legacy_code.TF115)


@pytest.mark.parametrize(
    "source",
    [
        "import estimator2strategy.tf1 as tf\ndef function(): pass",
        "from estimator2strategy.tf1 import cond\ndef function(): pass",
        "from estimator2strategy.tf1.train import get_or_create_global_step\ndef function(): pass",
        "from estimator2strategy.tf1 import contrib\ndef function(): pass",
        "from estimator2strategy.tf1.estimator import Estimator\ndef function(): pass",
        "def function():\n  import estimator2strategy.tf1 as tf",
        "def function():\n  from estimator2strategy import tf1",
        "import estimator2strategy\ndef function(): return estimator2strategy.tf1.ones",
        "def outer():\n  import estimator2strategy.tf1 as tf\n  return lambda: tf.ones\n"
        "function = outer()",
    ],
)
def test_a_function_is_tf_1_15s_where_its_module_or_itself_imports_the_facade(source):
    assert legacy_code.is_of_tf115(Partly(source)["function"])


@pytest.mark.parametrize(
    "source",
    [
        "import tensorflow as tf\ndef function(): pass",
        "from estimator2strategy import estimator\ndef function(): pass",
        "import estimator2strategy as e2s\ndef function(): return e2s.Estimator",
        "from estimator2strategy.engine.names import name_table\ndef function(): pass",
    ],
)
def test_other_functions_are_not_tf_1_15s(source):
    assert not legacy_code.is_of_tf115(Partly(source)["function"])


def test_nothing_of_it_imports_tensorflow():
    program = "import sys\nfrom estimator2strategy.engine import legacy_code, user_code\n"
    assert in_fresh_process(f"{program}print('tensorflow' in sys.modules)") == "False"
