"""The front door: what importing the package does, what it must leave alone, what it offers."""

from __future__ import annotations

import ast
import collections
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import estimator2strategy
from tests import fresh

pytestmark = pytest.mark.oldest

ROOT = Path(__file__).resolve().parent.parent
# TensorFlow 1.15 has a class of this name in two places: `tf.estimator` and `tf.contrib`.
NAMES_OF_TENSORFLOW = {
    *("Estimator", "Head", "ModeKeys", "RunConfig"),
    # Those of tf.estimator, and of tf.contrib.learn.
    *(
        model + kind
        for model in ("DNN", "DNNLinearCombined", "Linear")
        for kind in ("Classifier", "Estimator", "Regressor")
    ),
}


def in_fresh_process(program: str, python: str = sys.executable, **environment: str) -> str:
    """The output of a Python program that starts with nothing imported, or in another `python`."""
    result = subprocess.run(
        [python, "-c", program],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_import_does_not_import_tensorflow():
    imported = in_fresh_process("import sys, estimator2strategy; print(sorted(sys.modules))")
    packages = {name.partition(".")[0] for name in ast.literal_eval(imported)}
    assert "estimator2strategy" in packages
    assert packages.isdisjoint({"tensorflow", "keras", "tf_keras", "numpy", "absl"})


def test_private_symbols_of_tensorflow_come_from_two_modules():
    """The others would break without a test that names the symbol when TensorFlow moves one."""
    package = ROOT / "estimator2strategy"
    private = re.compile(
        r"^ *(from|import) (tensorflow\.(python|compiler|tsl)|keras\.src|tf_keras\.src)\b",
        re.MULTILINE,
    )
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if private.search(path.read_text())
    }
    assert found == {"engine/_tf_private.py", "engine/_tf_switches.py"}


def test_import_is_quick():
    """Counted in modules, which a machine under load does not change: each takes a millisecond."""
    count = in_fresh_process(
        "import sys; before = set(sys.modules); import estimator2strategy;"
        "print(len(set(sys.modules) - before))"
    )
    assert int(count) < 60  # measured: 31, all but one of Python itself


SETTINGS = """
import builtins, logging, os, signal, sys, warnings

OURS = ("DeepImports", "LibraryFinder", "LackingFinder")

def settings():
    return {
        "environment": dict(os.environ),
        "import": builtins.__import__,
        # One finds modules of the facade, two libraries that were written for Estimators.
        "finders": [f for f in sys.meta_path if type(f).__name__ not in OURS],
        "path": list(sys.path),
        "hooks": (sys.excepthook, sys.displayhook, sys.getprofile(), sys.gettrace()),
        "handlers": (list(logging.getLogger().handlers), logging.getLogger().level),
        "signals": [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)],
        "warnings": list(warnings.filters),
        "directory": os.getcwd(),
    }

def changed(before):
    return sorted(name for name, value in settings().items() if value != before[name])
"""


def test_import_leaves_the_interpreter_alone():
    changed = in_fresh_process(
        f"{SETTINGS}\nbefore = settings()\nimport estimator2strategy\nprint(changed(before))"
    )
    assert changed == "[]"


def test_using_it_leaves_the_interpreter_alone_once_tensorflow_is_imported():
    changed = in_fresh_process(
        f"{SETTINGS}\n"
        "import tensorflow, keras, tf_keras\n"
        "before = settings()\n"
        "import estimator2strategy\n"
        "[getattr(estimator2strategy, name) for name in estimator2strategy.__all__]\n"
        "print(changed(before))"
    )
    assert changed == "[]"


TENSORFLOW = """
import tensorflow as tf, tensorflow.compat.v1 as tf1

def state():
    return {
        "eager": tf.executing_eagerly(),
        "v2 shapes": isinstance(tf.TensorShape([1])[0], int),
        "control flow v2": tf1.control_flow_v2_enabled() == True,
        "resource variables": tf1.resource_variables_enabled() == True,
        "keras": tf.keras.__version__,
        "verbosity": tf1.logging.get_verbosity(),
        "functions": [functions_of(m) for m in (tf1, tf1.train, tf1.metrics, tf1.tpu)],
    }

def functions_of(module):
    return {name: value for name, value in vars(module).items() if callable(value)}
"""


def test_facade_leaves_tensorflow_alone():
    """In modules of others: one that imports the facade speaks TF 1.15."""
    changed = in_fresh_process(
        f"of_others = {{}}\nexec({TENSORFLOW!r}, of_others)\n"
        "state = of_others['state']\n"
        "before = state()\n"
        "import estimator2strategy.tf1 as facade\n"
        "facade.layers, facade.nn.rnn_cell, facade.estimator, facade.contrib, facade.keras\n"
        "print(sorted(name for name, value in state().items() if value != before[name]))"
    )
    assert changed == "[]"


def test_eager_code_may_name_a_device_that_is_not_there_after_a_training():
    """TensorFlow settles that when it starts its devices, and a graph is the first to need them."""
    where = in_fresh_process(
        """
import tempfile
import tensorflow as tf
from estimator2strategy import Estimator, EstimatorSpec

def model_fn(features, mode):
    step = tf.compat.v1.train.get_global_step()
    loss = tf.cast(tf.reduce_mean(features), tf.float32)
    return EstimatorSpec(mode, loss=loss, train_op=step.assign_add(1))

Estimator(model_fn, tempfile.mkdtemp()).train(lambda: tf.data.Dataset.range(2).map(abs))
with tf.device("/GPU:7"):
    print(tf.ones([]).device.split(":")[-2])
""",
        fresh.python(),
    )
    assert where == "CPU"


def test_environment_variable_asks_for_emulated_cores():
    devices = in_fresh_process(
        "import estimator2strategy as e2s; e2s.TPUEstimator; import tensorflow as tf;"
        "print(len(tf.config.list_logical_devices('CPU')))",
        E2S_EMULATE_TPU_CORES="4",
    )
    assert devices == "4"


@pytest.mark.parametrize("name", estimator2strategy.__all__)
def test_public_name_resolves(name):
    assert getattr(estimator2strategy, name) is not None


@pytest.mark.parametrize("name", ["estimator", "legacy", "tf1"])
def test_public_module_needs_no_import_of_its_own(name):
    module = in_fresh_process(
        f"import sys, estimator2strategy as e2s; assert 'estimator2strategy.{name}' not in"
        f" sys.modules; print(e2s.{name}.__name__)"
    )
    assert module == f"estimator2strategy.{name}"


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Trainer'"):
        _ = estimator2strategy.Trainer


def test_version_is_that_of_pyproject_and_of_the_changelog():
    pyproject = (ROOT / "pyproject.toml").read_text()
    changelog = (ROOT / "CHANGELOG.md").read_text()
    version = estimator2strategy.__version__
    assert re.search(r'^version = "(.+)"$', pyproject, re.MULTILINE)[1] == version
    assert re.search(r"^## (\d\S*)", changelog, re.MULTILINE)[1] == version


def test_a_class_name_means_one_class():
    package = Path(estimator2strategy.__file__).parent
    modules = collections.defaultdict(list)
    for path in sorted(package.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[node.name].append(path.relative_to(package).as_posix())
    several = {name: paths for name, paths in modules.items() if len(paths) > 1}
    assert several.keys() == NAMES_OF_TENSORFLOW, several


# Names of the standard library, or whole modules, that Python 3.10 does not have.
SINCE_PYTHON_3_11 = {
    "tomllib",
    "enum.StrEnum",
    "datetime.UTC",
    "typing.Self",
    "typing.assert_never",
}


def test_modules_start_on_python_3_10():
    """Python 3.10 is served, and tests of the day run on a newer one."""
    package = Path(estimator2strategy.__file__).parent
    for path in sorted(package.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            found = set()
            if isinstance(node, ast.Import):
                found = {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            assert not found & SINCE_PYTHON_3_11, path
