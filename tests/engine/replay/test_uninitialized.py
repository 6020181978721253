"""A run that reads a variable without a value says so, as a Session does."""

from __future__ import annotations

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.replay.engines import Step
from estimator2strategy.engine.replay.session import ReplaySession
from estimator2strategy.engine.worlds import legacy_world, recording

tf1 = tf.compat.v1


@pytest.fixture
def graph():
    with legacy_world(), recording(None) as graph:
        yield graph


def refused(name):
    return pytest.raises(tf.errors.FailedPreconditionError, match=f"uninitialized value {name}")


def test_a_fetch_that_reads_it(graph):
    first, second = tf1.get_variable("first", [3]), tf1.get_variable("second", [3])
    both = first + second
    session = ReplaySession(graph)
    session.run(first.initializer)
    with refused("second"):
        session.run([both])
    session.run(second.initializer)
    session.run([both])


def test_an_empty_reference_variable_has_a_value_and_grows(graph):
    seen = tf1.Variable([], dtype=tf.string, collections=[], use_resource=False)
    words = tf1.string_split(["a b"]).values
    update = tf1.assign(seen, tf.concat([seen, words], 0), validate_shape=False)
    session = ReplaySession(graph)
    session.run(update)
    session.run(update)
    assert session.run(seen).tolist() == [b"a", b"b"] * 2


def test_a_step_that_reads_it_and_writes_it_then(graph):
    weight = tf1.get_variable("weight", [], initializer=tf1.ones_initializer())
    step = tf1.train.GradientDescentOptimizer(0.1).minimize(weight * weight)
    session = ReplaySession(graph)
    session.expect(Step(step.name), 1)
    with refused("weight"):
        session.run(step)


def test_it_may_be_read_after_it_was_written(graph):
    weight = tf1.get_variable("weight", [2], initializer=tf1.ones_initializer())
    with tf.control_dependencies([weight.initializer]):
        value = weight.read_value()
    session = ReplaySession(graph)
    assert session.run([value])[0].tolist() == [1, 1]


def test_it_may_be_read_where_it_has_a_value(graph):
    weight = tf1.get_variable("weight", [2], initializer=tf1.ones_initializer())
    value = weight.initialized_value()
    session = ReplaySession(graph)
    assert session.run([value])[0].tolist() == [1, 1]


def writing_model(model_dir, folder, recorded_if=True, scaffold_of=lambda writer: None):
    def model_fn(features, labels, mode):
        step = tf1.train.get_global_step()
        writer = tf.summary.create_file_writer(str(folder))
        with writer.as_default(), tf.summary.record_if(recorded_if):
            written = tf.summary.write("one", features, step=step)
        with tf.control_dependencies([written]):
            train_op = step.assign_add(1)
        return estimator.EstimatorSpec(
            mode, loss=features * 1.0, train_op=train_op, scaffold=scaffold_of(writer)
        )

    return estimator.Estimator(model_fn, model_dir)


def endless_ones():
    return tf.data.Dataset.from_tensors(1.0).repeat()


@pytest.mark.parametrize("recorded_if", [True, lambda: tf.equal(tf1.train.get_global_step(), 2)])
def test_a_summary_writer_that_nothing_opened_is_named_where_it_is_first_needed(
    model_dir, tmp_path, recorded_if
):
    model = writing_model(model_dir, tmp_path, recorded_if)
    with pytest.raises(tf.errors.NotFoundError, match="Nothing has opened the summary writer") as e:
        model.train(endless_ones, steps=4)
    assert "writer = tf.summary.create_file_writer(str(folder))" in str(e.value)
    assert "does not exist" in str(e.value)


def test_a_scaffold_opens_a_summary_writer(model_dir, tmp_path):
    def scaffold(writer):
        usual = tf1.train.Scaffold.default_local_init_op()
        return tf1.train.Scaffold(local_init_op=tf.group(usual, writer.init()))

    folder = tmp_path / "events"
    writing_model(model_dir, folder, scaffold_of=scaffold).train(endless_ones, steps=2)
    (path,) = folder.iterdir()
    assert [e.step for e in tf1.train.summary_iterator(str(path)) if e.summary.value] == [0, 1]


@pytest.mark.parametrize("shape", [[], [3]])
def test_a_variable_of_a_model_that_no_init_op_knows(model_dir, shape):
    def model_fn(features, labels, mode):
        kept = tf1.get_variable("kept", shape, collections=["mine"])
        loss = tf.reduce_sum(kept * features)
        train_op = tf1.train.get_global_step().assign_add(1)
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    model = estimator.Estimator(model_fn, model_dir)
    with refused("kept"):
        model.train(lambda: tf.data.Dataset.from_tensors((tf.ones([3]), 0.0)), steps=1)
