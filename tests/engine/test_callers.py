"""Whose code asks is found from any depth of comprehensions, calls and library functions."""

from __future__ import annotations

import builtins
import concurrent.futures
import sys
import threading

import pytest
import tensorflow as tf

from estimator2strategy.engine import callers, legacy_code
from estimator2strategy.tf1.facade import by_caller

pytestmark = pytest.mark.oldest

# Ways to ask a shape -> its first dimension.
ASKED = {
    "an index": "shape[0]",
    "a negative index": "shape[-2]",
    "a slice": "shape[:1][0]",
    "a loop": "next(iter(shape))",
    "an unpacking": "[*shape][0]",
    "a comprehension": "[d for d in shape][0]",
    "a comprehension of indices": "[shape[i] for i in range(2)][0]",
    "a generator": "next(d for d in shape)",
    "a dict": "{'d': shape[i] for i in [0]}['d']",
    "a lambda": "(lambda: shape[0])()",
    "map": "list(map(lambda i: shape[i], [0]))[0]",
    "map of its method": "list(map(shape.__getitem__, [0]))[0]",
    "operator": "__import__('operator').itemgetter(0)(shape)",
    "a nested function": "(lambda: [(lambda: shape[i])() for i in [0]])()[0]",
}
# How a module is TF 1.15's, or is not.
MODULES = {
    "legacy": ("", legacy_code.TF115, True),
    "of TF 2": ("", legacy_code.TF2, False),
    "import as": ("import estimator2strategy.tf1 as tf", None, True),
    "import of names": ("from estimator2strategy.tf1 import cond", None, True),
    "modern": ("import tensorflow as tf", None, False),
    "both": ("import tensorflow as tf, estimator2strategy.tf1 as tf1", None, False),
}


def module(name: str, source: str) -> dict:
    imports, mark, _ = MODULES[name]
    names: dict = {"__name__": "program"}
    if mark:
        names["__builtins__"] = {**vars(builtins), legacy_code.MARK: mark}
    exec(f"{imports}\n{source}", names)
    return names


@pytest.fixture(autouse=True)
def _asking():
    by_caller.tell_tensors_apart()


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("way", ASKED)
def test_a_dimension_is_what_the_asking_module_expects(way, name):
    asks = module(name, f"def ask(shape): return {ASKED[way]}")["ask"]
    assert isinstance(asks(tf.TensorShape([3, 4])), int) is not MODULES[name][2]


@pytest.mark.parametrize("name", MODULES)
def test_a_dimension_is_what_the_asking_function_expects_whoever_calls_it(name):
    inner = module("modern", "def ask(shape): return shape[0]")["ask"]
    outer = module(name, "def ask(shape, inner): return shape[0], inner(shape), shape[0]")["ask"]
    own, others, again = outer(tf.TensorShape([3]), inner)
    assert isinstance(others, int)
    assert type(own) is type(again)


def test_a_function_that_imports_the_facade_itself_asks_as_tf_1_15s():
    source = "def ask(shape):\n  import estimator2strategy.tf1 as tf\n  return shape[0]"
    assert module("modern", source)["ask"](tf.TensorShape([3])).value == 3


COMPARED = {
    "==": ("a == b", False),
    "!=": ("a != b", True),
    "in": ("a in [b, a]", True),
    "a key": ("len({a: 1, b: 2})", 2),
    "a set": ("len({x for x in [a, b, a]})", 2),
    "index": ("[b, a].index(a)", 1),
    "None": ("a == None", False),
}


@pytest.mark.parametrize("name", [name for name, (_, _, is_tf115) in MODULES.items() if is_tf115])
@pytest.mark.parametrize("way", COMPARED)
def test_tensors_are_equal_to_themselves_alone_in_loops_of_tf_1_15s_code(way, name):
    expression, expected = COMPARED[way]
    compare = module(name, f"def compare(a, b): return {expression}")["compare"]

    @tf.function(autograph=False)
    def function(a, b):
        assert compare(a, b) == expected
        return a

    function(tf.constant(1), tf.constant(1))


@pytest.mark.parametrize("name", ["of TF 2", "modern", "both"])
def test_tensors_are_compared_by_value_elsewhere(name):
    compare = module(name, "def compare(a, b): return a == b")["compare"]

    @tf.function(autograph=False)
    def function(a, b):
        assert compare(a, b).dtype == tf.bool
        return a

    function(tf.constant(1), tf.constant(1))


# Ways to run a function in a thread.
def _by_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def _by_executor(function):
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        executor.submit(function).result()


@pytest.mark.parametrize("start", [_by_thread, _by_executor])
@pytest.mark.parametrize(("name", "expected"), [("legacy", True), ("modern", False)])
def test_a_thread_knows_what_it_runs(start, name, expected):
    found = []
    runs = module(name, "def run(append, ask): return append((lambda: ask())())")["run"]
    start(lambda: runs(found.append, callers.runs_in_thread))
    assert found == [expected]


def test_the_threads_of_a_coordinator_run_tf_1_15s():
    coordinator, found = tf.compat.v1.train.Coordinator(), []

    def run():
        found.append(callers.runs_in_thread())
        coordinator.request_stop()

    looper = tf.compat.v1.train.LooperThread(coordinator, None, run)
    looper.start()
    looper.join()
    assert found == [True]


def test_a_module_that_imports_the_facade_later_is_asked_again():
    names = module("modern", "def ask(shape): return shape[0]")
    del names["tf"]
    assert names["ask"](tf.TensorShape([3])) == 3
    exec("import estimator2strategy.tf1 as tf1", names)
    assert names["ask"](tf.TensorShape([3])).value == 3


def test_frames_are_looked_at_in_one_module_of_those_that_decide():
    """The others note calls of metrics, name the user's line, or tell an import from a question."""
    root = next(iter(sys.modules["estimator2strategy"].__path__))
    found = {
        str(path.relative_to(root))
        for path in __import__("pathlib").Path(root).rglob("*.py")
        if "_getframe" in path.read_text() or "currentframe" in path.read_text()
    }
    assert found == {
        "engine/callers.py",
        "engine/libraries/served.py",
        "engine/metrics/observe.py",
        "engine/wrong_argument.py",
    }
