"""Compilations of JAX are kept for the next process, and its settings stay as they were."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import textwrap

import pytest

jax = pytest.importorskip("jax", minversion="0.10")

from estimator2strategy.engine.replay.xla import kept_compilations as kept  # noqa: E402

# Trains a bit, and prints how many programs JAX found, and how many it compiled.
TRAINING = """
    import collections, sys
    import jax, numpy as np, tensorflow as tf
    from estimator2strategy import estimator
    counts = collections.Counter()
    jax.monitoring.register_event_listener(lambda name, **_: counts.update([name.split("/")[-1]]))
    tf1 = tf.compat.v1

    def model_fn(features, labels, mode):
        w = tf1.get_variable("w", [3, 1])
        loss = tf.reduce_mean(tf.square(tf.nn.dropout(features, 0.5) @ w - labels))
        train_op = tf1.train.AdamOptimizer().minimize(loss, tf1.train.get_global_step())
        return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    def input_fn():
        x = np.ones([6, 3], np.float32)
        return tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(2).repeat()

    options = estimator.TrainingOptions(runtime=estimator.Runtime.JAX)
    config = estimator.RunConfig(tf_random_seed=int(sys.argv[2]) or None)
    estimator.Estimator(model_fn, sys.argv[1], config, options=options).train(input_fn, steps=3)
    print(counts["cache_hits"], counts["cache_misses"])
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("E2S_CACHE")
    return tmp_path / "estimator2strategy" / "jax"


@pytest.fixture
def events():
    seen: list[str] = []
    listener = lambda name, **_: seen.append(name.split("/")[-1])  # noqa: E731
    jax.monitoring.register_event_listener(listener)
    yield seen
    jax.monitoring.unregister_event_listener(listener)


def compiled(events, number=2.0):
    """(hits, misses) of a function's first call."""
    events.clear()
    jax.clear_caches()
    function = kept.kept(jax.jit(lambda x: x * number))
    assert function(1.0) == number
    assert function(2.0) == 2 * number
    return events.count("cache_hits"), events.count("cache_misses")


@pytest.mark.parametrize("seed", [1, 0])
def test_a_second_process_compiles_nothing(tmp_path, seed):
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "E2S_CACHE": ""}

    def train(name):
        command = [sys.executable, "-c", textwrap.dedent(TRAINING), str(tmp_path / name), str(seed)]
        said = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
        return tuple(map(int, said.stdout.split()))

    _, misses = train("first")
    assert misses > 0
    hits, misses = train("second")
    assert hits > 0
    assert misses == 0


def test_the_folder_is_the_users_alone_and_settings_stay(folder, events):
    names = [name for name in dir(jax.config) if "cache" in name]
    before = {name: getattr(jax.config, name) for name in names}
    assert compiled(events) == (0, 1)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {name: getattr(jax.config, name) for name in names} == before
    assert compiled(events) == (1, 0)


def test_a_damaged_entry_is_a_miss_and_does_not_stay(folder, events):
    compiled(events)
    (entry,) = folder.glob("*-cache")
    entry.write_bytes(entry.read_bytes()[:20])
    assert compiled(events)[0] == 0
    assert compiled(events) == (0, 1)
    assert compiled(events) == (1, 0)


def test_nothing_is_kept_where_others_may_write(folder, events, log):
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    compiled(events)
    assert not list(folder.iterdir())
    assert "others may write" in log.text


@pytest.mark.usefixtures("folder")
def test_nothing_is_kept_if_the_user_says_so(folder, events, monkeypatch):
    monkeypatch.setenv("E2S_CACHE", "off")
    compiled(events)
    assert not folder.exists()


def test_what_was_not_used_for_longest_goes_first(folder, events, monkeypatch):
    compiled(events, 2.0)
    (first,) = folder.glob("*-cache")
    os.utime(first, (1, 1))
    monkeypatch.setattr(kept, "_LIMIT", first.stat().st_size + 100)
    compiled(events, 3.0)
    (second,) = folder.glob("*-cache")
    assert second != first
