"""TensorFlow starts without Keras 3 and JAX, which are as they were once somebody uses them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

# Told in JSON by a process: what is imported then, and what a later use gives.
PROGRAM = """\
import gc, importlib.util, json, sys
{before}
from estimator2strategy.engine import quiet_import
quiet_import.import_tensorflow()
told = {{"early": [m for m in ("keras", "jax", "sklearn", "matplotlib") if m in sys.modules]}}
told["collects"], told["finders"] = gc.isenabled(), [type(f).__name__ for f in sys.meta_path]
import tensorflow as tf
{after}
print(json.dumps(told))
"""


def told(after: str = "", before: str = "") -> dict:
    """The output of the program in a process of its own."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(before=before, after=after)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


@pytest.mark.oldest
def test_tensorflow_starts_without_keras_and_jax_and_gives_them_when_they_are_used():
    said = told(
        """
told["layer"] = tf.keras.layers.Dense(3).name
import keras
told["same"] = keras.layers.Dense is tf.keras.layers.Dense
told["jit"] = None
if importlib.util.find_spec("jax"):
    import jax
    told["jit"] = jax.jit.__module__
"""
    )
    assert said["early"] == []
    assert said["collects"]
    assert "_Finder" not in said["finders"]
    assert said["layer"] == "dense"
    assert said["same"]
    assert said["jit"] in (None, "jax") or said["jit"].startswith("jax.")


def test_an_estimator_trains_and_evaluates_without_keras():
    said = told(
        """
from estimator2strategy import estimator
def model_fn(features, labels, mode):
    loss = tf.reduce_mean((features * tf.compat.v1.get_variable("w", []) - labels) ** 2)
    step = tf.compat.v1.train.get_global_step()
    train = tf.compat.v1.train.AdamOptimizer().minimize(loss, step)
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train)
def input_fn():
    return tf.data.Dataset.from_tensors(([1.0], [2.0])).repeat(3)
made = estimator.Estimator(model_fn)
told["steps"] = int(made.train(input_fn).evaluate(input_fn)["global_step"])
told["late"] = [m for m in ("keras", "tf_keras", "jax") if m in sys.modules]
"""
    )
    assert said["steps"] == 3
    assert said["late"] == []


def test_keras_that_a_model_fn_imports_first_makes_its_layers_outside_of_the_graph_as_ever():
    said = told(
        """
from estimator2strategy import estimator
told["names"], told["ops"] = [], []
def model_fn(features, labels, mode):
    graph = tf.compat.v1.get_default_graph()
    before = len(graph.get_operations())
    import keras
    told["ops"].append(len(graph.get_operations()) - before)
    told["names"].append([keras.layers.Dense(2).name, keras.layers.Dense(2).name])
    loss = tf.reduce_mean(features * tf.compat.v1.get_variable("w", []))
    step = tf.compat.v1.train.get_global_step()
    train = tf.compat.v1.train.AdamOptimizer().minimize(loss, step)
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train)
def input_fn():
    return tf.data.Dataset.from_tensors(([1.0], [2.0])).repeat(2)
made = estimator.Estimator(model_fn)
made.train(input_fn).train(input_fn)
import keras
model = keras.Sequential([keras.Input([1]), keras.layers.Dense(1)])
model.compile("sgd", "mse")
told["after"] = model.layers[0].name
model.fit(tf.ones([4, 1]), tf.ones([4, 1]), verbose=0)
told["eager"] = tf.executing_eagerly()
"""
    )
    assert said["ops"] == [0, 0]
    assert said["names"] == [["dense", "dense_1"]] * 2
    assert said["after"] == "dense"
    assert said["eager"]


def test_what_is_imported_already_stays_and_so_do_collections_that_are_off():
    said = told(
        "told['same'] = sys.modules['keras'] is held", "import keras; held = keras; gc.disable()"
    )
    assert "keras" in said["early"]
    assert said["same"]
    assert not said["collects"]


def test_tensorflow_lite_converts_functions_of_jax():
    pytest.importorskip("jax")
    said = told(
        """
import numpy as np
lite = tf.lite.TFLiteConverter.experimental_from_jax(
    [lambda x: x * 2], [[("x", np.ones([2], "float32"))]]
)
told["bytes"] = len(lite.convert())
"""
    )
    assert said["bytes"] > 100
