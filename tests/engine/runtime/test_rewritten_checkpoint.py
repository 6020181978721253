"""A checkpoint that is written again is whole at any time, even if it is the only one."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy.engine.runtime import rewritten_checkpoint, unfinished_saves
from estimator2strategy.engine.runtime.model_dir import held_for_training
from tests import fresh
from tests.engine.runtime.programs import host_estimator, numbers

NAMES = ("data-00000-of-00001", "index")


@pytest.fixture
def folder(tmp_path):
    for ending in NAMES:
        (tmp_path / f"model.ckpt-8.{ending}").write_text(f"old {ending}")
    return tmp_path


def writes_again(folder, *endings):
    """The saver is killed when it has given these files to the checkpoint."""
    rewritten_checkpoint.keep(f"{folder}/model.ckpt-8", f"{folder}/.saving.model.ckpt-8")
    for ending in endings:
        (folder / "new").write_text(f"new {ending}")
        os.replace(folder / "new", folder / f"model.ckpt-8.{ending}")


def found(folder):
    rewritten_checkpoint.put_back(f"{folder}/model.ckpt-8", f"{folder}/.saving.model.ckpt-8")
    return {path.name: path.read_text() for path in folder.iterdir()}


WHOLE = {f"model.ckpt-8.{ending}": f"old {ending}" for ending in NAMES}


@pytest.mark.parametrize(
    "endings",
    [
        (),
        ("data-00000-of-00001",),
        NAMES,
        ("data-00000-of-00002", "data-00001-of-00002"),
        ("data-00000-of-00002", "data-00001-of-00002", "index"),
    ],
)
def test_wherever_the_writing_ends_it_is_what_it_was(folder, endings):
    writes_again(folder, *endings)
    assert found(folder) == WHOLE


def test_putting_it_back_can_be_killed_and_is_done_again(folder, monkeypatch):
    writes_again(folder, *NAMES)
    replace = os.replace

    def killed(source, target):
        replace(source, target)
        raise SystemExit

    with monkeypatch.context() as patches:
        patches.setattr(os, "replace", killed)
        with pytest.raises(SystemExit):
            found(folder)
    assert found(folder) == WHOLE


def test_a_kill_before_all_is_linked_changes_nothing(folder):
    mark = folder / ".saving.model.ckpt-8.before"
    mark.mkdir()
    os.link(folder / f"model.ckpt-8.{NAMES[0]}", mark / f"model.ckpt-8.{NAMES[0]}")
    assert found(folder) == WHOLE


def test_one_that_is_complete_is_the_new_one(folder):
    writes_again(folder, *NAMES)
    rewritten_checkpoint.forget(f"{folder}/.saving.model.ckpt-8")
    assert found(folder) == {name: text.replace("old", "new") for name, text in WHOLE.items()}


def test_of_a_new_checkpoint_nothing_is_kept(tmp_path):
    rewritten_checkpoint.keep(f"{tmp_path}/model.ckpt-8", f"{tmp_path}/.saving.model.ckpt-8")
    assert not list(tmp_path.iterdir())


def test_the_next_start_of_a_training_puts_it_back(model_dir):
    model = host_estimator(model_dir, keep_checkpoint_max=1)
    model.train(numbers(4))
    before = {path: path.read_bytes() for path in Path(model_dir).glob("model.ckpt-4.[di]*")}
    pid = os.fork()
    if not pid:  # TensorFlow is not used in it: it only does to files what a saver would do
        with held_for_training(model_dir):
            unfinished_saves.SaveMarker(model_dir, "model.ckpt", lambda: None).before_save(None, 4)
            Path(model_dir, "new").write_bytes(b"?")
            os.replace(f"{model_dir}/new", f"{model_dir}/model.ckpt-4.{NAMES[0]}")
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    with held_for_training(model_dir):
        assert {path: path.read_bytes() for path in before} == before
    assert not list(Path(model_dir).glob(".saving*"))


def test_it_lets_itself_be_resumed(model_dir, tmp_path):
    """A program without slots drops those of the only checkpoint, and is killed meanwhile."""
    program = Path(__file__).parents[2] / "hostile" / "killed_program.py"

    def run(*more, **environment):
        return subprocess.run(
            [fresh.python(), str(program), "rewritten", model_dir, tmp_path / "losses", *more],
            env={**os.environ, "PYTHONPATH": str(program.parents[2]), **environment},
            capture_output=True,
            check=False,
        ).returncode

    assert run("4") == 0
    path = tf.train.latest_checkpoint(model_dir)
    slots = tf.train.load_variable(path, "kernel/Adam")
    assert run("8", DIES_IN_REWRITE="1") == -signal.SIGKILL
    with pytest.raises((tf.errors.OpError, IndexError)):  # old index, new data
        tf.train.load_variable(path, "out/Adam_1")
    assert host_estimator(model_dir).latest_checkpoint() == path
    np.testing.assert_array_equal(tf.train.load_variable(path, "kernel/Adam"), slots)
