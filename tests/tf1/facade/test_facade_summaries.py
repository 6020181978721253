"""`tf.compat.v2.summary` writes what TensorBoard reads, also where TensorBoard is not installed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import estimator2strategy.tf1 as tf1

summary = tf1.compat.v2.summary


@pytest.fixture
def written(tmp_path):
    """`written(function)`: tag -> (plugin, step, value) of what it writes."""

    def write(function):
        with summary.create_file_writer(str(tmp_path)).as_default():
            assert function()
        (path,) = Path(tmp_path).glob("events*")
        values = {}
        for event in tf1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                plugin = value.metadata.plugin_data.plugin_name
                values[value.tag] = plugin, event.step, tf.make_ndarray(value.tensor)
        return values

    return write


def test_scalar(written):
    assert written(lambda: summary.scalar("loss", [2], step=3)) == {"loss": ("scalars", 3, 2.0)}


def test_the_tag_is_the_name_in_its_scope(written):
    def write():
        with tf.name_scope("train"):
            return summary.scalar("loss", 2.0, step=3)

    assert list(written(write)) == ["train/loss"]


def test_histogram_counts_values_in_buckets_of_equal_width(written):
    values = written(lambda: summary.histogram("w", [0.0, 1.0, 3.0, 4.0], step=1, buckets=2))
    plugin, step, rows = values["w"]
    assert (plugin, step) == ("histograms", 1)
    assert rows.tolist() == [[0.0, 2.0, 2.0], [2.0, 4.0, 2.0]]


def test_histogram_of_one_value_has_one_bucket_around_it(written):
    rows = written(lambda: summary.histogram("w", [5.0, 5.0], step=1, buckets=2))["w"][2]
    assert rows.tolist() == [[0.0, 0.0, 0.0], [4.5, 5.5, 2.0]]


def test_histogram_of_nothing_has_no_bucket(written):
    assert written(lambda: summary.histogram("w", [], step=1))["w"][2].shape == (0, 3)


def test_image_holds_width_height_and_the_first_images(written):
    images = np.zeros([4, 2, 3, 1], np.float32)
    images[1] = 2.0  # more than white
    plugin, _, value = written(lambda: summary.image("i", images, step=1, max_outputs=2))["i"]
    assert plugin == "images"
    assert value[:2].tolist() == [b"3", b"2"]
    decoded = [tf.io.decode_png(png).numpy() for png in value[2:]]
    assert [(image.shape, image.max()) for image in decoded] == [((2, 3, 1), 0), ((2, 3, 1), 255)]


def test_text(written):
    plugin, _, value = written(lambda: summary.text("t", ["a", "b"], step=1))["t"]
    assert (plugin, value.tolist()) == ("text", [b"a", b"b"])


def test_it_is_written_in_a_graph_too(tmp_path):
    with tf.Graph().as_default(), tf1.Session() as session:
        writer = summary.create_file_writer(str(tmp_path))
        with writer.as_default(), summary.record_if(True):
            op = summary.scalar("loss", tf.constant(1.5), step=7)
        session.run(writer.init())
        session.run([op, writer.flush()])
    (path,) = Path(tmp_path).glob("events*")
    (value,) = [v for e in tf1.train.summary_iterator(str(path)) for v in e.summary.value]
    assert (value.tag, float(tf.make_ndarray(value.tensor))) == ("loss", 1.5)
