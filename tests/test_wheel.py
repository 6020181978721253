"""The wheel in an environment of its own, without the checkout: what README promises of it.

Needs a Python with the wheel installed, named by E2S_WHEEL_PYTHON; `.ci/run` makes one.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

PYTHON = os.environ.get("E2S_WHEEL_PYTHON", "")
README = (Path(__file__).resolve().parents[1] / "README.md").read_text()

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="E2S_WHEEL_PYTHON names no Python that has the wheel"),
]

LEGACY = """
import tensorflow as tf

slim = tf.contrib.slim

def model_fn(features, labels, mode):
    predictions = slim.fully_connected(features, 1)
    loss = tf.losses.mean_squared_error(labels, predictions)
    train_op = slim.learning.create_train_op(loss, tf.train.GradientDescentOptimizer(0.1))
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

def main(argv):
    model = tf.estimator.Estimator(model_fn, "model")
    ones = tf.ones([4, 2])
    model.train(lambda: (tf.ones([4, 2]), tf.ones([4, 1])), steps=3)
    print("trained to", model.get_variable_value("global_step"))

tf.app.run(main)
"""


@pytest.fixture
def e2s(tmp_path):
    """`e2s("check", ...)` runs the installed command in a folder of its own; returns its output."""

    def run(*arguments: str, code: int = 0, **environment: str) -> str:
        return output(Path(PYTHON).with_name("e2s"), *arguments, code=code, **environment)

    def output(*command: str | Path, code: int = 0, **environment: str) -> str:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "E2S"))}
        done = subprocess.run(
            [str(part) for part in command],
            cwd=tmp_path,
            env=clean | environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout[-2000:] + done.stderr[-3000:]
        return done.stdout + done.stderr

    run.python = lambda *rest, **environment: output(PYTHON, *rest, **environment)
    run.folder = tmp_path
    return run


def test_the_package_is_not_the_checkout(e2s):
    file = e2s.python("-c", "import estimator2strategy as e; print(e.__file__)")
    assert "site-packages" in file


def test_the_program_of_the_readme_trains_on_eight_cores(e2s):
    (program,) = re.findall(r"```python\n(import estimator2strategy\.tf1.*?)```", README, re.DOTALL)
    (e2s.folder / "program.py").write_text(program)
    said = e2s.python("program.py", E2S_EMULATE_TPU_CORES="8")
    assert "step 200, loss 0.0000" in said.splitlines()  # as README says


def test_an_unchanged_program_that_needs_slim_runs(e2s):
    (e2s.folder / "legacy.py").write_text(LEGACY)
    assert "trained to 3" in e2s("run", "legacy.py")


def test_check_reads_a_program_and_explain_its_rules(e2s):
    (e2s.folder / "legacy.py").write_text(LEGACY)
    e2s("check", "legacy.py")
    assert "E2S203" in e2s("explain", "E2S203")


def test_the_guide_is_there(e2s):
    assert e2s("guide", "tpu").startswith("# Your first day on a TPU VM")


def test_doctor_finds_nothing_that_clashes(e2s):
    assert "error" not in e2s("doctor")
