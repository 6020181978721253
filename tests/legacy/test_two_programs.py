"""Programs of different times, and of the facade and of TF 2, each keep their own meaning."""

from __future__ import annotations

import importlib
import sys
import types

import pytest

from estimator2strategy import legacy
from estimator2strategy.engine import legacy_code

OLD = """
import tempfile
import tensorflow as tf

def made():
    with tf.Graph().as_default() as graph:
        v = tf.compat.v1.get_variable("v", [])
        tf.compat.v1.cond(tf.constant(True), lambda: v + 1.0, lambda: v)
    interesting = {"VariableV2", "VarHandleOp", "Merge", "If"}
    return {op.type for op in graph.get_operations()} & interesting

def dimension():
    return type(tf.TensorShape([3])[0]).__name__

def layer_names():
    class GPT2Layer(tf.keras.layers.Layer):
        pass
    with tf.Graph().as_default():
        return GPT2Layer().name.rstrip("_1")

class Noting(tf.compat.v1.train.SessionRunHook):
    def __init__(self):
        self.steps = []
    def before_run(self, run_context):
        return tf.compat.v1.train.SessionRunArgs("global_step:0")
    def after_run(self, run_context, run_values):
        self.steps.append(int(run_values.results))

def model_fn(features, labels, mode):
    step = tf.compat.v1.train.get_global_step()
    train_op = tf.compat.v1.assign_add(step, 1)
    return tf.estimator.EstimatorSpec(mode, loss=tf.reduce_mean(features), train_op=train_op)

def steps_seen():
    hook = Noting()
    model = tf.estimator.Estimator(model_fn, tempfile.mkdtemp())
    model.train(lambda: tf.data.Dataset.from_tensors([1.0]).repeat(), hooks=[hook], steps=2)
    return hook.steps

def answers():
    return [tf.__version__[:2], made(), dimension(), layer_names(), steps_seen()]
"""
MODERN = OLD.replace(
    "import tensorflow as tf\n",
    "import tensorflow, types\n"
    "import tf_keras\n"
    "from estimator2strategy import estimator\n"
    "tf = types.SimpleNamespace(**{n: getattr(tensorflow, n) for n in dir(tensorflow)\n"
    "                              if not n.startswith('_') and n != 'keras'},\n"
    "                           __version__=tensorflow.__version__,\n"
    "                           estimator=estimator, keras=tf_keras)\n",
)
OF_TF1 = ["1.", {"VariableV2", "Merge"}, "Dimension", "gp_t2layer", [1, 2]]
OF_TF2 = ["2.", {"VarHandleOp", "If"}, "int", "gpt2_layer", [0, 1]]


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """`answers` of a program of TF 1.15, one of TF 2.15, one of the facade, and TF 2 code."""
    facade = OLD.replace("import tensorflow as tf", "import estimator2strategy.tf1 as tf")
    sources = {"of_115": OLD, "of_215": OLD, "of_facade": facade, "of_today": MODERN}
    for name, source in sources.items():
        (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(legacy_code, "_added", ())
    yield lambda: {
        "of_115": (legacy.import_module("of_115"), OF_TF1),
        "of_215": (legacy.import_module("of_215", tf2=True), OF_TF2),
        "of_facade": (importlib.import_module("of_facade"), OF_TF1),
        "of_today": (importlib.import_module("of_today"), OF_TF2),
    }
    for name in sources:
        sys.modules.pop(name, None)


def test_each_program_of_a_process_has_its_own_meaning(programs):
    found = programs()
    for _ in range(2):  # each also after all others
        for name, (module, expected) in found.items():
            assert module.answers() == expected, name


def test_a_module_that_imports_the_facade_and_tf_2_has_both(monkeypatch):
    module = types.ModuleType("both")
    source = (
        "import tensorflow as tf\n"
        "import estimator2strategy.tf1 as tf1\n"
        "def made(library):\n"
        "    with library.Graph().as_default() as graph:\n"
        "        v = library.compat.v1.get_variable('v', [])\n"
        "        library.compat.v1.cond(tf.constant(True), lambda: v + 1.0, lambda: v)\n"
        "    return {op.type for op in graph.get_operations()}\n"
    )
    exec(source, vars(module))
    interesting = {"VariableV2", "VarHandleOp", "Merge", "If"}
    for _ in range(2):
        assert module.made(module.tf1) & interesting == OF_TF1[1]
        assert module.made(module.tf) & interesting == OF_TF2[1]


def test_code_of_tf_2_called_by_the_facade_builds_in_its_own_graph_as_tf_2():
    import tensorflow

    import estimator2strategy.tf1 as facade

    found = []

    def branch():
        with tensorflow.Graph().as_default():
            found.append(tensorflow.compat.v1.get_variable("v", []).op.type)
        return tensorflow.constant(1.0)

    for library in (facade, tensorflow):  # in a graph of TF 1.15, and in one of TF 2
        with library.Graph().as_default():
            facade.cond(facade.constant(True), branch, branch)
    assert set(found) == {"VarHandleOp"}
