"""A training step becomes a folder that trains the same without TensorFlow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator, export_step
from estimator2strategy.tools.artifact import export_command, step_loader

pytest.importorskip("jax", minversion="0.10")
pytest.importorskip("flatbuffers")

tf1 = tf.compat.v1
STEPS = 6


def input_fn():
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    return tf.data.Dataset.from_tensors((x, x.sum(1, keepdims=True))).repeat()


def model_fn(features, labels, mode):
    w = tf1.get_variable("w", [3, 1], initializer=tf1.zeros_initializer())
    kept = tf1.nn.dropout(features, rate=0.25, seed=3)
    loss = tf.reduce_mean(tf.square(kept @ w - labels))
    train_op = tf1.train.AdamOptimizer(0.1).minimize(loss, tf1.train.get_global_step())
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def model(folder) -> estimator.Estimator:
    config = estimator.RunConfig(model_dir=str(folder), tf_random_seed=1)
    return estimator.Estimator(model_fn, config=config)


@pytest.fixture(scope="module")
def step(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported") / "step"
    export_step(model(folder.parent / "unused"), input_fn, folder, steps_per_block=4)
    return folder


def run(folder, *options: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    # CI names a Python that has JAX, NumPy and flatbuffers, and nothing else.
    python = os.environ.get("E2S_JAX_PYTHON", sys.executable)
    command = [python, "-I", str(folder / "run.py"), *options]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def test_a_whole_block_says_how_many_turns_its_loop_has(step):
    """A GPU asks the host before each turn otherwise."""
    assert (
        '"known_trip_count":{"n":"4"}' in step_loader.ExportedStep(step, "cpu").compile().as_text()
    )


def test_the_folder_trains_what_the_estimator_trains_dropout_included(step, tmp_path):
    saved = tmp_path / "trained.npz"
    ran = run(step, f"--steps={STEPS}", f"--save={saved}")
    assert ran.returncode == 0, ran.stderr
    assert "steps/s" in ran.stdout
    trained = model(tmp_path / "model").train(input_fn, steps=STEPS)
    with np.load(saved, allow_pickle=False) as values:
        assert values["global_step"] == STEPS
        for name in trained.get_variable_names():
            expected = trained.get_variable_value(name)
            np.testing.assert_allclose(values[name], expected, rtol=1e-5, err_msg=name)


def test_the_description_says_what_the_step_takes(step):
    described = json.loads((step / "description.json").read_text())
    assert [feed["shape"] for feed in described["feeds"]] == [[4, 3], [4, 1]]
    assert {"w", "w/Adam", "global_step"} <= {row["name"] for row in described["variables"]}
    assert described["steps_per_block"] == 4
    assert described["tf_random_seed"] == 1


def test_a_damaged_file_is_refused_in_one_sentence(step, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in step.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    (copy / "step.bin").write_bytes(b"x" + (step / "step.bin").read_bytes()[1:])
    ran = run(copy, "--steps=1")
    assert ran.returncode == 2
    assert ran.stderr.startswith("run.py: ")
    assert "step.bin is damaged" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_folder_of_somebody_else_is_left_alone(tmp_path):
    (tmp_path / "step").mkdir()
    (tmp_path / "step" / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match="no exported step"):
        export_step(model(tmp_path / "model"), input_fn, tmp_path / "step")
    assert [file.name for file in (tmp_path / "step").iterdir()] == ["notes.txt"]


def test_the_command_exports_a_model_by_its_name(tmp_path):
    (tmp_path / "program.py").write_text(_PROGRAM)
    named = ["program.py:model_fn", "--input", "program.py:input_fn", "--out", "step"]
    ran = subprocess.run(
        [sys.executable, "-m", "estimator2strategy", "export-step", *named],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "python step/run.py" in ran.stdout
    assert run(tmp_path / "step", "--steps=3").returncode == 0


def test_a_model_that_is_not_there_is_one_sentence(tmp_path, capsys):
    absent = [str(tmp_path / "absent.py:model_fn"), "--input", "x.py:input_fn", "--out", "step"]
    assert export_command.main(absent) == 2
    assert "absent.py" in capsys.readouterr().err


_PROGRAM = """\
import tensorflow as tf


def input_fn():
    return tf.data.Dataset.from_tensors(([[1.0, 2.0]], [[3.0]])).repeat()


def model_fn(features, labels, mode):
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(features, 1))
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)
"""
