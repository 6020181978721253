"""Values that an exported step trained without TensorFlow go on in an Estimator."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator, export_step
from estimator2strategy.tools.checkpoint import checkpoint_command
from tests.hooks import LossRecorder

pytest.importorskip("jax", minversion="0.10")
pytest.importorskip("flatbuffers")

tf1 = tf.compat.v1


def input_fn():
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    return tf.data.Dataset.from_tensors((x, x.sum(1, keepdims=True))).repeat()


def model_fn(features, labels, mode):
    """Adam has powers of betas, and a moving average is a variable that no gradient reaches."""
    w = tf1.get_variable("w", [3, 1], initializer=tf1.zeros_initializer())
    loss = tf1.losses.mean_squared_error(labels, features @ w)
    step = tf1.train.get_global_step()
    half = tf1.get_variable("half", [2], tf.bfloat16, tf1.ones_initializer(), trainable=False)
    with tf.control_dependencies([tf1.assign(half, half * 0.5)]):
        train_op = tf1.train.AdamOptimizer(0.05).minimize(loss, step)
    average = tf.train.ExponentialMovingAverage(0.9)
    with tf.control_dependencies([train_op]):
        train_op = average.apply(tf1.trainable_variables())
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def model(folder) -> estimator.Estimator:
    config = estimator.RunConfig(model_dir=str(folder), tf_random_seed=1)
    return estimator.Estimator(model_fn, config=config)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The model_dir, and the losses, of 30 steps by the Estimator."""
    folder, recorder = tmp_path_factory.mktemp("alone"), LossRecorder()
    model(folder).train(input_fn, steps=30, hooks=[recorder])
    return folder, recorder.losses


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The values after 20 steps by the exported step."""
    folder = tmp_path_factory.mktemp("exported")
    export_step(model(folder / "unused"), input_fn, folder / "step")
    python = os.environ.get("E2S_JAX_PYTHON", sys.executable)
    command = [python, "-I", str(folder / "step" / "run.py"), "--steps=20"]
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
    saved = str(folder / "trained.npz")
    subprocess.run([*command, f"--save={saved}"], env=environment, check=True)
    return saved


def convert(*arguments: str) -> int:
    return checkpoint_command.main(["convert", *arguments, "--to", "tf1"])


def test_the_estimator_goes_on_as_if_it_had_trained_itself(alone, trained, tmp_path):
    model(tmp_path).train(input_fn, steps=1)  # has a checkpoint of its own, of an earlier step
    assert convert(trained, str(tmp_path / "model.ckpt-20")) == 0
    recorder = LossRecorder()
    model(tmp_path).train(input_fn, steps=10, hooks=[recorder])
    folder, losses = alone
    np.testing.assert_allclose(recorder.losses, losses[20:], rtol=1e-5)
    ours, expected = (tf.train.load_checkpoint(str(f)) for f in (tmp_path, folder))
    assert ours.get_variable_to_dtype_map() == expected.get_variable_to_dtype_map()
    for name in expected.get_variable_to_shape_map():
        np.testing.assert_allclose(
            ours.get_tensor(name), expected.get_tensor(name), rtol=1e-5, err_msg=name
        )


def test_the_checkpoint_has_every_variable_and_no_random_stream(alone, trained, tmp_path):
    assert convert(trained, str(tmp_path / "model.ckpt-20")) == 0
    folder, _ = alone
    assert {n for n, _ in tf.train.list_variables(str(tmp_path))} == {
        n for n, _ in tf.train.list_variables(str(folder))
    }


def test_pickled_values_are_refused_in_one_sentence(tmp_path, capsys):
    np.savez(tmp_path / "values.npz", w=np.array([{}], object))
    assert convert(str(tmp_path / "values.npz"), str(tmp_path / "model.ckpt-0")) == 2
    assert "w.npy is no array of numbers" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["values.npz"]


def test_a_file_that_is_cut_off_is_refused_in_one_sentence(trained, tmp_path, capsys):
    cut = tmp_path / "cut.npz"
    with open(trained, "rb") as file:
        cut.write_bytes(file.read()[:-100])
    assert convert(str(cut), str(tmp_path / "model.ckpt-0")) == 2
    assert "cut.npz cannot be read" in capsys.readouterr().err
