"""The folder of an export that was killed goes; that of one that is at work stays."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.runtime import unfinished_exports
from tests.engine.runtime.programs import host_estimator, numbers


def receiver():
    features = tf.compat.v1.placeholder(tf.float32, [None])
    return estimator.export.TensorServingInputReceiver(features, features)


def unfinished(base, name="temp-1700000000"):
    folder = Path(base, name)
    folder.mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(bytes(100))
    return folder


def killed_export(base, make=unfinished):
    """Leaves the files of a process that was killed while it exported."""
    folder = Path(base, "temp-1700000000")
    pid = os.fork()
    if not pid:
        with unfinished_exports.claimed(str(folder)):
            make(base)
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    return folder


@pytest.fixture
def trained(model_dir):
    model = host_estimator(model_dir)
    model.train(numbers(1))
    return model


def test_a_training_clears_the_exports_in_its_folder(trained):
    folder = killed_export(Path(trained.model_dir, "export", "best"))
    trained.train(numbers(1))
    assert not folder.exists()


def test_an_export_clears_its_own_base(trained, tmp_path):
    folder = killed_export(tmp_path / "base")
    made = Path(os.fsdecode(trained.export_saved_model(str(tmp_path / "base"), receiver)))
    assert os.listdir(tmp_path / "base") == [made.name]
    assert sorted(os.listdir(made)) == ["saved_model.pb", "variables"]
    assert not folder.exists()


def renamed(base):
    unfinished(base).rename(base / "1700000000")


@pytest.mark.parametrize("make", [lambda base: None, renamed])
def test_the_mark_goes_of_one_killed_before_it_had_a_folder_or_after_it_was_complete(
    make, trained, tmp_path
):
    base = tmp_path / "base"
    folder = killed_export(base, make)
    before = {name for name in os.listdir(base) if name.isdecimal()}
    made = Path(os.fsdecode(trained.export_saved_model(str(base), receiver)))
    assert set(os.listdir(base)) == {made.name} | before
    assert not folder.exists()


def test_one_that_a_living_process_writes_stays(trained):
    base = Path(trained.model_dir, "export", "best")
    folder = base / "temp-1700000000"
    ready, done = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        with unfinished_exports.claimed(str(folder)):
            unfinished(base)
            os.write(ready[1], b"!")
            os.read(done[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    try:
        trained.train(numbers(1))
        assert (folder / "saved_model.pb").exists()
    finally:
        os.write(done[1], b"!")
        os.waitpid(pid, 0)
    trained.train(numbers(1))
    assert (folder / "saved_model.pb").exists()  # its process said that it is done


def test_one_of_a_program_that_takes_no_lock_stays(trained):
    folder = unfinished(Path(trained.model_dir, "export", "best"))
    trained.train(numbers(1))
    assert folder.exists()


def test_one_stays_where_locks_do_not_keep_other_machines_out(trained, monkeypatch):
    folder = killed_export(Path(trained.model_dir, "export", "best"))
    monkeypatch.setattr(unfinished_exports, "excludes_all", lambda folder: False)
    trained.train(numbers(1))
    assert folder.exists()


def test_an_export_that_fails_leaves_nothing(trained, tmp_path):
    def fails():
        raise RuntimeError("of the program")

    with pytest.raises(RuntimeError, match="of the program"):
        trained.export_saved_model(str(tmp_path / "base"), fails)
    assert os.listdir(tmp_path / "base") == []
