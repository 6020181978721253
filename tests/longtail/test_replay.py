"""The harness that compares public programs sees what it is there to see."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.longtail import replay, rows

ROOT = Path(__file__).parents[2]

PROGRAM = """\
import numpy as np
import tensorflow as tf

def data():
    pairs = np.eye(8, dtype="f"), np.ones([8, 1], "f")
    return tf.data.Dataset.from_tensor_slices(pairs).shuffle(8).batch(4)

def model_fn(features, labels, mode):
    hidden = tf.layers.dropout(tf.layers.dense(features, 3), training=mode == "train")
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, {"hidden": hidden})
    loss = tf.losses.mean_squared_error(labels, tf.layers.dense(hidden, 1))
    tf.summary.scalar("double", 2 * loss)
    step = tf.train.AdamOptimizer().minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, {"hidden": hidden}, loss, step)

estimator = tf.estimator.Estimator(model_fn, "model")
estimator.train(lambda: data().repeat(), steps=1000)
print(list(estimator.predict(data))[0])
estimator.evaluate(data)
with tf.Session() as session:
    while True:
        session.run(tf.random_normal([4]))
"""


def recorded(folder: Path, name: str) -> dict:
    (folder / "program.py").write_text(PROGRAM)
    out = folder / f"{name}.json"
    subprocess.run(
        [sys.executable, replay.PROBE, out, "e2s", "program.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PROBE_STEPS": "4", "PROBE_RUNS": "3"},
        check=True,
        timeout=300,
    )
    return json.loads(out.read_text())


@pytest.mark.slow
def test_a_program_is_recorded_without_chance_until_enough_was_seen(tmp_path):
    first, second = ((tmp_path / name) for name in ("first", "second"))
    first.mkdir()
    second.mkdir()
    record = recorded(first, "record")
    assert [call["call"] for call in record["calls"]] == ["train", "predict", "evaluate"]
    assert len(record["calls"][0]["losses"]) == 4
    assert "double" in record["tags"]
    assert record["variables"]["dense/kernel"]["shape"] == [8, 3]
    assert len(record["runs"]) == 3
    assert record["runs"][0] == record["runs"][2]
    verdict = replay.compare(record, recorded(second, "again"))
    assert all(apart == 0 for _, apart, _ in verdict.values())


def test_a_difference_is_found_with_its_place():
    def record(last):
        array = {"shape": [2], "sum": 1.0, "norm": 20.0}
        return {
            "calls": [{"call": "train", "losses": [0.5, last]}],
            "variables": {"a": array, "b": {**array, "norm": 20.0 + last}},
        }

    verdict = replay.compare(record(4.0), record(5.0))
    assert verdict["train"] == (4, 0.25, "/0/1")
    assert verdict["variables"] == (2, pytest.approx(1 / 24), "/b")


def test_what_only_one_side_has_is_infinitely_far():
    verdict = replay.compare({"tags": ["loss"]}, {"tags": ["loss", "more"]})
    assert verdict["tags"][1] == math.inf


def test_each_row_has_a_name_of_its_own():
    names = [row.name for row in rows.ROWS]
    assert len(set(names)) == len(names)
