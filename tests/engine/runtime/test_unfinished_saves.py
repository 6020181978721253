"""The next start clears the leftovers of a training that was killed while it saved; no more."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.runtime import unfinished_saves
from estimator2strategy.engine.runtime.folder_lock import FolderLock
from estimator2strategy.engine.runtime.model_dir import held_for_training
from tests.engine.runtime.programs import falling, host_estimator, numbers, with_checkpoints

tf1 = tf.compat.v1

UUID = "0123456789abcdef" * 2


@pytest.fixture
def trained(model_dir):
    """An estimator with checkpoints at 0, 2 and 4."""
    return with_checkpoints(model_dir, 4)


def left(model, *names):
    """Makes files as a killed saver leaves them; returns their paths."""
    paths = [Path(model.model_dir, name) for name in names]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"?" * 100)
    return paths


def is_there(paths):
    return {path.name: path.exists() for path in paths}


def died_saving(model, step, removable=()):
    (mark,) = left(model, f".saving.model.ckpt-{step}")
    mark.write_text("".join(f"model.ckpt-{number}\n" for number in removable))


class TestWhatGoes:
    KILLED = (
        "model.ckpt-6_temp/part-00000-of-00001.data-00000-of-00001.tempstate42",
        "model.ckpt-6.data-00000-of-00001",
        "model.ckpt-6.index.tempstate42",
        "model.ckpt-6.meta",
        f"model.ckpt-6.meta.tmp{UUID}",
        f"checkpoint.tmp{UUID}",
    )

    @pytest.fixture
    def files(self, trained, monkeypatch):
        files = left(trained, *self.KILLED)
        for path in files:
            os.utime(path, (1e9, 1e9))
        died_saving(trained, 6)
        monkeypatch.setattr(unfinished_saves, "_LIST_SECONDS", 0.01)
        return files

    def test_all_that_was_written_of_a_checkpoint(self, trained, files, log):
        trained.train(numbers(1))
        assert not any(is_there(files).values())
        assert not list(Path(trained.model_dir).glob("*_temp"))
        assert not list(Path(trained.model_dir).glob(".saving*"))
        assert any(
            "Removed what a training that was killed left of model.ckpt-6" in x for x in log()
        )

    def test_the_complete_ones_stay(self, trained, files):
        trained.train(numbers(1))
        for step in (0, 2, 4, 5):
            assert tf.train.load_variable(f"{trained.model_dir}/model.ckpt-{step}", "weight") <= 0


class TestCheckpointsThatWereBeingRemoved:
    """The saver has taken them off its list."""

    @pytest.fixture
    def listed(self, trained):
        """The list names 2 and 4 of 0, 2 and 4."""
        tf1.train.update_checkpoint_state(
            trained.model_dir,
            f"{trained.model_dir}/model.ckpt-4",
            [f"{trained.model_dir}/model.ckpt-{step}" for step in (2, 4)],
        )
        return trained

    def names(self, model, step):
        return [path.name for path in Path(model.model_dir).glob(f"model.ckpt-{step}.*")]

    def test_go(self, listed):
        died_saving(listed, 4, removable=(0, 2))
        listed.train(numbers(1))
        assert self.names(listed, 0) == []
        assert len(self.names(listed, 2)) == 3

    def test_stay_if_no_saver_may_have_removed_them(self, listed):
        died_saving(listed, 4)
        listed.train(numbers(1))
        assert len(self.names(listed, 0)) == 3

    @pytest.mark.parametrize("text", ["", "\0" * 64, 'model_checkpoint_path: "model.ckpt-0"\n'])
    def test_stay_if_the_list_is_lost_or_an_old_one(self, trained, text):
        Path(trained.model_dir, "checkpoint").write_text(text)
        died_saving(trained, 6, removable=(0, 2, 4))
        before = [self.names(trained, step) for step in (0, 2, 4)]
        with held_for_training(trained.model_dir):
            pass
        assert [self.names(trained, step) for step in (0, 2, 4)] == before

    def test_are_named_by_the_mark(self, model_dir):
        seen = TestMark.Seen(model_dir)
        model = host_estimator(model_dir, save_checkpoints_steps=2, keep_checkpoint_max=2)
        model.train(numbers(6), saving_listeners=[seen])
        assert seen.contents[-1] == ["model.ckpt-2", "model.ckpt-4"]

    def test_are_not_named_where_one_is_kept_for_good(self, model_dir):
        seen = TestMark.Seen(model_dir)
        model = host_estimator(
            model_dir,
            save_checkpoints_steps=2,
            keep_checkpoint_max=2,
            keep_checkpoint_every_n_hours=0.1,
        )
        model.train(numbers(6), saving_listeners=[seen])
        assert seen.contents[-1] == []


class TestWhatStays:
    def test_what_no_training_of_ours_has_marked(self, trained):
        files = left(trained, *TestWhatGoes.KILLED[:2])
        trained.train(numbers(1))
        assert all(is_there(files).values())

    def test_what_another_release_writes_of_the_same_step(self, trained):
        files = left(trained, f"model.ckpt-6_temp_{UUID}/part-0", "model.ckpt-60.meta")
        died_saving(trained, 6)
        trained.train(numbers(1))
        assert all(is_there(files).values())

    def test_a_complete_checkpoint_that_is_not_listed_yet(self, trained):
        for path in Path(trained.model_dir).glob("model.ckpt-4.*"):
            Path(str(path).replace("ckpt-4", "ckpt-9")).write_bytes(path.read_bytes())
        died_saving(trained, 9)
        trained.train(numbers(1))
        assert tf.train.load_variable(f"{trained.model_dir}/model.ckpt-9", "weight") == -10

    def test_a_damaged_checkpoint_that_is_listed(self, trained):
        index = Path(trained.model_dir, "model.ckpt-4.index")
        index.write_bytes(b"")
        died_saving(trained, 4)
        trained.train(numbers(1))
        assert index.exists()

    def test_all_where_a_lock_does_not_keep_other_machines_out(self, trained, monkeypatch, log):
        monkeypatch.setattr(unfinished_saves, "excludes_all", lambda folder: False)
        files = left(trained, TestWhatGoes.KILLED[0])
        died_saving(trained, 6)
        trained.train(numbers(1))
        assert all(is_there(files).values())
        assert any("not certain that locks" in line for line in log())

    def test_a_list_that_was_written_just_now(self, trained):
        (fresh,) = left(trained, f"checkpoint.tmp{UUID}")
        os.utime(fresh, (4e9, 4e9))
        died_saving(trained, 6)
        trained.train(numbers(1))
        assert fresh.exists()

    def test_what_a_link_leads_to(self, trained, tmp_path):
        precious = tmp_path / "precious"
        precious.mkdir()
        (precious / "file").touch()
        Path(trained.model_dir, "model.ckpt-6_temp").symlink_to(precious)
        died_saving(trained, 6)
        trained.train(numbers(1))
        assert (precious / "file").exists()

    def test_all_while_nobody_holds_the_folder(self, trained):
        files = left(trained, TestWhatGoes.KILLED[0])
        died_saving(trained, 6)
        unfinished_saves.clear(trained.model_dir)
        trained.evaluate(numbers(1))
        assert all(is_there(files).values())


class TestWhereTheStepsAreDone:
    """A training that was killed as it ended has its last checkpoint; no step comes after it."""

    @pytest.fixture
    def done(self, model_dir):
        """Killed before it had removed the checkpoint 0, and the position of 4."""
        model = host_estimator(model_dir).train(numbers(9), steps=4)
        Path(model_dir, "input_position-4.pending").touch()
        latest = f"{model_dir}/model.ckpt-4"
        tf1.train.update_checkpoint_state(model_dir, latest, [latest])
        Path(model_dir, "model.ckpt-0.index").unlink()
        died_saving(model, 4, removable=(0, 4))
        return model

    def test_the_next_start_clears_what_was_left(self, done):
        done.train(numbers(9), max_steps=4)
        names = os.listdir(done.model_dir)
        left_over = (".saving", "model.ckpt-0", "input_position")
        assert not [name for name in names if name.startswith(left_over)]
        assert "model.ckpt-4.index" in names

    def test_it_changes_nothing_while_another_training_holds_the_folder(self, done):
        before = sorted(os.listdir(done.model_dir))
        lock = FolderLock.of_folder(done.model_dir)
        done.train(numbers(9), max_steps=4)
        lock.release()
        assert sorted(os.listdir(done.model_dir)) == before


class TestMark:
    class Seen(tf1.train.CheckpointSaverListener):
        def __init__(self, folder):
            self._folder = Path(folder)
            self.marks, self.contents = [], []

        def before_save(self, session, step):
            marks = list(self._folder.glob(".saving*"))
            self.marks.append([path.name for path in marks])
            self.contents.append(marks[0].read_text().splitlines())

    def test_is_there_while_a_checkpoint_is_written_and_only_then(self, model_dir):
        seen = self.Seen(model_dir)
        model = host_estimator(model_dir, save_checkpoints_steps=2)
        model.train(numbers(4), saving_listeners=[seen])
        assert seen.marks == [[f".saving.model.ckpt-{step}"] for step in (0, 2, 4)]
        assert not list(Path(model_dir).glob(".saving*"))

    def test_goes_with_a_checkpoint_that_cannot_be_written(self, model_dir, monkeypatch):
        config = estimator.RunConfig(model_dir, save_checkpoints_steps=2)
        options = estimator.TrainingOptions(async_checkpoints=True)
        model = estimator.Estimator(falling, config=config, params={}, options=options)
        save = tf1.train.Saver.save

        def fails(self, *args, **kwargs):
            if kwargs.get("global_step") == 2:
                raise tf.errors.ResourceExhaustedError(None, None, "No space left on device")
            return save(self, *args, **kwargs)

        monkeypatch.setattr(tf1.train.Saver, "save", fails)
        seen = []

        class Look(tf1.train.SessionRunHook):
            def after_run(self, run_context, run_values):
                if run_context.session.run(tf1.train.get_global_step()) == 6:
                    seen.extend(os.listdir(model_dir))

        model.train(numbers(6), hooks=[Look()])
        assert "input_position-2.pending" not in seen
        assert ".saving.model.ckpt-2" not in seen


def test_a_training_killed_while_it_saves_leaves_a_mark_and_the_next_one_clears_it(model_dir):
    pid = os.fork()
    if not pid:  # TensorFlow is not used in it: it only writes what a saver would have written
        with held_for_training(model_dir):
            unfinished_saves.SaveMarker(model_dir, "model.ckpt", lambda: None).before_save(None, 3)
            temporary = Path(model_dir, "model.ckpt-3_temp")
            temporary.mkdir()
            (temporary / "part").write_bytes(bytes(100))
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    assert sorted(os.listdir(model_dir)) == [".saving.model.ckpt-3", "model.ckpt-3_temp"]
    host_estimator(model_dir).train(numbers(1))
    assert not {".saving.model.ckpt-3", "model.ckpt-3_temp"} & set(os.listdir(model_dir))
