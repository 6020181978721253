"""Batches of files by `tf.contrib.learn.io`, as in TF 1.15, where keys and batches are from."""

from __future__ import annotations

import contextlib
import json

import pytest

import estimator2strategy.tf1 as tf
from estimator2strategy.errors import UnsupportedError

learn = tf.contrib.learn
GZIP = tf.python_io.TFRecordOptions(tf.python_io.TFRecordCompressionType.GZIP)


@pytest.fixture
def folder(tmp_path):
    for name, options in (("a.rec", None), ("a.gz", GZIP)):
        with tf.python_io.TFRecordWriter(str(tmp_path / name), options) as writer:
            for word in (b"one", b"twenty", b"three"):
                writer.write(word)
    (tmp_path / "a.txt").write_text("one\ntwenty\nthree\n")
    (tmp_path / "b.txt").write_text("four\nfive\n")
    (tmp_path / "a.bin").write_bytes(b"HHaabbccF")
    return tmp_path


def batches_of(make):
    """All batches of a function that makes tensors."""
    with tf.Graph().as_default(), tf.Session() as session:
        tensors = make()
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        found = []
        with contextlib.suppress(tf.errors.OutOfRangeError):
            while True:
                found.append(session.run(tensors))
        return found


@pytest.mark.parametrize(
    ("pattern", "reader", "keys", "records"),
    [
        ("a.rec", tf.TFRecordReader, ["a.rec:0", "a.rec:19", "a.rec:41"], "one twenty three"),
        (
            "a.gz",
            lambda: tf.TFRecordReader(options=GZIP),
            ["a.gz:0", "a.gz:19", "a.gz:41"],
            "one twenty three",
        ),
        (
            "?.txt",
            tf.TextLineReader,
            ["a.txt:1", "a.txt:2", "a.txt:3", "b.txt:1", "b.txt:2"],
            "one twenty three four five",
        ),
        (
            "?.txt",
            lambda: tf.TextLineReader(skip_header_lines=1),
            ["a.txt:2", "a.txt:3", "b.txt:2"],
            "twenty three five",
        ),
        (
            "a.bin",
            lambda: tf.FixedLengthRecordReader(2, 2, 1),
            ["a.bin:0", "a.bin:1", "a.bin:2"],
            "aa bb cc",
        ),
        ("b.txt", tf.WholeFileReader, ["b.txt"], "four\nfive\n"),
    ],
)
def test_records_and_their_keys_come_in_order(folder, pattern, reader, keys, records):
    def make():
        return learn.read_keyed_batch_examples(
            str(folder / pattern), 2, reader, randomize_input=False, num_epochs=1
        )

    found = batches_of(make)
    assert [key.decode() for batch, _ in found for key in batch] == [
        f"{folder}/{key}" for key in keys
    ]
    expected = [records] if "\n" in records else records.split()
    assert [record.decode() for _, batch in found for record in batch] == expected


def test_all_records_come_in_each_epoch_where_they_are_shuffled(folder):
    found = batches_of(
        lambda: learn.io.read_batch_examples(
            [str(folder / "a.txt"), str(folder / "b.txt")], 4, tf.TextLineReader, num_epochs=2
        )
    )
    assert [len(batch) for batch in found] == [4, 4, 2]
    words = sorted(word for batch in found for word in batch)
    assert words == sorted(2 * [b"one", b"twenty", b"three", b"four", b"five"])


def test_an_input_fn_may_read_examples(tmp_path, model_dir):
    path = str(tmp_path / "examples")
    with tf.python_io.TFRecordWriter(path) as writer:
        for i in range(20):
            x = tf.train.Feature(float_list=tf.train.FloatList(value=[float(i)]))
            y = tf.train.Feature(float_list=tf.train.FloatList(value=[2.0 * i]))
            features = tf.train.Features(feature={"x": x, "y": y})
            writer.write(tf.train.Example(features=features).SerializeToString())
    spec = {name: tf.FixedLenFeature([1], tf.float32) for name in ("x", "y")}

    def input_fn(epochs):
        features = learn.read_batch_features(
            path, 5, spec, tf.TFRecordReader, num_epochs=epochs, queue_capacity=50
        )
        return features, features.pop("y")

    column = tf.feature_column.numeric_column("x")
    model = tf.estimator.LinearRegressor([column], model_dir)
    model.train(lambda: input_fn(None), steps=30)
    assert model.evaluate(lambda: input_fn(1))["label/mean"] == 19.0
    assert len(list(model.predict(lambda: input_fn(1)))) == 20


def test_records_may_be_parsed_one_by_one_or_several_at_once(folder):
    def lengths(read_batch_size):
        def make():
            return learn.read_batch_examples(
                str(folder / "a.txt"),
                2,
                tf.TextLineReader,
                randomize_input=False,
                num_epochs=1,
                read_batch_size=read_batch_size,
                parse_fn=lambda line: {"length": tf.strings.length(line)},
            )

        return [batch["length"].tolist() for batch in batches_of(make)]

    assert lengths(1) == lengths(2) == [[3, 6], [5]]


# As TF 1.15.5 gave them to one worker.


@pytest.mark.parametrize("epochs", [1, 2])
@pytest.mark.parametrize("read_batch_size", [1, 4])
def test_a_queue_that_workers_share_gives_one_worker_all_files_in_order(
    folder, epochs, read_batch_size
):
    def make():
        return learn.read_keyed_batch_examples_shared_queue(
            str(folder / "?.txt"),
            2,
            tf.TextLineReader,
            randomize_input=False,
            num_epochs=epochs,
            queue_capacity=20,
            read_batch_size=read_batch_size,
        )

    found = [word for _, batch in batches_of(make) for word in batch]
    assert found == epochs * [b"one", b"twenty", b"three", b"four", b"five"]


def test_features_come_by_a_shared_queue_with_their_keys(tmp_path):
    for file in range(2):
        with tf.python_io.TFRecordWriter(str(tmp_path / f"f{file}.rec")) as writer:
            for i in range(3):
                x = tf.train.Feature(float_list=tf.train.FloatList(value=[10.0 * file + i]))
                features = tf.train.Features(feature={"x": x})
                writer.write(tf.train.Example(features=features).SerializeToString())

    def make():
        return learn.read_keyed_batch_features_shared_queue(
            str(tmp_path / "f*.rec"),
            2,
            {"x": tf.FixedLenFeature([1], tf.float32)},
            tf.TFRecordReader,
            randomize_input=False,
            num_epochs=1,
            queue_capacity=20,
            num_queue_runners=1,
        )

    found = batches_of(make)
    keys = [key.decode().rpartition("/")[2] for batch, _ in found for key in batch]
    assert keys == ["f0.rec:0", "f0.rec:33", "f0.rec:66", "f1.rec:0", "f1.rec:33", "f1.rec:66"]
    assert [f["x"].tolist() for _, f in found] == [[[0], [1]], [[2], [10]], [[11], [12]]]


def test_a_shared_queue_of_several_workers_is_refused_with_the_way_out(folder, monkeypatch):
    cluster = {"chief": ["a:1"], "worker": ["b:1"], "ps": ["c:1"]}
    monkeypatch.setenv(
        "TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 0}})
    )
    with tf.Graph().as_default(), pytest.raises(UnsupportedError, match=r"\[index::workers\]"):
        learn.read_keyed_batch_examples_shared_queue(str(folder / "a.txt"), 2, tf.TextLineReader)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"file_pattern": "nowhere/*"}, r"No files match nowhere/\*"),
        ({"file_pattern": []}, "No files given"),
        ({"batch_size": 0}, "Invalid batch_size 0, with queue_capacity 10000"),
        ({"batch_size": 20, "queue_capacity": 10}, "Invalid batch_size 20"),
        ({"num_epochs": 0}, "Invalid num_epochs 0"),
        ({"read_batch_size": 0}, "Invalid read_batch_size 0"),
        ({"queue_capacity": 0}, "Invalid queue_capacity 0"),
    ],
)
def test_what_cannot_be_read_is_refused(folder, given, message):
    valid = {"file_pattern": str(folder / "a.txt"), "batch_size": 2, "reader": tf.TextLineReader}
    with tf.Graph().as_default(), pytest.raises(ValueError, match=message):
        learn.read_batch_examples(**{**valid, **given})


def test_a_reader_of_another_kind_is_refused(folder):
    for reader, message in [
        (tf.IdentityReader, "IdentityReaderV2 is not supported"),
        (lambda: tf.FixedLengthRecordReader(2, hop_bytes=1), "hop_bytes"),
    ]:
        with tf.Graph().as_default(), pytest.raises(UnsupportedError, match=message):
            learn.read_batch_examples(str(folder / "a.bin"), 2, reader)
