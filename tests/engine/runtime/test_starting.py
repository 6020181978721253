"""Starting sooner changes nothing else of a training."""

from __future__ import annotations

import gc
import math
import os
import subprocess
import types
import weakref
from pathlib import Path

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.plan.cardinality import is_endless, most_batches
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay.session import ReplaySession
from estimator2strategy.engine.runtime.gc_pause import free_left_graphs, kept_young, note_left
from tests import fresh
from tests.engine.runtime.programs import falling, host_estimator, numbers

tf1 = tf.compat.v1


class TestCollections:
    def test_only_the_youngest_objects_are_collected_meanwhile(self):
        before = gc.get_threshold()
        with kept_young():
            youngest, *older = gc.get_threshold()
            assert youngest == before[0]
            assert min(older) >= 1_000_000_000
        assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)

    def test_where_it_takes_long_the_objects_that_were_there_are_left_out(self):
        before = gc.get_threshold()
        with kept_young(long=0):
            gc.collect(0)
            assert gc.get_threshold() == before
            assert gc.get_freeze_count() > 0
        assert gc.get_freeze_count() == 0

    def test_all_is_as_before_where_it_fails(self):
        before, callbacks = gc.get_threshold(), list(gc.callbacks)
        with pytest.raises(ZeroDivisionError), kept_young():
            _ = 1 / 0
        assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)
        assert gc.callbacks == callbacks

    def test_thresholds_that_the_program_sets_stay(self):
        before = gc.get_threshold()
        try:
            with kept_young(long=0):
                gc.set_threshold(500, 5, 5)
                gc.collect(0)
            assert gc.get_threshold() == (500, 5, 5)
        finally:
            gc.set_threshold(*before)

    def test_what_the_program_has_frozen_stays_so(self):
        gc.freeze()
        try:
            with kept_young(long=0):
                gc.collect(0)
            assert gc.get_freeze_count() > 0
        finally:
            gc.unfreeze()

    def test_a_training_leaves_them_as_they_were(self, model_dir):
        before = gc.get_threshold()
        host_estimator(model_dir).train(numbers(3))
        assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)

    def test_graphs_that_are_left_are_freed_without_a_full_one(self):
        def use():
            free_left_graphs()
            with tf.Graph().as_default() as graph, kept_young():
                for _ in range(2_000):
                    tf.no_op()
            note_left(graph)
            return weakref.ref(graph)

        gc.collect()
        full = gc.get_stats()[2]["collections"]
        left = [use() for _ in range(5)]
        assert gc.get_stats()[2]["collections"] == full
        assert left[0]() is None

    def test_graphs_of_short_calls_are_freed_while_they_are_young(self, model_dir):
        def model_fn(features, labels, mode, params):
            for _ in range(2_000):
                tf.no_op()
            return falling(features, labels, mode, params)

        def train_evaluate_and_predict():
            model.train(numbers(1), steps=1)
            model.evaluate(numbers(1), steps=1)
            next(iter(model.predict(numbers(1))))

        model = host_estimator(model_dir, model_fn)
        train_evaluate_and_predict()
        gc.collect()
        full = gc.get_stats()[2]["collections"]
        for _ in range(6):
            train_evaluate_and_predict()
        assert gc.get_stats()[2]["collections"] == full


DATASETS = {
    "slices": (lambda data: data, False),
    "repeated": (lambda data: data.repeat(), True),
    "ten times": (lambda data: data.repeat(10), None),
    "batches of the repeated": (
        lambda d: d.repeat().map(lambda x: x + 1).shuffle(4).batch(2, drop_remainder=True),
        True,
    ),
    "the first ones": (lambda data: data.repeat().batch(2).take(3), False),
    "filtered": (lambda data: data.repeat().filter(lambda x: x > 0), False),
    "both": (lambda data: tf.data.Dataset.zip((data.repeat(), data)), None),
    "parallel": (lambda d: d.repeat().map(abs, num_parallel_calls=2).prefetch(1), True),
    "padded": (lambda data: data.map(lambda x: x[None]).repeat().padded_batch(2), True),
}


@pytest.mark.parametrize("name", DATASETS)
def test_a_graph_tells_whether_a_dataset_ends(name):
    make, expected = DATASETS[name]
    with tf.Graph().as_default() as graph:
        iterator = tf1.data.make_initializable_iterator(make(tf.data.Dataset.range(9)))
    assert iterator is not None
    (maker,) = (op for op in graph.get_operations() if op.type == "MakeIterator")
    assert is_endless(RecordedGraph(graph), maker.inputs[0].op.name) is expected
    cardinality = make(tf.data.Dataset.range(9)).cardinality()
    if expected is not None:
        assert bool(cardinality == tf.data.INFINITE_CARDINALITY) is expected


def test_a_map_of_tf1_may_end_it():
    with tf.Graph().as_default() as graph:
        data = tf1.data.Dataset.range(9).repeat().map(lambda x: x)
        assert tf1.data.make_initializable_iterator(data)
        recorded = RecordedGraph(graph)
    (maker,) = (op for op in graph.get_operations() if op.type == "MakeIterator")
    assert is_endless(recorded, maker.inputs[0].op.name) is False


def fetched(monkeypatch):
    """The names of the ops of what sessions are asked for."""
    seen = []
    run = ReplaySession.run

    def noted(self, fetches, *args, **kwargs):
        seen.append(getattr(fetches, "name", ""))
        return run(self, fetches, *args, **kwargs)

    monkeypatch.setattr(ReplaySession, "run", noted)
    return seen


def with_scaffold(**kwargs):
    def model_fn(features, labels, mode, params):
        spec = falling(features, labels, mode, params)
        tf1.get_variable("other", [], initializer=tf1.ones_initializer())
        return spec._replace(scaffold=tf1.train.Scaffold(**{k: v() for k, v in kwargs.items()}))

    return model_fn


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        (lambda: tf.data.Dataset.range(3, 10, 2), 4),
        (lambda: tf.data.Dataset.from_tensors(1), 1),
        (lambda: tf.data.Dataset.from_tensor_slices([1, 2, 3, 4, 5]).batch(2), 3),
        (lambda: tf.data.Dataset.range(9).map(lambda x: x + 1).shuffle(3).prefetch(1), 9),
        (lambda: tf.data.Dataset.range(9).take(4).filter(lambda x: x > 2), 4),
        (lambda: tf.data.Dataset.range(9).repeat(), math.inf),
        (lambda: tf.data.Dataset.range(9).repeat().take(7), 7),
        (lambda: tf.data.Dataset.range(2).flat_map(tf.data.Dataset.range), math.inf),
    ],
)
def test_bounds_of_an_input_are_read_off_its_graph(dataset, expected):
    with tf.Graph().as_default() as graph:
        tf1.data.make_initializable_iterator(dataset()).get_next()
    assert most_batches(RecordedGraph(graph)) == expected


def test_a_variable_that_the_program_has_not_initialised_is_named(model_dir):
    model_fn = with_scaffold(init_op=lambda: tf1.variables_initializer(tf1.global_variables()[:2]))
    with pytest.raises(RuntimeError, match=r"Variables not initialized: other\b"):
        host_estimator(model_dir, model_fn).train(numbers(1))


def test_readiness_is_known_without_a_program(model_dir, monkeypatch):
    seen = fetched(monkeypatch)
    host_estimator(model_dir, with_scaffold()).train(numbers(1))
    assert seen
    assert not any("concat" in name or "report" in name for name in seen)


def test_nor_with_ops_that_ask(model_dir):
    """A hook that runs the scaffold's ready_op is told what those would tell it."""
    told = []

    class Asks(tf1.train.SessionRunHook):
        def after_create_session(self, session, coord):
            told.append(session.run(scaffolds[-1].ready_op))
            told.append({op.type for op in session.graph.get_operations()})

    scaffolds = []

    def model_fn(features, labels, mode, params):
        scaffolds.append(tf1.train.Scaffold())
        return falling(features, labels, mode, params)._replace(scaffold=scaffolds[-1])

    host_estimator(model_dir, model_fn).train(numbers(1), hooks=[Asks()])
    missing, types_of_ops = told
    assert missing.size == 0
    assert "LogicalNot" not in types_of_ops  # as of report_uninitialized_variables


def test_the_programs_own_question_is_asked(model_dir, monkeypatch):
    seen = fetched(monkeypatch)

    def ready_op():
        return tf.boolean_mask(["not yet"], [False], name="own")

    host_estimator(model_dir, with_scaffold(ready_op=ready_op)).train(numbers(1))
    assert any(name.startswith("own") for name in seen)


def test_resources_are_asked_for(model_dir, monkeypatch):
    seen = fetched(monkeypatch)

    def model_fn(features, labels, mode, params):
        spec = falling(features, labels, mode, params)
        (weight,) = tf1.get_collection(tf1.GraphKeys.TRAINABLE_VARIABLES)
        resource = types.SimpleNamespace(
            handle=weight.handle, create=tf.no_op(), is_initialized=weight.is_initialized()
        )
        tf1.add_to_collection(tf1.GraphKeys.RESOURCES, resource)
        return spec

    host_estimator(model_dir, model_fn).train(numbers(1))
    assert any("concat" in name for name in seen)


def test_a_config_without_checkpoints_starts_as_well(model_dir):
    config = estimator.RunConfig(model_dir, save_checkpoints_steps=None, save_checkpoints_secs=None)
    estimator.Estimator(falling, config=config, params={}).train(numbers(2))


RESIDENT = """
import tensorflow as tf
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.replay.session import ReplaySession
from estimator2strategy.engine.runtime.session_config import not_rewritten

tf1 = tf.compat.v1

def resident():  # TensorFlow gives no memory back
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmRSS"))

with tf.Graph().as_default() as graph:
    for i in range(16):
        ones = tf1.ones_initializer()
        tf1.get_variable(str(i), [4 * 2**20], initializer=ones, use_resource=True)
    init = tf1.global_variables_initializer()
tf.zeros([]).numpy()
session, before = ReplaySession(graph), resident()
with not_rewritten():
    session.run(init)
print(resident() - before)
"""


def test_large_initial_values_are_made_once():
    result = subprocess.run(
        [fresh.python(), "-c", RESIDENT],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert 256 <= int(result.stdout) < 400  # MB; 256 are the variables
