"""What an object builds is as the program builds that made it, in graphs that nobody has marked."""

from __future__ import annotations

import importlib
import subprocess
import sys
import types
from pathlib import Path

import pytest
import tensorflow as tf
from tf_keras.api._v1.keras.__internal__.legacy import layers as layers_of_tf1
from tf_keras.api._v1.keras.__internal__.legacy import rnn_cell as cells_of_tf1

from estimator2strategy import legacy
from estimator2strategy.engine import legacy_code
from tests import fresh

ROOT = Path(__file__).parents[2]
tf1 = tf.compat.v1
REFERENCE, RESOURCE = "VariableV2", "VarHandleOp"

# Who makes objects, and calls those of others, in its own graph or in one that it is in.
SOURCE = """
import tensorflow as tf

def made(layers, cells):
    dense, cell = layers.Dense(3), cells.LSTMCell(2)
    stack = cells.MultiRNNCell([cells.GRUCell(2)])
    average = tf.compat.v1.train.ExponentialMovingAverage(0.9)
    return {
        "layer": dense,
        "cell": lambda x: cell(x, cell.zero_state(2, tf.float32)),
        "stack": lambda x: stack(x, stack.zero_state(2, tf.float32)),
        "average": lambda x: average.apply([x * 2.0]),
        "weight": lambda x: layers.Layer(name="a").add_weight("w", [3]),
    }

def own():
    return made(tf.layers, tf.nn.rnn_cell)

def call(what):
    what(tf.ones([2, 3]))

def call_in_branch(what):
    def branch():
        what(tf.ones([2, 3]))
        return tf.constant(1.0)
    tf.compat.v1.cond(tf.constant(True), branch, lambda: tf.constant(0.0))

def in_own_graph(what):
    with tf.Graph().as_default() as graph:
        call(what)
    return graph
"""


@pytest.fixture
def old(tmp_path, monkeypatch):
    """A module of a program of TF 1.15."""
    (tmp_path / "called_later.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(legacy_code, "_added", ())
    yield legacy.import_module("called_later")
    sys.modules.pop("called_later", None)


@pytest.fixture
def new():
    """A module of TF 2."""
    module = types.ModuleType("of_today")
    exec(SOURCE, vars(module))
    module.own = lambda: module.made(layers_of_tf1, cells_of_tf1)
    return module


def variables(graph):
    """The types of the ops of `graph`, and of its functions, that are variables."""
    definition = graph.as_graph_def()
    nodes = [*definition.node, *(n for f in definition.library.function for n in f.node_def)]
    return {node.op for node in nodes} & {REFERENCE, RESOURCE}


WHAT = ["layer", "cell", "stack", "average", "weight"]


@pytest.mark.parametrize("what", WHAT)
def test_an_object_of_tf_1_15_makes_reference_variables_in_a_graph_of_modern_code(old, new, what):
    assert variables(new.in_own_graph(old.own()[what])) == {REFERENCE}
    with tf.Graph().as_default() as graph:
        new.call(old.own()[what])
    assert variables(graph) == {REFERENCE}


@pytest.mark.parametrize("what", WHAT)
def test_an_object_of_tf_2_makes_resource_variables_whoever_calls_it(old, new, what):
    assert variables(new.in_own_graph(new.own()[what])) == {RESOURCE}
    with tf.Graph().as_default() as graph:
        old.call(new.own()[what])
    assert variables(graph) == {RESOURCE}


@pytest.mark.parametrize("what", ["layer", "cell", "stack"])
def test_an_object_of_tf_2_does_so_in_a_branch_of_tf_1_15s_code(old, new, what):
    with tf.Graph().as_default() as graph:
        old.call_in_branch(new.own()[what])
    assert variables(graph) == {RESOURCE}


# In a process of its own, where nothing of TF 1.15 has asked for Keras or tf.layers.
IN_BRANCH = """
import sys
import tensorflow as tf
from estimator2strategy import legacy

sys.path.insert(0, {folder!r})
{early}
old = legacy.import_module("called_later")
from tests.legacy import test_called_later
from tf_keras.api._v1.keras.__internal__.legacy import layers

with tf.Graph().as_default() as graph:
    old.call_in_branch(layers.Dense(3))
print(test_called_later.variables(graph))
"""


@pytest.mark.parametrize("early", ["", "import tf_keras"], ids=["imported later", "before"])
def test_and_where_only_tf_2s_code_has_imported_keras(tmp_path, early):
    (tmp_path / "called_later.py").write_text(SOURCE)
    command = [fresh.python(), "-c", IN_BRANCH.format(folder=str(tmp_path), early=early)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.stdout.splitlines() == [str({RESOURCE})], ran.stderr


@pytest.mark.parametrize("what", WHAT)
def test_in_a_graph_of_tf_1_15_all_variables_are_reference_variables(old, new, what):
    assert variables(old.in_own_graph(new.own()[what])) == {REFERENCE}
    assert variables(old.in_own_graph(old.own()[what])) == {REFERENCE}


def test_a_subclass_of_tf_1_15s_code_builds_as_tf_1_15(old, new):
    exec(
        "class Mine(tf.layers.Layer):\n"
        "    def build(self, shape):\n"
        "        self.w = self.add_weight('w', [3])\n"
        "        self.built = True\n"
        "    def call(self, x):\n"
        "        return tf.cond(tf.constant(True), lambda: x * self.w, lambda: x)\n",
        vars(old),
    )
    graph = new.in_own_graph(old.Mine())
    assert variables(graph) == {REFERENCE}
    assert "Merge" in {op.type for op in graph.get_operations()}


def test_a_layer_of_a_module_that_imports_nothing_but_its_class(tmp_path, monkeypatch, new):
    (tmp_path / "of_a_class.py").write_text(
        "from estimator2strategy.tf1.layers import Dense\ndef made(): return Dense(3)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    try:
        graph = new.in_own_graph(importlib.import_module("of_a_class").made())
    finally:
        sys.modules.pop("of_a_class", None)
    assert variables(graph) == {REFERENCE}
