"""Checkpoints of the V1 format: without an index, as `SaverDef.V1` writes them."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import estimator2strategy.tf1 as tf1
from estimator2strategy.errors import CheckpointError
from estimator2strategy.tools.checkpoint.checkpoint_command import main
from estimator2strategy.tools.checkpoint.opening import open_store


@pytest.fixture(params=[False, True], ids=["one file", "shards"])
def folder(request, tmp_path):
    """Weights of a dense layer and a step of 7, in both formats: `v1/` and `v2/`."""
    with tf1.Graph().as_default(), tf1.Session() as session:
        step = tf1.train.get_or_create_global_step()
        tf1.get_variable("out/kernel", initializer=[[1.0], [2.0]])
        with tf1.device("/cpu:0"):
            tf1.get_variable("out/bias", initializer=[3.0])
        session.run([tf1.global_variables_initializer(), step.initializer])
        session.run(step.assign(7))
        for name in ("v1", "v2"):
            version = getattr(tf1.train.SaverDef, name.upper())
            saver = tf1.train.Saver(write_version=version, sharded=request.param)
            (tmp_path / name).mkdir()
            saver.save(session, str(tmp_path / name / "model.ckpt"), 7)
    return tmp_path


_TWIN = """
import keras

def build():
    model = keras.Sequential([keras.layers.Dense(1, name="out")])
    model.build((None, 2))
    return model
"""


def model_fn(features, labels, mode):
    out = tf1.layers.dense(features, 1, name="out")
    loss = tf1.losses.mean_squared_error(labels, out)
    optimizer = tf1.train.GradientDescentOptimizer(0.0)
    train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn():
    return tf1.data.Dataset.from_tensors(([[1.0, 1.0]], [[0.0]])).repeat()


def prefix(folder, name="v1"):
    """The path, with the pattern for its shards if it has any."""
    return tf.train.latest_checkpoint(str(folder / name))


@pytest.mark.parametrize("way", ["folder", "prefix", "pattern"])
def test_a_v1_checkpoint_is_shown(way, folder, capsys):
    path = {
        "folder": str(folder / "v1"),
        "prefix": str(folder / "v1" / "model.ckpt-7"),
        "pattern": prefix(folder),
    }[way]
    assert main(["inspect", path]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in ("global_step", "out/kernel", "out/bias"))
    assert [e.label for e in open_store(path).entries] == ["global_step", "out/kernel", "out/bias"]


def test_a_v1_checkpoint_is_compared_with_one_of_today(folder):
    assert main(["diff", str(folder / "v1"), str(folder / "v2")]) == 0


def test_a_v1_checkpoint_is_converted(folder, tmp_path):
    (tmp_path / "twin.py").write_text(_TWIN)
    out, model = str(tmp_path / "made.weights.h5"), f"{tmp_path / 'twin.py'}:build"
    options = ["--to=keras", f"--model={model}"]
    assert main(["convert", str(folder / "v1"), out, *options]) == 0
    store = open_store(out, model)
    assert [store.read(entry).tolist() for entry in store.entries] == [[[1.0], [2.0]], [3.0]]


def test_half_a_checkpoint_and_other_files_are_refused(folder):
    files = sorted(path for path in (folder / "v1").glob("model.ckpt-7*") if path.suffix != ".meta")
    files[0].write_bytes(files[0].read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="it is no checkpoint, or it is cut off"):
        open_store(str(folder / "v1"))
    (folder / "v1" / "checkpoint").unlink()
    with pytest.raises(CheckpointError, match=r"there are model\.ckpt-7: name one"):
        open_store(str(folder / "v1"))
    named = str(files[0]).replace("00000-of-00001", "00000-of-00002")
    if named != str(files[0]):
        files[0].rename(named)
        with pytest.raises(CheckpointError, match="is not complete: 1 of its 2 files are there"):
            open_store(named)


def test_an_estimator_goes_on_from_a_v1_checkpoint_or_starts_warm_with_it(folder):
    estimator = tf1.estimator.Estimator(model_fn, str(folder / "v1"))
    evaluated = estimator.evaluate(input_fn, steps=1, checkpoint_path=prefix(folder))
    assert evaluated == {"loss": 36.0, "global_step": 7}
    estimator.train(input_fn, steps=1)
    assert estimator.get_variable_value("global_step") == 8
    assert estimator.get_variable_value("out/kernel").tolist() == [[1.0], [2.0]]
    warm = tf1.estimator.Estimator(model_fn, warm_start_from=prefix(folder))
    warm.train(input_fn, steps=1)
    np.testing.assert_array_equal(warm.get_variable_value("out/bias"), [3.0])


def test_init_from_checkpoint_takes_a_v1_checkpoint(folder):
    with tf1.Graph().as_default(), tf1.Session() as session:
        kernel = tf1.get_variable("mine/kernel", [2, 1])
        tf1.train.init_from_checkpoint(prefix(folder), {"out/kernel": kernel})
        session.run(kernel.initializer)
        assert session.run(kernel).tolist() == [[1.0], [2.0]]
