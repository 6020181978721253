"""A checkpoint in several files, written at the same time, is read as one in one file is."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.runtime.sharded_saving import split_by_size
from tests.engine.runtime.programs import (
    cores_estimator,
    falling,
    numbers,
    ones,
)

tf1 = tf.compat.v1


def several(features, labels, mode, params):
    """`falling`, with variables of other sizes, types and kinds beside its weight."""
    tf1.get_variable("large", [1000], initializer=tf1.constant_initializer(2.0))
    parts = tf1.fixed_size_partitioner(2)
    tf1.get_variable("cut", [6, 2], partitioner=parts, initializer=tf1.ones_initializer())
    tf1.get_variable("words", initializer=tf.constant(["a", "b"]), trainable=False)
    return falling(features, labels, mode, params)


def trained(folder, model_fn=several, steps=3, **options):
    config = estimator.RunConfig(folder, save_checkpoints_steps=1, keep_checkpoint_max=9)
    options = estimator.TrainingOptions(**options)
    model = estimator.Estimator(model_fn, config=config, params={}, options=options)
    return model.train(numbers(steps))


def files(folder, step):
    return sorted(path.suffix for path in Path(folder).glob(f"model.ckpt-{step}.data*"))


def shards(count):
    return [f".data-{i:05}-of-{count:05}" for i in range(count)]


def values(path):
    reader = tf.train.load_checkpoint(path)
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


class TestSplit:
    def test_parts_are_of_about_one_size(self):
        sizes = [5, 9, 1, 7, 3, 3]
        parts = split_by_size(range(6), sizes, 3)
        assert [sum(sizes[i] for i in part) for part in parts] == [9, 10, 9]

    def test_each_item_is_in_one_part_in_its_order(self):
        parts = split_by_size("abcdef", [0, 4, 4, 0, 0, 1], 2)
        assert sorted("".join(map("".join, parts))) == [*"abcdef"]
        assert all(part == sorted(part) for part in parts)

    def test_no_part_is_empty(self):
        assert split_by_size("ab", [7, 0], 5) == [["a"], ["b"]]

    @pytest.mark.parametrize(
        ("megabytes", "expected"), [(0, 1), (500, 1), (512, 2), (1024, 4), (99_999, 8)]
    )
    def test_by_itself_a_part_has_256_megabytes(self, megabytes, expected):
        sizes = [megabytes * 2**20 // 16] * 16
        assert len(split_by_size(range(16), sizes, None)) == expected


@pytest.mark.parametrize("beside", [True, False])
def test_every_checkpoint_has_as_many_files_as_asked_for(tmp_path, beside):
    trained(str(tmp_path), async_checkpoints=beside, checkpoint_shards=3)
    for step in range(4):
        assert files(tmp_path, step) == shards(3)
    assert not list(tmp_path.glob("*_temp*"))


def test_a_small_model_has_one_file_as_ever(tmp_path):
    trained(str(tmp_path))
    assert files(tmp_path, 3) == shards(1)


def test_values_do_not_depend_on_the_number_of_files(tmp_path):
    one, many = (
        values(trained(str(tmp_path / str(n)), checkpoint_shards=n).latest_checkpoint())
        for n in (1, 4)
    )
    assert one.keys() == many.keys() == {"large", "cut", "words", "weight", "global_step"}
    for name in one:
        np.testing.assert_array_equal(one[name], many[name])


def test_training_goes_on_from_it_whatever_the_number_is_then(tmp_path):
    trained(str(tmp_path), checkpoint_shards=4)
    again = trained(str(tmp_path), checkpoint_shards=2)
    assert again.get_variable_value("weight") == -12
    assert files(tmp_path, 6) == shards(2)


def test_checkpoint_objects_and_v1_savers_read_it(tmp_path):
    path = trained(str(tmp_path), checkpoint_shards=4).latest_checkpoint()
    large = tf.Variable(tf.zeros([1000]), name="large")
    tf.train.Checkpoint(large=large).restore(path)
    assert large.numpy().tolist() == [2.0] * 1000
    with tf.Graph().as_default(), tf1.Session() as session:
        large = tf1.get_variable("large", [1000])
        cut = tf1.get_variable("cut", [6, 2])  # whole
        tf1.train.Saver().restore(session, path)
        assert session.run(large)[-1] == 2
        assert session.run(cut).tolist() == [[1, 1]] * 6


def test_on_cores(emulated_cores, model_dir):
    emulated_cores(2)
    options = estimator.TrainingOptions(checkpoint_shards=2)
    cores_estimator(model_dir, iterations=2, options=options).train(ones, steps=4)
    assert files(model_dir, 4) == shards(2)


def test_files_are_written_at_the_same_time(tmp_path, monkeypatch):
    """None of the writes ends before all have begun."""
    together = threading.Barrier(3, timeout=60)
    save = tf.raw_ops.SaveV2

    def slow(**kwargs):
        if threading.current_thread() is not threading.main_thread():
            together.wait()
        return save(**kwargs)

    monkeypatch.setattr(tf.raw_ops, "SaveV2", slow)
    trained(str(tmp_path), checkpoint_shards=3)
    assert files(tmp_path, 2) == shards(3)


@pytest.mark.parametrize("shards", [0, -1, "all"])
def test_another_number_is_refused(shards):
    with pytest.raises(ValueError, match=r"checkpoint_shards must be None or >= 1"):
        estimator.TrainingOptions(checkpoint_shards=shards)
