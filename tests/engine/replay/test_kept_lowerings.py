"""A step that one process has made a program of is found by the next, which trains the same."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("jax", minversion="0.10")

from estimator2strategy.engine import kept_folder
from estimator2strategy.engine.plan import draws_inside
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.replay.xla import kept_lowerings as kept
from estimator2strategy.engine.replay.xla.core import CoreProgram

tf1 = tf.compat.v1

# Trains with two random ops; prints the number of programs that were made, and the weights.
TRAINING = """
    import sys
    import numpy as np, tensorflow as tf
    from estimator2strategy import estimator
    from estimator2strategy.engine.replay.xla import kept_lowerings
    made, lower_step = [], kept_lowerings.lower_step
    kept_lowerings.lower_step = lambda *given: made.append(1) or lower_step(*given)
    tf1 = tf.compat.v1

    def model_fn(features, labels, mode):
        w = tf1.get_variable("w", [3, 1])
        noise = tf1.random_normal([2, 3], stddev=0.1)
        hidden = tf.nn.dropout(features + noise, 0.5)
        loss = tf.reduce_mean(tf.square(hidden @ w - labels))
        train_op = tf1.train.AdamOptimizer().minimize(loss, tf1.train.get_global_step())
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn():
        x = np.arange(18, dtype=np.float32).reshape(6, 3)
        return tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(2).repeat()

    options = estimator.TrainingOptions(runtime=estimator.Runtime.JAX)
    config = estimator.RunConfig(tf_random_seed=1)
    model = estimator.Estimator(model_fn, sys.argv[1], config, options=options)
    model.train(input_fn, steps=3)
    model.train(input_fn, steps=2)
    print(len(made), model.get_variable_value("w").tobytes().hex())
"""


def train(folder, name):
    env = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "E2S_CACHE": ""}
    command = [sys.executable, "-c", textwrap.dedent(TRAINING), str(folder / name)]
    said = subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout
    count, weights = said.split()
    return int(count), weights


def test_a_second_process_traces_no_step_and_trains_the_same(tmp_path):
    count, weights = train(tmp_path, "first")
    assert count > 0
    assert train(tmp_path, "second") == (0, weights)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("E2S_CACHE")
    return tmp_path / "estimator2strategy" / "jax"


@pytest.fixture
def made(monkeypatch):
    """The programs that were made, not found."""
    seen: list[CoreProgram] = []
    lower = kept.lower_step
    monkeypatch.setattr(kept, "lower_step", lambda p, *rest: seen.append(p) or lower(p, *rest))
    return seen


def step(rate: float = 0.5, seed: int | None = 1, in_branch: bool = False):
    """Makes, or finds, the program of a graph that is built anew."""
    with tf.Graph().as_default() as graph:
        x = tf1.placeholder(tf.float32, [4, 3], name="x")
        w = tf1.get_variable("w", [3, 1], use_resource=True)
        drawn = lambda: tf.nn.dropout(x, rate, seed=seed)  # noqa: E731
        kept_part = tf.cond(tf.reduce_sum(x) > 0, drawn, lambda: x) if in_branch else drawn()
        loss = tf.reduce_mean(tf.square(kept_part @ w), name="loss")
        update = tf1.train.GradientDescentOptimizer(0.1).minimize(loss, name="train")
    program = CoreProgram(RecordedGraph(graph), ("x:0",), (loss.name,), (update.name,))
    specs = [tf.TensorSpec([4, 3])]
    return kept.kept_step(program, Replay.of_graph(graph).state.random_streams(), specs, [])


@pytest.mark.usefixtures("folder")
def test_a_step_that_differs_is_another(made):
    first = step()
    second = step()
    assert len(made) == 1
    assert second.module == first.module
    assert len(second.streams) == len(first.streams) == 1
    np.testing.assert_array_equal(second.streams[0], first.streams[0])
    step(rate=0.25)
    step(seed=2)
    assert len(made) == 3


@pytest.mark.usefixtures("folder")
def test_a_step_without_a_seed_is_found_and_draws_other_numbers(made):
    first, second = (step(seed=None).streams[0].numpy() for _ in range(2))
    assert len(made) == 1
    assert first[0, 1] != second[0, 1]


@pytest.mark.usefixtures("folder")
def test_a_branch_that_draws_by_chance_is_found_and_draws_other_numbers(made):
    steps = (step(seed=None, in_branch=True) for _ in range(2))
    first, second = (found.streams[0].numpy() for found in steps)
    assert len(made) == 1
    assert first[0, 1] != second[0, 1]


@pytest.mark.usefixtures("folder")
def test_a_function_that_draws_by_chance_and_out_of_reach_is_not_kept(made, monkeypatch):
    monkeypatch.setattr(draws_inside, "_FORMS", {})
    step(seed=None, in_branch=True)
    step(seed=None, in_branch=True)
    assert len(made) == 2


def test_a_damaged_file_is_a_miss_with_a_line_in_the_log(folder, made, log):
    step()
    (path,) = folder.glob("*.step")
    path.write_bytes(path.read_bytes()[:-1])
    step()
    assert len(made) == 2
    assert "is damaged: it is made again" in log.text
    step()
    assert len(made) == 2


def test_a_folder_that_takes_no_file_is_no_hindrance(folder, made, monkeypatch):
    def full(*given, **more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kept_folder.tempfile, "mkstemp", full)
    step()
    assert not list(folder.glob("*.step"))
    assert len(made) == 1
