"""bfloat16 on float32 variables, Keras policies, and runs that are equal bit by bit."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests import fresh

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "goldens" / "bfloat16.json"


def with_the_kernels_of_this_cpu(*arguments: str) -> str:
    """The output of a Python with these arguments, where oneDNN is not held to old kernels.

    Those have no bfloat16, which TensorFlow does not ask: where the CPU has it, it aborts.
    """
    environment = {
        name: value for name, value in os.environ.items() if name != "ONEDNN_MAX_CPU_ISA"
    }
    result = subprocess.run(
        [fresh.python(), *arguments],
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_bfloat16_scope_trains_float32_variables_as_tensorflow_1_15_did(tmp_path):
    expected = json.loads(GOLDEN.read_text())
    program, out = ROOT / "tests" / "programs" / "bfloat16.py", tmp_path / "found.json"
    with_the_kernels_of_this_cpu("-m", "estimator2strategy", "run", str(program), str(out))
    found = json.loads(out.read_text())
    assert found["computed"] == expected["computed"] == "bfloat16"
    assert found["variables"] == expected["variables"]
    assert list(found["values"]) == list(expected["values"])
    for name, value in expected["values"].items():
        # bfloat16 has 8 bits; in what order a product adds up is the kernel's own affair. What the
        # optimizer keeps are sums of gradients, a hundred times as large as what it changes.
        atol = 0.3 if name.endswith("Momentum") else 0.006
        np.testing.assert_allclose(found["values"][name], value, atol=atol, err_msg=name)


WITH_A_POLICY = """
import tempfile
import tensorflow as tf
import tf_keras
from estimator2strategy import estimator
tf1 = tf.compat.v1

def model_fn(features, labels, mode):
    layer = tf_keras.layers.Dense(1, dtype=tf_keras.mixed_precision.Policy("mixed_bfloat16"))
    outputs = layer(features)
    assert outputs.dtype == tf.bfloat16
    loss = tf.reduce_mean(tf.square(tf.cast(outputs, tf.float32) - 1))
    optimizer = tf1.train.GradientDescentOptimizer(0.1)
    train_op = optimizer.minimize(loss, tf1.train.get_global_step(), layer.trainable_variables)
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

model = estimator.Estimator(model_fn, tempfile.mkdtemp())
model.train(lambda: tf.data.Dataset.from_tensors(tf.ones([2, 3])).repeat(), steps=140)
kernel, bias = model.get_variable_value("dense/kernel"), model.get_variable_value("dense/bias")
print(kernel.dtype, bias.dtype, (kernel.sum() + bias).item())
"""


def test_a_keras_policy_computes_in_bfloat16_on_float32_variables():
    kernel, bias, output = with_the_kernels_of_this_cpu("-c", WITH_A_POLICY).split()
    assert kernel == bias == "float32"
    # Smaller updates than bfloat16 can tell from nothing have added up.
    assert float(output) == pytest.approx(1, abs=0.02)


# Gradients of many equal ids, which several threads add up: the order is part of the result.
TWICE = """
import sys, tempfile
import numpy as np
import tensorflow as tf
if "api" in sys.argv:
    tf.config.experimental.enable_op_determinism()
from estimator2strategy import estimator
tf1 = tf.compat.v1

def model_fn(features, labels, mode):
    table = tf1.get_variable("table", [3, 512])
    rows = tf1.nn.dropout(tf.gather(table, features), rate=0.3)
    sums = tf.math.unsorted_segment_sum(rows, features, 3)
    loss = tf.reduce_mean(tf.sin(sums)) + tf.reduce_mean(tf.nn.softmax(rows) ** 2)
    optimizer = tf1.train.AdamOptimizer(0.1)
    train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

def input_fn():
    ids = np.random.default_rng(0).integers(0, 3, 40_000).astype(np.int32)
    return tf.data.Dataset.from_tensor_slices(ids).shuffle(40_000, seed=1).repeat().batch(20_000)

found = []
for _ in range(2):
    config = estimator.RunConfig(tempfile.mkdtemp(), tf_random_seed=5)
    options = estimator.TrainingOptions(profile_dir=tempfile.mkdtemp())
    model = estimator.Estimator(model_fn, config=config, options=options)
    model.train(input_fn, steps=10)
    found.append([model.get_variable_value(name) for name in sorted(model.get_variable_names())])
print(all(one.tobytes() == other.tobytes() for one, other in zip(*found, strict=True)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("asked_for", ["api", "environment"])
def test_deterministic_runs_are_equal_bit_by_bit(asked_for):
    environment = {"TF_DETERMINISTIC_OPS": "1"} if asked_for == "environment" else {}
    result = subprocess.run(
        [fresh.python(), "-c", TWICE, asked_for],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "True"
