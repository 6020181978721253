"""`graph.pbtxt` holds the graph of the last training, and is written only when it does not yet."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format

from estimator2strategy.engine.runtime import graph_text
from tests.engine.runtime.programs import falling, host_estimator, numbers

tf1 = tf.compat.v1


@pytest.fixture
def text(model_dir):
    return Path(model_dir, "graph.pbtxt")


def nodes(text):
    return {node.name for node in text_format.Parse(text.read_text(), tf1.GraphDef()).node}


def named(name):
    """A model_fn whose graph has a node of that name."""

    def model_fn(features, labels, mode, params):
        return falling(tf.identity(features, name=name), labels, mode, params)

    return model_fn


def test_a_later_training_of_the_same_graph_leaves_it(model_dir, text):
    model = host_estimator(model_dir)
    model.train(numbers(1))
    before = text.stat()
    model.train(numbers(1))
    after = text.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_another_graph_is_written(model_dir, text):
    names = iter(["first", "second"])

    def model_fn(features, labels, mode, params):
        return named(next(names))(features, labels, mode, params)

    model = host_estimator(model_dir, model_fn)
    model.train(numbers(1))
    first = nodes(text)
    model.train(numbers(1))
    assert first ^ nodes(text) == {"first", "second"}


def test_it_is_written_again_where_it_is_gone(model_dir, text):
    model = host_estimator(model_dir)
    model.train(numbers(1))
    before = nodes(text)
    text.unlink()
    model.train(numbers(1))
    assert nodes(text) == before


def test_it_is_written_again_where_another_estimator_has_written_its_own(model_dir, text):
    one, other = (host_estimator(model_dir, named(name)) for name in ("one", "other"))
    for _ in range(2):
        one.train(numbers(1))
        assert "one" in nodes(text)
        other.train(numbers(1))
        assert "other" in nodes(text)


def test_each_checkpoint_has_the_graph_that_was_trained(model_dir):
    model = host_estimator(model_dir)
    for _ in range(2):
        model.train(numbers(1))
    metas = sorted(Path(model_dir).glob("model.ckpt-*.meta"))
    assert [path.name for path in metas] == [f"model.ckpt-{step}.meta" for step in range(3)]
    for path in metas:
        with tf.Graph().as_default(), tf1.Session() as session:
            saver = tf1.train.import_meta_graph(str(path))
            saver.restore(session, str(path.with_suffix("")))
            step = tf1.train.get_global_step()
            assert path.name == f"model.ckpt-{session.run(step)}.meta"


def test_each_training_writes_its_graph_with_shapes_among_the_events(model_dir):
    names = iter(["first", "first", "second"])

    def model_fn(features, labels, mode, params):
        return named(next(names))(features, labels, mode, params)

    model = host_estimator(model_dir, model_fn)
    for _ in range(3):
        model.train(numbers(1))
    (path,) = Path(model_dir).glob("events.out.tfevents.*")
    events = tf1.train.summary_iterator(str(path))
    graphs = [tf1.GraphDef.FromString(event.graph_def) for event in events if event.graph_def]
    # The first is the writer's own, of the graph in which it was made.
    shapes = [{n.name: "_output_shapes" in n.attr for n in graph.node} for graph in graphs[1:]]
    assert [shape.get("first") for shape in shapes] == [True, True, None]
    assert [shape.get("second") for shape in shapes] == [None, None, True]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has a device that is full")
def test_a_full_disk_is_one_sentence_and_training_goes_on(model_dir, text, log, capfd):
    text.parent.mkdir(exist_ok=True)
    Path(f"{text}.tmp").symlink_to("/dev/full")
    model = host_estimator(model_dir, save_checkpoints_steps=1)
    model.train(numbers(3))
    assert model.get_variable_value("global_step") == 3
    (message,) = log(logging.ERROR)
    assert message.startswith("graph.pbtxt could not be written, and training goes on without it")
    assert f"{text}.tmp; No space left on device" in message
    assert "Traceback" not in capfd.readouterr().err
    assert not Path(f"{text}.tmp").is_symlink()


def written(graph_def, folder):
    """The text of a graph, and the graph that it is read as."""
    graph_text.write(tf1.GraphDef.FromString(graph_def.SerializeToString()), str(folder))
    text = Path(folder, "graph.pbtxt").read_text()
    return text, text_format.Parse(text, tf1.GraphDef())


def test_large_data_are_written_whole_in_nodes_and_in_functions(tmp_path):
    data = np.tile(np.arange(256, dtype=np.uint8), 8200)  # more than a piece

    @tf.function
    def shifted(x):
        return x + tf.constant(data[::-1])

    with tf.Graph().as_default() as graph:
        tf.identity(shifted(tf.constant(data)), name="after")
        tf.constant('tensor_content: "<data 0>"', name="like_a_mark")
    graph_def = graph.as_graph_def(add_shapes=True)
    _, read = written(graph_def, tmp_path)
    assert read == graph_def


def test_each_byte_is_written_as_protobuf_writes_it():
    for byte in range(256):
        data = bytes([byte])
        assert b"".join(graph_text._escaped(data)).decode() in str(tf1.AttrValue(s=data))


def test_attributes_are_in_the_order_of_their_names(tmp_path):
    with tf.Graph().as_default() as graph, tf.device("/CPU:0"):
        tf.nn.conv2d(tf.zeros([1, 4, 4, 1]), tf.zeros([2, 2, 1, 1]), 1, "SAME", name="c")
    text, read = written(graph.as_graph_def(add_shapes=True), tmp_path)
    assert read == graph.as_graph_def(add_shapes=True)
    (conv,) = [node for node in text.split("\nnode {") if 'op: "Conv2D"' in node]
    keys = re.findall(r'\n  attr {\n    key: "(\w+)"', conv)
    assert len(keys) > 5
    assert keys == sorted(keys)
