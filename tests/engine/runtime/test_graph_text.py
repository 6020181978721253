"""`graph.pbtxt` holds the graph of the last training, and is written only when it does not yet."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import tensorflow as tf
from google.protobuf import text_format

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
