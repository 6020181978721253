"""A TFRecord file that is cut inside a header is told, and one that is whole is not."""

from __future__ import annotations

import os

import pytest
import tensorflow as tf

from estimator2strategy.engine.record import cut_records, input_files

HEADER, CHECKSUM = 12, 4


@pytest.fixture
def warnings(monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(tf.compat.v1.logging, "warn", said.append)
    return said


def records(path, sizes, cut=0):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for size in sizes:
            writer.write(os.urandom(size))
    with open(path, "r+b") as file:
        file.truncate(os.path.getsize(path) - cut)
    return str(path)


def look_at(*names):
    with tf.Graph().as_default() as graph:
        tf.data.Dataset.from_tensor_slices(list(names)).flat_map(tf.data.TFRecordDataset)
        input_files.warn_of_input_files(graph)


@pytest.mark.parametrize("left", [1, 7, 11])
def test_a_file_cut_inside_a_header_is_told_with_the_line_that_names_it(tmp_path, warnings, left):
    path = records(tmp_path / "a", [20, 30, 40], cut=40 + CHECKSUM + HEADER - left)
    look_at(path)
    [said] = warnings
    assert f"its last {left} byte(s)" in said
    assert path in said
    assert f"{__file__}:" in said
    assert "from_tensor_slices" in said


@pytest.mark.parametrize("sizes", [[0], [20, 30], [0, 0, 0], [200_000], [10, 3_000_000]])
def test_a_whole_file_is_not_told(tmp_path, warnings, sizes):
    look_at(records(tmp_path / "a", sizes))
    assert not warnings


def test_a_file_whose_last_whole_record_is_large_is_told(tmp_path, warnings):
    look_at(records(tmp_path / "a", [5, 3_000_000, 9], cut=9 + CHECKSUM + 3))
    assert len(warnings) == 1


def test_a_record_that_holds_a_file_of_records_is_no_cut(tmp_path, warnings):
    inner = records(tmp_path / "inner", [20, 20])
    with open(inner, "rb") as file, tf.io.TFRecordWriter(str(tmp_path / "outer")) as writer:
        writer.write(os.urandom(cut_records._FIRST_LOOK) + file.read())
    look_at(str(tmp_path / "outer"))
    assert not warnings


def test_files_of_a_pattern_are_looked_at(tmp_path, warnings):
    records(tmp_path / "part-0", [20])
    records(tmp_path / "part-1", [20, 20], cut=20 + CHECKSUM + 5)
    look_at(str(tmp_path / "part-*"))
    assert len(warnings) == 1
    assert "part-1" in warnings[0]


def test_what_holds_no_records_is_not_told(tmp_path, warnings):
    (tmp_path / "words.txt").write_text("a list of words\n" * 1000)
    look_at(str(tmp_path / "words.txt"), "no file", str(tmp_path))
    assert not warnings


def test_a_cut_of_any_length_is_told_exactly_where_tensorflow_is_silent(tmp_path, warnings):
    whole = records(tmp_path / "whole", [3, 17])
    with open(whole, "rb") as file:
        data = file.read()
    for length in range(HEADER + 1, len(data)):
        path = str(tmp_path / f"cut-{length}")
        with open(path, "wb") as file:
            file.write(data[:length])
        warnings.clear()
        look_at(path)
        try:
            list(tf.data.TFRecordDataset(path))
        except tf.errors.DataLossError:
            assert not warnings, length
        else:
            is_whole = length in (3 + HEADER + CHECKSUM, len(data))
            assert bool(warnings) is not is_whole, length
