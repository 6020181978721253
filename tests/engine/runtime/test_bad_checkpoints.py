"""A checkpoint that was cut short or damaged: the one before it is used, and nothing is lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import tensorflow as tf

from estimator2strategy.engine.runtime import latest_checkpoint as latest
from estimator2strategy.engine.runtime.latest_checkpoint import latest_checkpoint
from estimator2strategy.errors import CheckpointError
from tests.engine.runtime.programs import host_estimator, numbers, with_checkpoints


def cut(path):
    os.truncate(path, os.path.getsize(path) // 2)


def flip_a_byte(path):
    content = bytearray(path.read_bytes())
    content[5] ^= 1
    path.write_bytes(content)


DAMAGE = {
    "data cut short": lambda prefix: cut(f"{prefix}.data-00000-of-00001"),
    "a byte of data changed": lambda prefix: flip_a_byte(Path(f"{prefix}.data-00000-of-00001")),
    "data missing": lambda prefix: os.remove(f"{prefix}.data-00000-of-00001"),
    "index cut short": lambda prefix: cut(f"{prefix}.index"),
    "index missing": lambda prefix: os.remove(f"{prefix}.index"),
}


@pytest.fixture
def trained(model_dir):
    """An estimator with checkpoints at 0, 2, 4 and 6."""
    return with_checkpoints(model_dir, 6)


def checkpoint(model, step):
    return os.path.join(model.model_dir, f"model.ckpt-{step}")


@pytest.mark.parametrize("damage", DAMAGE)
def test_the_checkpoint_before_a_damaged_one_is_the_latest(trained, damage):
    DAMAGE[damage](checkpoint(trained, 6))
    assert trained.latest_checkpoint() == checkpoint(trained, 4)
    assert trained.get_variable_value("global_step") == 4
    assert trained.evaluate(numbers(1))["global_step"] == 4


def test_what_this_process_has_written_to_its_end_is_trusted_unread(trained, monkeypatch):
    def read(path, *unused):
        raise AssertionError(f"{path} is read to see if it is whole.")

    monkeypatch.setattr(latest, "_defect_of", read)
    assert trained.latest_checkpoint() == checkpoint(trained, 6)
    DAMAGE["a byte of data changed"](checkpoint(trained, 6))
    with pytest.raises(AssertionError, match="ckpt-6 is read"):
        trained.latest_checkpoint()


def test_training_goes_on_from_the_checkpoint_before(trained):
    DAMAGE["data cut short"](checkpoint(trained, 6))
    trained.train(numbers(1))
    assert trained.get_variable_value("weight") == -(1 + 2 + 3 + 4) - 1


def test_damaged_files_stay_and_good_ones_are_not_overwritten(model_dir):
    model = host_estimator(model_dir, save_checkpoints_steps=2, keep_checkpoint_max=2)
    model.train(numbers(6))  # keeps 4 and 6
    DAMAGE["data cut short"](checkpoint(model, 6))
    before = {p.name: p.read_bytes() for p in Path(model_dir).glob("model.ckpt-[46].[id]*")}
    model.train(numbers(1))  # from 4 to 5
    after = {p.name: p.read_bytes() for p in Path(model_dir).glob("model.ckpt-[46].[id]*")}
    assert len(before) == 4
    assert after == before
    assert model.latest_checkpoint() == checkpoint(model, 5)


def test_log_names_the_damaged_checkpoint_the_reason_and_the_one_used(trained, caplog):
    DAMAGE["data missing"](checkpoint(trained, 6))
    logger = tf.get_logger()
    propagate, logger.propagate = logger.propagate, True
    try:
        trained.latest_checkpoint()
        trained.latest_checkpoint()
    finally:
        logger.propagate = propagate
    (message,) = (r.getMessage() for r in caplog.records if "Passing over" in r.getMessage())
    assert f"{checkpoint(trained, 4)} is the latest" in message
    assert f"{checkpoint(trained, 6)}: " in message


def test_all_damaged_is_an_error_that_lists_each(trained):
    for step in (0, 2, 4, 6):
        DAMAGE["index cut short"](checkpoint(trained, step))
    with pytest.raises(CheckpointError, match=r"model\.ckpt-0: not an sstable"):
        trained.train(numbers(1))
    with pytest.raises(CheckpointError, match="remove the file 'checkpoint'"):
        trained.evaluate(numbers(1))


def test_all_missing_stops_training_but_not_an_evaluation_with_initial_values(trained):
    for path in Path(trained.model_dir).glob("model.ckpt-*"):
        path.unlink()
    with pytest.raises(ValueError, match="is a valid checkpoint"):
        trained.train(numbers(1))
    assert trained.evaluate(numbers(1))["global_step"] == 0


UNREADABLE = {
    "empty": b"",
    "cut short": b'model_checkpoint_path: "model.ck',
    "of other text": b"?",
    "of random bytes": b"\x80\xff\x00\x01" * 64,
    "of zeros": bytes(512),  # a file system's own, after a power failure
}


@pytest.mark.parametrize("list_of_checkpoints", UNREADABLE)
def test_without_a_list_that_can_be_read_the_newest_checkpoint_is_found(
    trained, list_of_checkpoints
):
    Path(trained.model_dir, "checkpoint").write_bytes(UNREADABLE[list_of_checkpoints])
    DAMAGE["data cut short"](checkpoint(trained, 6))
    assert trained.latest_checkpoint() == checkpoint(trained, 4)
    assert trained.evaluate(numbers(1))["global_step"] == 4
    trained.train(numbers(1))
    assert tf.train.latest_checkpoint(trained.model_dir) == checkpoint(trained, 5)


@pytest.mark.parametrize("list_of_checkpoints", UNREADABLE)
def test_a_list_that_cannot_be_read_is_not_taken_for_an_untrained_model(
    model_dir, list_of_checkpoints
):
    model = host_estimator(model_dir)
    Path(model.model_dir).mkdir(exist_ok=True)
    Path(model.model_dir, "checkpoint").write_bytes(UNREADABLE[list_of_checkpoints])
    with pytest.raises(CheckpointError, match="cannot be read, and none is beside it"):
        model.train(numbers(1))


def test_a_list_that_another_process_writes_first_right_now_is_read(trained, monkeypatch):
    """An evaluator looks for the chief's first checkpoint."""
    read, reads = tf.train.get_checkpoint_state, []

    def state(folder):
        reads.append(folder)
        return read(folder) if len(reads) > 1 else None  # it was not there yet

    monkeypatch.setattr(tf.train, "get_checkpoint_state", state)
    assert latest_checkpoint(trained.model_dir) == checkpoint(trained, 6)
