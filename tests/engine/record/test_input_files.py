"""Files that TensorFlow ends early, or that TensorFlow 1.15 ended early, are told."""

from __future__ import annotations

import gzip
import os
import zlib

import pytest
import tensorflow as tf

import estimator2strategy.tf1 as tf1
from estimator2strategy import Estimator
from estimator2strategy.engine.record import cut_records, input_files

HEADER, CHECKSUM = 12, 4
PACKED = {"GZIP": gzip.compress, "ZLIB": zlib.compress}


@pytest.fixture
def warnings(monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(tf.compat.v1.logging, "warn", lambda text, *_: said.append(text))
    return said


@pytest.fixture(params=["local", "remote"])
def folder(request, tmp_path):
    """A folder of the machine, and one of another file system of TensorFlow's."""
    return str(tmp_path) if request.param == "local" else f"ram://{tmp_path.name}"


def write(path, data):
    with tf.io.gfile.GFile(path, "wb") as file:
        file.write(data)
    return path


def records(tmp_path, *sizes):
    path = str(tmp_path / "plain")
    with tf.io.TFRecordWriter(path) as writer:
        for size in sizes:
            writer.write(os.urandom(size))
    with open(path, "rb") as file:
        return file.read()


def look_at(*names, kind="", dataset=tf.data.TFRecordDataset):
    with tf.Graph().as_default() as graph:
        tf.data.Dataset.from_tensor_slices(list(names)).interleave(
            lambda name: dataset(name, compression_type=kind), cycle_length=2
        )
        input_files.warn_of_input_files(graph)


@pytest.mark.parametrize("kind", ["", "GZIP", "ZLIB"])
@pytest.mark.parametrize("left", [1, 11])
def test_a_cut_inside_a_header_is_told_of_all_kinds_of_files(
    tmp_path, folder, warnings, kind, left
):
    data = records(tmp_path, 20, 30, 40)[: -40 - CHECKSUM - HEADER + left]
    path = write(f"{folder}/cut", PACKED.get(kind, bytes)(data))
    look_at(path, kind=kind)
    [said] = warnings
    assert f"its last {left} byte(s)" in said
    assert path in said
    assert f"{__file__}:" in said


@pytest.mark.parametrize("kind", ["", "GZIP", "ZLIB"])
@pytest.mark.parametrize("sizes", [[20, 30], [0], [5, 3_000_000]])
def test_a_whole_file_is_not_told(tmp_path, folder, warnings, kind, sizes):
    look_at(write(f"{folder}/whole", PACKED.get(kind, bytes)(records(tmp_path, *sizes))), kind=kind)
    assert not warnings


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_packed_records_that_hold_a_file_of_records_are_not_told(tmp_path, warnings, kind):
    inner = records(tmp_path, 20, 20)
    path = str(tmp_path / "outer")
    with tf.io.TFRecordWriter(path, kind) as writer:
        writer.write(os.urandom(cut_records._FIRST_LOOK) + inner)
    look_at(path, kind=kind)
    assert not warnings


def test_files_of_a_remote_pattern_are_looked_at(tmp_path, warnings):
    data = records(tmp_path, 20, 20)
    write("ram://pattern/part-0", data)
    write("ram://pattern/part-1", data[: -20 - CHECKSUM - 5])
    look_at("ram://pattern/part-*")
    [said] = warnings
    assert "ram://pattern/part-1" in said


def test_a_remote_file_that_is_missing_is_left_to_the_input(warnings):
    look_at("ram://nowhere/a", "nothing://b/c")
    assert not warnings


# TensorFlow 1.15.5 read a1 and a2 of the first of these, and "a", "b" and b"aaaa" of the others.


def test_a_gzip_of_several_members_is_told(tmp_path, folder, warnings):
    members = [gzip.compress(records(tmp_path, *sizes)) for sizes in ([20, 20], [20], [20])]
    path = write(f"{folder}/members", b"".join(members))
    look_at(path, kind="GZIP")
    [said] = warnings
    assert "a GZIP file of several members. TensorFlow 1.15 read the first alone" in said
    assert path in said
    # If a new TensorFlow reads the first alone again, the warning is wrong.
    assert len(list(tf.data.TFRecordDataset(path, "GZIP"))) == 4


@pytest.mark.parametrize(
    ("dataset", "parts", "read"),
    [
        (tf.data.TextLineDataset, (b"a\nb", b"c\nd\n"), [b"a", b"bc", b"d"]),
        (
            lambda name, compression_type: tf.data.FixedLengthRecordDataset(
                name, 4, compression_type=compression_type
            ),
            (b"aaaa", b"bbbb"),
            [b"aaaa", b"bbbb"],
        ),
    ],
)
def test_members_of_lines_and_of_fixed_lengths_are_told(tmp_path, warnings, dataset, parts, read):
    path = write(str(tmp_path / "members"), b"".join(map(gzip.compress, parts)))
    look_at(path, kind="GZIP", dataset=dataset)
    assert len(warnings) == 1
    assert [x.numpy() for x in dataset(path, compression_type="GZIP")] == read


def test_one_line_is_enough_for_many_files_of_members(tmp_path, warnings):
    paths = [write(str(tmp_path / f"{i}"), 2 * gzip.compress(b"line\n")) for i in range(3)]
    look_at(*paths, kind="GZIP", dataset=tf.data.TextLineDataset)
    assert len(warnings) == 1


def test_a_cut_in_a_later_member_is_told(tmp_path, warnings):
    whole = records(tmp_path, 20, 30)
    path = write(str(tmp_path / "cut"), gzip.compress(whole) + gzip.compress(whole[: -30 - 4 - 3]))
    look_at(path, kind="GZIP")
    assert ["several members" in warnings[0], "its last 9 byte(s)" in warnings[1]] == [True, True]


def test_a_zlib_of_several_streams_is_told(tmp_path, warnings):
    path = write(str(tmp_path / "streams"), 2 * zlib.compress(records(tmp_path, 20)))
    look_at(path, kind="ZLIB")
    [said] = warnings
    assert "several streams. TensorFlow reads the first alone" in said
    assert len(list(tf.data.TFRecordDataset(path, "ZLIB"))) == 1


def test_bytes_behind_a_gzip_are_told(tmp_path, warnings):
    path = write(str(tmp_path / "padded"), gzip.compress(records(tmp_path, 20)) + bytes(100))
    look_at(path, kind="GZIP")
    [said] = warnings
    assert "other bytes behind its data" in said
    with pytest.raises(tf.errors.DataLossError):
        list(tf.data.TFRecordDataset(path, "GZIP"))


def test_a_gzip_that_ends_in_the_middle_is_told_wherever_it_ends(tmp_path, warnings):
    packed = gzip.compress(records(tmp_path, 50, 50))
    lengths = range(3, len(packed))
    look_at(*(write(str(tmp_path / f"{n}"), packed[:n]) for n in lengths), kind="GZIP")
    assert len(warnings) == len(lengths)
    assert all("truncated: it ends in the middle of its data" in said for said in warnings)


def test_a_compressed_file_that_is_read_as_it_is_is_not_told(tmp_path, warnings):
    look_at(write(str(tmp_path / "words.gz"), 2 * gzip.compress(b"a\nb\n")))
    assert not warnings


def test_only_so_much_of_compressed_files_is_read(tmp_path, warnings, monkeypatch):
    monkeypatch.setattr(input_files, "_MOST_PACKED", 1000)
    random = os.urandom(5000)
    path = write(str(tmp_path / "large"), gzip.compress(random) + gzip.compress(random))
    look_at(path, kind="GZIP", dataset=tf.data.TextLineDataset)
    assert not warnings


def test_the_iterator_of_tf115_tells_what_it_reads(tmp_path, warnings):
    path = write(str(tmp_path / "members"), 2 * gzip.compress(records(tmp_path, 20)))
    options = tf1.python_io.TFRecordOptions(tf1.python_io.TFRecordCompressionType.GZIP)
    assert len(list(tf1.python_io.tf_record_iterator(path, options))) == 2
    [said] = warnings
    assert "tf_record_iterator reads a GZIP file of several members" in said
    assert f"{__file__}:" in said


def test_a_queue_of_compressed_records_is_told(tmp_path, warnings):
    path = write(str(tmp_path / "members"), 2 * gzip.compress(records(tmp_path, 20)))

    def input_fn():
        options = tf1.python_io.TFRecordOptions(tf1.python_io.TFRecordCompressionType.GZIP)
        queue = tf1.train.string_input_producer([path], num_epochs=1)
        _, record = tf1.TFRecordReader(options=options).read(queue)
        return {"x": tf1.train.batch([record], 1)}

    def model_fn(features, mode):
        return tf1.estimator.EstimatorSpec(mode, predictions=features["x"])

    assert len(list(Estimator(model_fn, str(tmp_path / "model")).predict(input_fn))) == 2
    assert any("a GZIP file of several members" in said for said in warnings)
