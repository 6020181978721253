"""Checkpoints that are written while training goes on hold what one that waits would."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format

from estimator2strategy import estimator
from estimator2strategy.engine.replay.snapshot import Snapshot
from tests import fresh
from tests.engine.runtime.programs import (
    cores_estimator,
    falling,
    host_estimator,
    numbers,
    ones,
)

tf1 = tf.compat.v1


class SlowDisk(tf1.train.SessionRunHook):
    """The checkpoint of a step is not complete before the next step begins."""

    def __init__(self, monkeypatch):
        self._next_step = threading.Event()
        self._runs = 0
        self.latest = []
        write = Snapshot.run

        def slow(snapshot, *args, **kwargs):
            assert self._next_step.wait(timeout=300), "Training has waited for the checkpoint."
            self._next_step.clear()
            return write(snapshot, *args, **kwargs)

        monkeypatch.setattr(Snapshot, "run", slow)

    def watch(self, folder):
        self._folder = folder
        return self

    def before_run(self, run_context):
        self._runs += 1
        if self._runs > 1:
            self.release()

    def after_run(self, run_context, run_values):
        step = int(run_context.session.run(tf1.train.get_global_step()))
        latest = tf.train.latest_checkpoint(self._folder)
        self.latest.append((step, int(latest.rpartition("-")[2])))

    def release(self):
        self._next_step.set()


def saving_beside(model_dir, model_fn=falling, **config):
    options = estimator.TrainingOptions(async_checkpoints=True)
    config = estimator.RunConfig(model_dir, **config)
    return estimator.Estimator(model_fn, config=config, params={}, options=options)


def saved(model):
    """Step -> the weight in the checkpoint of that step."""
    found = tf.train.get_checkpoint_state(model.model_dir).all_model_checkpoint_paths
    return {
        int(path.rpartition("-")[2]): float(tf.train.load_variable(path, "weight"))
        for path in found
    }


def events(folder):
    (path,) = Path(folder).glob("events.*")
    return tf1.train.summary_iterator(str(path))


def test_training_goes_on_while_a_checkpoint_is_written(model_dir, monkeypatch):
    model = saving_beside(model_dir, save_checkpoints_steps=1, keep_checkpoint_max=9)
    disk = SlowDisk(monkeypatch).watch(model_dir)
    model.train(numbers(4), hooks=[disk])
    # The first one waits, as nothing trains yet; those after it are of the steps that they name.
    assert saved(model) == {0: 0, 1: -1, 2: -3, 3: -6, 4: -10}


def test_the_latest_checkpoint_is_never_one_that_is_being_written(model_dir, monkeypatch):
    model = saving_beside(model_dir, save_checkpoints_steps=1)
    disk = SlowDisk(monkeypatch).watch(model_dir)
    model.train(numbers(4), hooks=[disk])
    assert disk.latest == [(1, 0), (2, 1), (3, 2), (4, 3)]
    assert model.latest_checkpoint() == f"{model_dir}/model.ckpt-4"


def test_values_are_those_of_the_step_although_sparse_updates_go_on(model_dir, monkeypatch):
    """These change a variable in place."""

    def model_fn(features, labels, mode):
        table = tf1.get_variable("weight", [], initializer=tf1.zeros_initializer())
        rows = tf1.get_variable("rows", [3, 2], initializer=tf1.zeros_initializer())
        picked = tf.gather(rows, [1])
        loss = tf.reduce_sum(picked) + 0 * table
        optimizer = tf1.train.AdagradOptimizer(1.0)
        step = tf1.train.get_global_step()
        train_op = tf.group(optimizer.minimize(loss, step), table.assign_sub(features[0]))
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    kinds = {}
    for beside in (True, False):
        folder = f"{model_dir}/{beside}"
        config = estimator.RunConfig(folder, save_checkpoints_steps=1, keep_checkpoint_max=9)
        options = estimator.TrainingOptions(async_checkpoints=beside)
        model = estimator.Estimator(model_fn, config=config, options=options)
        with monkeypatch.context() as patches:
            hooks = [SlowDisk(patches).watch(folder)] if beside else []
            model.train(lambda: numbers(4)().map(lambda x: (x, x)), hooks=hooks)
        paths = tf.train.get_checkpoint_state(folder).all_model_checkpoint_paths
        kinds[beside] = [tf.train.load_variable(path, "rows") for path in paths]
    np.testing.assert_array_equal(kinds[True], kinds[False])
    assert len(np.unique(kinds[True])) > 4


def test_a_training_that_fails_completes_what_it_was_writing(model_dir, monkeypatch):
    class Fails(tf1.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            if run_context.session.run(tf1.train.get_global_step()) == 2:
                disk.release()
                raise RuntimeError("of the program")

    model = saving_beside(model_dir, save_checkpoints_steps=1)
    disk = SlowDisk(monkeypatch).watch(model_dir)
    with pytest.raises(RuntimeError, match="of the program"):
        model.train(numbers(4), hooks=[disk, Fails()])
    assert saved(model)[1] == -1
    assert not [t for t in threading.enumerate() if t.name == "checkpoint"]


def test_on_cores(emulated_cores, model_dir, monkeypatch):
    emulated_cores(2)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    options = estimator.TrainingOptions(async_checkpoints=True)
    model = cores_estimator(model_dir, iterations=2, options=options)
    model.train(ones, steps=4)
    assert tf.train.load_variable(model.latest_checkpoint(), "weight") == -4


class Order(tf1.train.CheckpointSaverListener):
    def __init__(self):
        self.events = []

    def before_save(self, session, step):
        self.events.append(("before", int(step)))

    def after_save(self, session, step):
        session_step = int(session.run(tf1.train.get_global_step()))
        self.events.append(("after", int(step), session_step))


def test_listeners_of_the_program_find_the_checkpoint_of_their_step(model_dir):
    order = Order()
    model = saving_beside(model_dir, save_checkpoints_steps=1)
    model.train(numbers(2), saving_listeners=[order])
    assert order.events == [
        event for step in (0, 1, 2) for event in (("before", step), ("after", step, step))
    ]


def test_unless_asked_for_no_step_begins_before_the_checkpoint_is_complete(model_dir):
    """So a kill loses one interval of steps at most."""
    behind = []

    class Watching(tf1.train.SessionRunHook):
        def before_run(self, run_context):
            step = int(run_context.session.run(tf1.train.get_global_step()))
            behind.append(step - int(tf.train.latest_checkpoint(model_dir).rpartition("-")[2]))

    model = host_estimator(model_dir, save_checkpoints_steps=2)
    model.train(numbers(5), hooks=[Watching()])
    assert behind == [0, 1, 0, 1, 0, 1]  # the last one is of the step without a batch


# A file-size limit stands in for a full disk, from after step 2 until after step 5.
FULL_DISK = """
import resource, sys
import tensorflow as tf
from estimator2strategy import estimator
from tests.engine.runtime.programs import falling, numbers

tf.compat.v1.logging.set_verbosity("ERROR")

def model_fn(features, labels, mode, params):
    tf.compat.v1.get_variable("large", [100_000])
    return falling(features, labels, mode, params)

class Disk(tf.compat.v1.train.SessionRunHook):
    def after_run(self, run_context, run_values):
        step = int(run_context.session.run(tf.compat.v1.train.get_global_step()))
        if step in LIMITS:
            [t.join() for t in __import__("threading").enumerate() if t.name == "checkpoint"]
            resource.setrlimit(resource.RLIMIT_FSIZE, (LIMITS[step], resource.RLIM_INFINITY))

LIMITS = {2: 300_000, int(sys.argv[2]): resource.RLIM_INFINITY}
config = estimator.RunConfig(sys.argv[1], save_checkpoints_steps=1, keep_checkpoint_max=9)
options = estimator.TrainingOptions(async_checkpoints=True, checkpoint_shards=int(sys.argv[3]))
model = estimator.Estimator(model_fn, config=config, params={}, options=options)
model.train(numbers(8), hooks=[Disk()])
"""


def run_on_full_disk(folder, free_again, shards=1):
    return subprocess.run(
        [fresh.python(), "-c", FULL_DISK, str(folder), str(free_again), str(shards)],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("shards", [1, 2])  # of which one fits
def test_training_goes_on_while_the_disk_is_full(tmp_path, shards):
    result = run_on_full_disk(tmp_path, free_again=5, shards=shards)
    assert result.returncode == 0, result.stderr
    for step in (3, 4, 5):
        assert f"The checkpoint {tmp_path}/model.ckpt-{step} COULD NOT BE WRITTEN" in result.stderr
        assert not list(tmp_path.glob(f"model.ckpt-{step}*"))
    assert [*saved(host_estimator(str(tmp_path)))] == [0, 1, 2, 6, 7, 8]


def test_that_the_last_checkpoint_could_not_be_written_is_an_error(tmp_path):
    result = run_on_full_disk(tmp_path, free_again=99)
    assert result.returncode != 0
    assert "ResourceExhaustedError: A checkpoint could not be written" in result.stderr
    assert host_estimator(str(tmp_path)).latest_checkpoint() == f"{tmp_path}/model.ckpt-2"


def test_the_graph_is_there_as_text_once_training_is_over(model_dir):
    def model_fn(features, labels, mode, params):
        data = np.random.default_rng(0).integers(0, 255, 100_000).astype(np.uint8)
        features += 0 * tf.cast(tf.constant(data)[0], tf.float32)
        return falling(features, labels, mode, params)

    model = host_estimator(model_dir, model_fn)
    model.train(numbers(1))
    text = Path(model_dir, "graph.pbtxt").read_text()
    graph_def = text_format.Parse(text, tf1.GraphDef())
    *_, meta = (e.meta_graph_def for e in events(model_dir) if e.meta_graph_def)
    written = tf1.MetaGraphDef.FromString(meta)
    assert written.graph_def == graph_def
    assert written.collection_def["trainable_variables"].bytes_list.value
