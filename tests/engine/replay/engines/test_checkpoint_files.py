"""Savers read and write checkpoints without a program."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy.engine.replay import engines
from estimator2strategy.engine.replay.engines.checkpoint_files import CheckpointFiles
from estimator2strategy.engine.replay.session import ReplaySession
from estimator2strategy.engine.worlds import legacy_world, recording

tf1 = tf.compat.v1


@pytest.fixture
def made(monkeypatch):
    """The types of the engines that are made."""
    types = []
    engine_for = engines.engine_for

    def noted(*args):
        engine = engine_for(*args)
        types.append(type(engine))
        return engine

    monkeypatch.setattr("estimator2strategy.engine.replay.runs.engine_for", noted)
    return types


def variables():
    """A number, text, an empty one, and one in three parts; and what fills them."""
    tf1.get_variable("step", initializer=tf.constant(7, tf.int64))
    tf1.get_variable("text", initializer=tf.constant(["a", "b\n"]))
    tf1.get_variable("empty", [0, 2])
    tf1.get_variable("table", [5, 2], partitioner=tf1.fixed_size_partitioner(3))
    return tf1.global_variables_initializer(), tf1.global_variables()


@pytest.mark.parametrize("sharded", [False, True])
def test_a_saver_writes_what_a_real_session_reads_and_reads_what_it_writes(sharded, made, tmp_path):
    with legacy_world(), recording(None) as graph:
        init, all_variables = variables()
        saver = tf1.train.Saver(sharded=sharded)
        session = ReplaySession(graph)
        session.run(init)
        del made[:]
        ours = saver.save(session, str(tmp_path / "ours"), write_meta_graph=False)
        assert made == [CheckpointFiles]
        before = session.run(all_variables)
        with tf1.Session(graph=graph) as real:
            saver.restore(real, ours)
            for one, other in zip(before, real.run(all_variables), strict=True):
                np.testing.assert_array_equal(one, other)
            real.run(init)
            other = saver.save(real, str(tmp_path / "real"), write_meta_graph=False)
            expected = real.run(all_variables)
        del made[:]
        saver.restore(session, other)
        assert made == [CheckpointFiles]
        for one, value in zip(session.run(all_variables), expected, strict=True):
            np.testing.assert_array_equal(one, value)
            assert one.dtype == value.dtype


def test_a_missing_key_is_told_with_its_node(tmp_path):
    with legacy_world(), recording(None) as graph:
        v = tf1.get_variable("v", [2], initializer=tf1.zeros_initializer())
        saver = tf1.train.Saver([v])
        other = tf1.train.Saver({"other": v})
        session = ReplaySession(graph)
        session.run(v.initializer)
        path = other.save(session, str(tmp_path / "model"), write_meta_graph=False)
        with pytest.raises(tf.errors.NotFoundError, match=r"Key v not found(?s:.)*save/RestoreV2"):
            saver.restore(session, path)


def test_a_folder_that_cannot_be_is_told_as_in_a_session(tmp_path):
    with legacy_world(), recording(None) as graph:
        v = tf1.get_variable("v", [2], initializer=tf1.ones_initializer())
        saver = tf1.train.Saver([v])
        session = ReplaySession(graph)
        session.run(v.initializer)
        (tmp_path / "model").write_text("a file where a folder is needed")
        with pytest.raises(ValueError, match="doesn't exist, can't save"):
            saver.save(session, str(tmp_path / "model" / "x"), write_meta_graph=False)
        np.testing.assert_array_equal(session.run(v), [1, 1])


def test_what_reshapes_has_a_program(made, tmp_path):
    with legacy_world(), recording(None) as graph:
        v = tf1.get_variable("v", [2, 3], initializer=tf1.ones_initializer())
        saver = tf1.train.Saver([v], reshape=True)
        session = ReplaySession(graph)
        session.run(v.initializer)
        path = saver.save(session, str(tmp_path / "model"), write_meta_graph=False)
        del made[:]
        saver.restore(session, path)
        assert made
        assert CheckpointFiles not in made
        np.testing.assert_array_equal(session.run(v), np.ones([2, 3]))
