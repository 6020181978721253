"""One sentence where a step cannot be exported or loaded; nothing is left behind."""

from __future__ import annotations

import json
import shutil
import sys
import types

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import errors, export_step
from estimator2strategy.estimator import Estimator, EstimatorSpec, tpu
from estimator2strategy.tools.artifact import step_loader

pytest.importorskip("jax", minversion="0.10")
pytest.importorskip("flatbuffers")

tf1 = tf.compat.v1


def input_fn():
    return tf.data.Dataset.from_tensors(np.ones([2, 4], np.float32)).repeat()


def spec_of(loss, mode="train"):
    optimizer = tf1.tpu.CrossShardOptimizer(tf1.train.GradientDescentOptimizer(0.1))
    train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    return {"mode": mode, "loss": loss, "train_op": train_op}


def model_fn(features, labels, mode):
    w = tf1.get_variable("w", [4, 1], initializer=tf1.ones_initializer())
    loss = tf.reduce_mean(features @ w)
    train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(loss, tf1.train.get_global_step())
    return EstimatorSpec(mode, loss=loss, train_op=train_op)


@pytest.fixture(scope="module")
def step(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    export_step(Estimator(model_fn, str(folder / "m")), input_fn, folder / "step")
    return folder / "step"


@pytest.fixture
def copy(step, tmp_path):
    return shutil.copytree(step, tmp_path / "copy")


def refused(folder, *options, capsys) -> str:
    assert step_loader.main([str(folder), "--steps=1", *map(str, options)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("run.py: ")
    assert said.count("\n") == 1
    return said


def test_parts_of_a_variable_are_refused_by_name_and_nothing_is_written(tmp_path):
    def cut(features, labels, mode):
        with tf1.variable_scope("", partitioner=tf1.fixed_size_partitioner(2)):
            return model_fn(features, labels, mode)

    with pytest.raises(errors.UnsupportedError, match="w/part_0 is a part of a variable"):
        export_step(Estimator(cut, str(tmp_path / "m")), input_fn, tmp_path / "step")
    assert not list(tmp_path.glob("*step*"))


def test_a_scalar_feed_is_refused_for_several_replicas(tmp_path, emulated_cores):
    def with_scalar(params):
        rows = np.ones([params["batch_size"], 4], np.float32)
        data = {"x": rows, "scale": np.float32(2)}
        return tf.data.Dataset.from_tensors(data).repeat()

    def scaled(features, labels, mode, params):
        w = tf1.get_variable("w", [4, 1], initializer=tf1.ones_initializer())
        loss = tf.reduce_mean(features["x"] @ w) * features["scale"]
        return tpu.TPUEstimatorSpec(**spec_of(loss, mode))

    emulated_cores(2)
    per_host = tpu.InputPipelineConfig.BROADCAST
    of_tpu = tpu.TPUConfig(per_host_input_for_training=per_host)
    config = tpu.RunConfig(model_dir=str(tmp_path / "m"), tpu_config=of_tpu)
    model = tpu.TPUEstimator(scaled, config=config, train_batch_size=4, params={})
    with pytest.raises(errors.UnsupportedError, match="returns a scalar, which"):
        export_step(model, with_scalar, tmp_path / "step")
    assert not list(tmp_path.glob("*step*"))


@pytest.mark.parametrize("absent", ["jax", "flatbuffers"])
def test_an_absent_package_is_told_with_what_to_install(step, absent, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, absent, None)
    assert "pip install 'jax>=0.10' flatbuffers" in refused(step, capsys=capsys)


def test_a_jax_that_is_too_old_is_told(step, monkeypatch, capsys):
    old = types.SimpleNamespace(__version__="0.4.30", __version_info__=(0, 4, 30))
    monkeypatch.setitem(sys.modules, "jax", old)
    monkeypatch.setitem(sys.modules, "jax.export", types.ModuleType("jax.export"))
    assert "jax 0.4.30 is too old" in refused(step, capsys=capsys)


@pytest.mark.parametrize("name", ["step.bin", "values.npz", "first_batch.npz"])
@pytest.mark.parametrize("damage", ["changed", "cut", "gone"])
def test_each_damaged_file_is_named(copy, name, damage, capsys):
    file = copy / name
    whole = file.read_bytes()
    file.unlink()
    if damage != "gone":
        file.write_bytes(whole[:-9] if damage == "cut" else whole[:-1] + b"?")
    said = refused(copy, f"--save={copy / 'trained.npz'}", capsys=capsys)
    assert name in said
    assert "damaged" in said or "cannot be read" in said
    assert not list(copy.glob("trained*"))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"version": 99}, "has version 99 of the format"),
        ({"format": "another"}, "does not describe a step"),
        ({"feeds": []}, "does not fit step.bin"),
        ({"variables": None}, "is damaged: it has no 'variables'"),
        ({"files": None}, "is damaged: it has no 'files'"),
    ],
)
def test_a_description_that_does_not_fit_is_told(copy, changed, said, capsys):
    path = copy / "description.json"
    described = {**json.loads(path.read_text()), **changed}
    path.write_text(json.dumps({key: v for key, v in described.items() if v is not None}))
    assert said in refused(copy, capsys=capsys)


def test_a_cut_description_is_told(copy, capsys):
    path = copy / "description.json"
    path.write_bytes(path.read_bytes()[:-20])
    assert "description.json cannot be read" in refused(copy, capsys=capsys)


def test_a_cut_file_of_values_or_batches_is_told(step, tmp_path, capsys):
    np.savez(tmp_path / "whole.npz", w=np.zeros([4, 1], np.float32))
    cut = tmp_path / "cut.npz"
    cut.write_bytes((tmp_path / "whole.npz").read_bytes()[:-40])
    for option in ("--start", "--batches"):
        assert "is no .npz file of arrays" in refused(step, f"{option}={cut}", capsys=capsys)


def test_batches_with_too_few_parts_are_told(step, tmp_path, capsys):
    (tmp_path / "batches.py").write_text("def batches():\n    yield []\n")
    said = refused(step, f"--batches={tmp_path / 'batches.py'}", capsys=capsys)
    assert "a batch has 0 arrays, and the step takes 1" in said
