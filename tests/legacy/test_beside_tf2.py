"""TF2 and Keras 3 code is not touched by legacy code in its process."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy.engine import legacy_code
from estimator2strategy.legacy import importing
from tests import fresh

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "tests" / "programs" / "legacy_project"


@pytest.fixture
def helper(monkeypatch):
    """A legacy module, imported as one."""
    monkeypatch.syspath_prepend(PROJECT)
    tensor_shape = importlib.import_module("tensorflow.python.framework.tensor_shape")
    override = "_TENSORSHAPE_V2_OVERRIDE"
    monkeypatch.setattr(tensor_shape, override, getattr(tensor_shape, override))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    # Whole programs that tests before this one have run would start it in graph mode.
    monkeypatch.setattr(legacy_code, "_added", ())
    importing._start.cache_clear()
    yield importing.import_module("helper")
    sys.modules.pop("helper")


def test_keras_3_trains_while_legacy_code_sees_dimensions(helper):
    model = keras.Sequential([keras.layers.Dense(2), keras.layers.BatchNormalization()])
    model.compile("sgd", "mse", metrics=["mae"])
    history = model.fit(np.ones([8, 3]), np.ones([8, 2]), batch_size=4, epochs=2, verbose=0)
    assert len(history.history["loss"]) == 2
    # The very same tensor, asked from here and from there.
    shape = model(np.ones([8, 3])).shape
    assert helper.last_dimension(tf.ones([8, 2])) == 2  # reads `.value` of each dimension
    assert [type(dimension) for dimension in shape] == [int, int]
    assert tf.executing_eagerly()


def test_tensorflow_itself_is_as_it_was(helper):
    assert helper.tf.__version__ == "1.15.5"
    assert sys.modules["tensorflow"] is tf
    assert tf.__version__ != "1.15.5"
    assert not hasattr(tf, "contrib")
    assert isinstance(tf.TensorShape([1])[0], int)
    assert helper.tf.float32 is tf.float32


# In a process of its own: Keras decides once how it treats dtypes.
TWO_KERAS_2 = """
import sys
import tensorflow as tf
from estimator2strategy import legacy

sys.path.insert(0, {project!r})
helper = legacy.import_module("helper")
import tf_keras

images = tf.ones([1, 2, 2, 1], tf.bfloat16)
print([layer(images).dtype.name for layer in (helper.upsampled, tf_keras.layers.UpSampling2D())])
"""


def test_keras_2_of_others_casts_its_input_while_that_of_legacy_code_does_not():
    dtypes = _printed(["-c", TWO_KERAS_2.format(project=str(PROJECT))])
    assert dtypes == "['bfloat16', 'float32']"


# Legacy code of all sorts first: Keras 2 layers, a Session, an Estimator; then the modern program.
BESIDE = """
import sys, tempfile
from estimator2strategy import legacy

sys.path.insert(0, {project!r})
helper = legacy.import_module("helper")
tf = helper.tf
tf.disable_v2_behavior()
with tf.Graph().as_default(), tf.Session() as session:
    images = helper.upsampled(tf.ones([1, 2, 2, 1], tf.bfloat16))
    assert session.run(images).shape == (1, 4, 4, 1)
endless = legacy.import_module("endless")
endless.Say.after_run = lambda *unused: None
tf.estimator.Estimator(endless.model_fn, tempfile.mkdtemp()).train(endless.input_fn, steps=2)
tf.enable_v2_behavior()

sys.path.insert(0, {programs!r})
import modern
print(modern.main())
"""


def test_tf2_and_keras_3_give_the_same_after_legacy_code_in_their_process():
    programs = str(PROJECT.parent)
    beside = BESIDE.format(project=str(PROJECT), programs=programs)
    alone, after = (_printed(command) for command in (["modern.py"], ["-c", beside]))
    assert alone
    assert after == alone


def _printed(command: list[str], python: str | None = None) -> str:
    ran = subprocess.run(
        [python or fresh.python(), *command],
        cwd=PROJECT.parent,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            # Sums in one order only.
            "TF_NUM_INTRAOP_THREADS": "1",
            "TF_NUM_INTEROP_THREADS": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.splitlines()[-1]


# Programs that use ever more of the facade -> the packages that all up to there have imported.
IMPORTING = {
    "import estimator2strategy.tf1 as tf; tf.placeholder; tf.train.Saver": set(),
    "from estimator2strategy import legacy; legacy.import_module('helper').tf.Session": set(),
    # tqdm draws the line while a program trains.
    "tf.estimator.Estimator; tf.contrib.tpu.RunConfig": {"tqdm"},
}


def test_the_facade_imports_little_more_than_tensorflow():
    """Measured on a quiet machine: 0.01, 0.04 and 0.17 s more than TensorFlow by itself."""
    new = "sorted({m.split('.')[0] for m in set(sys.modules) - old})"
    lines = ["import sys, tensorflow", f"sys.path.insert(0, {str(PROJECT)!r})"]
    lines += ["old, found = set(sys.modules), []"]
    lines += [f"{program}; found.append({new})" for program in IMPORTING]
    found = ast.literal_eval(_printed(["-c", "\n".join([*lines, "print(found)"])], sys.executable))
    own = {"estimator2strategy", "helper", "tensorflow"}
    for imported, packages in zip(found, IMPORTING.values(), strict=True):
        assert set(imported) - set(sys.stdlib_module_names) - own <= packages
