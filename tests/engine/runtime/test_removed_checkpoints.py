"""A checkpoint that is removed between look-up and restoring: the latest of then is taken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.runtime import checkpoints, latest_checkpoint
from estimator2strategy.errors import CheckpointError
from tests.engine.runtime.programs import numbers, with_checkpoints

tf1 = tf.compat.v1


@pytest.fixture
def trained(model_dir):
    """An estimator with checkpoints at 0, 2, 4 and 6; the weight falls by 1, 2, 3 ..."""
    return with_checkpoints(model_dir, 6)


def remove(model, *steps):
    for step in steps:
        for path in Path(model.model_dir).glob(f"model.ckpt-{step}.*"):
            path.unlink()


def path_of(model, step):
    return os.path.join(model.model_dir, f"model.ckpt-{step}")


class RemovedFirst:
    """Does as a function, once a trainer has removed a checkpoint."""

    def __init__(self, function, model, step):
        self._function, self._left = function, [(model, step)]

    def __call__(self, *args, **kwargs):
        if self._left:
            remove(*self._left.pop())
        return self._function(*args, **kwargs)

    def __get__(self, instance, owner):
        return lambda *args, **kwargs: self(instance, *args, **kwargs)


@pytest.fixture
def removed_late(trained, monkeypatch):
    """Checkpoint 6 is removed just before it is restored."""
    monkeypatch.setattr(checkpoints, "restore", RemovedFirst(checkpoints.restore, trained, 6))
    return trained


def test_evaluate_takes_the_next(removed_late, log):
    assert removed_late.evaluate(numbers(1))["global_step"] == 4
    assert any("was removed before it was read" in line for line in log())


def test_its_results_name_the_one_that_was_restored(removed_late):
    removed_late.evaluate(numbers(1))
    (events,) = Path(removed_late.eval_dir()).glob("events*")
    values = [v for e in tf1.train.summary_iterator(str(events)) for v in e.summary.value]
    (path,) = [tf.make_ndarray(v.tensor).item() for v in values if v.tag == "checkpoint_path"]
    assert path.decode() == path_of(removed_late, 4)


def test_predict_takes_the_next(removed_late):
    assert next(removed_late.predict(numbers(1)))["sum"] == 1 - (1 + 2 + 3 + 4)


def test_train_takes_the_next(removed_late):
    removed_late.train(numbers(1))
    assert removed_late.get_variable_value("weight") == -(1 + 2 + 3 + 4) - 1


def receiver():
    features = tf1.placeholder(tf.float32, [None])
    return estimator.export.TensorServingInputReceiver(features, features)


def model_fn_to_export(features, labels, mode):
    weight = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
    outputs = {"serving_default": estimator.export.PredictOutput({"sum": features + weight})}
    if mode == estimator.ModeKeys.PREDICT:
        return estimator.EstimatorSpec(mode, predictions=features, export_outputs=outputs)
    one = tf.reduce_mean(features) * 0 + 1
    train_op = tf.group(weight.assign_sub(one), tf1.train.get_global_step().assign_add(1))
    return estimator.EstimatorSpec(mode, loss=one, train_op=train_op)


def test_export_takes_the_next(model_dir, tmp_path, monkeypatch):
    config = estimator.RunConfig(model_dir, save_checkpoints_steps=2)
    model = estimator.Estimator(model_fn_to_export, config=config)
    model.train(numbers(6))
    monkeypatch.setattr(tf1.train.Saver, "restore", RemovedFirst(tf1.train.Saver.restore, model, 6))
    folder = model.export_saved_model(str(tmp_path / "exports"), receiver)
    serve = tf.saved_model.load(os.fsdecode(folder)).signatures["serving_default"]
    assert serve(tf.constant([0.0]))["sum"].numpy() == [-4.0]


def test_values_are_those_of_the_next(trained, monkeypatch):
    monkeypatch.setattr(tf.train, "load_variable", RemovedFirst(tf.train.load_variable, trained, 6))
    assert trained.get_variable_value("global_step") == 4


def test_one_that_was_asked_for_is_named_in_the_error(removed_late):
    path = path_of(removed_late, 6)
    with pytest.raises((ValueError, tf.errors.OpError), match=path):
        removed_late.evaluate(numbers(1), checkpoint_path=path)


def test_another_error_is_not_taken_for_a_removal(trained):
    calls = []

    def use(path):
        calls.append(path)
        raise ValueError("of its own")

    with pytest.raises(ValueError, match="of its own"):
        latest_checkpoint.using(path_of(trained, 6), trained.latest_checkpoint, use)
    assert len(calls) == 1


def test_files_that_go_while_they_are_looked_at_are_passed_over(trained, monkeypatch):
    looked_at = RemovedFirst(latest_checkpoint._size_and_time, trained, 6)
    monkeypatch.setattr(latest_checkpoint, "_size_and_time", looked_at)
    assert trained.latest_checkpoint() == path_of(trained, 4)


class TestListThatNamesMissingFiles:
    @pytest.fixture
    def moved(self, trained):
        """Its list names checkpoints of another folder."""
        listed = Path(trained.model_dir, "checkpoint")
        listed.write_text('model_checkpoint_path: "/elsewhere/model.ckpt-9"\n')
        return trained

    def test_the_error_names_what_can_be_used(self, moved):
        with pytest.raises(
            CheckpointError, match=r"complete: model\.ckpt-6, model\.ckpt-4"
        ) as error:
            moved.train(numbers(1))
        assert f"update_checkpoint_state({moved.model_dir!r}, " in str(error.value)

    def test_so_does_a_warning_where_initial_values_are_taken(self, moved, log):
        assert moved.evaluate(numbers(1))["global_step"] == 0
        assert any("Not listed, but complete: model.ckpt-6" in line for line in log())

    def test_what_it_says_helps(self, moved):
        tf1.train.update_checkpoint_state(moved.model_dir, path_of(moved, 6))
        assert moved.evaluate(numbers(1))["global_step"] == 6

    def test_damaged_ones_are_not_named(self, moved):
        Path(moved.model_dir, "model.ckpt-6.index").write_bytes(b"")
        with pytest.raises(CheckpointError, match=r"complete: model\.ckpt-4,"):
            moved.train(numbers(1))
