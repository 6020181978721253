"""Devices of JAX work on several batches in a launch, and nobody can tell."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("jax", minversion="0.10")

from estimator2strategy import estimator
from estimator2strategy.engine.replay.engines import on_jax as engine
from estimator2strategy.engine.replay.xla import compiled_block
from estimator2strategy.engine.runtime import prediction

tf1 = tf.compat.v1


@pytest.fixture
def launches(monkeypatch, jax_devices):
    """The number of steps of each launch."""
    jax_devices(1)
    seen: list[int] = []
    launch = engine.OnJax._launch
    monkeypatch.setattr(
        engine.OnJax, "_launch", lambda self, t, p: seen.append(t.steps) or launch(self, t, p)
    )
    return seen


@pytest.fixture
def at_once(monkeypatch):
    """Two batches are predicted alone; then some at once."""
    monkeypatch.setattr(prediction, "has_paid", lambda costs, prices: costs.steps + 1 >= 2)


def batches(lengths):
    """input_fn: batches of 1.0, 2.0, ... of these lengths."""
    ends = np.cumsum(lengths)

    def input_fn():
        values = [np.arange(e - n, e, dtype=np.float32) + 1 for e, n in zip(ends, lengths)]
        ragged = tf.ragged.constant([v.tolist() for v in values])
        return tf.data.Dataset.from_tensor_slices(ragged)

    return input_fn


def model_fn(features, mode):
    total = tf1.get_variable("total", [], initializer=tf1.zeros_initializer())
    if mode == "infer":
        made = {"negative": -features, "same": features, "text": tf.strings.as_string(features)}
        return estimator.EstimatorSpec(mode, predictions=made)
    with tf.control_dependencies([total.assign_add(tf.reduce_sum(features))]):
        train_op = tf1.assign_add(tf1.train.get_global_step(), 1)
    return estimator.EstimatorSpec(mode, loss=tf.reduce_sum(features), train_op=train_op)


def test_a_block_is_a_launch_whose_batches_one_call_has_taken(tmp_path, launches):
    model = estimator.Estimator(model_fn, str(tmp_path))
    model.train(batches([2] * 150), steps=140)
    assert model.get_variable_value("total") == sum(range(1, 281))
    assert launches[0] == 1  # then it is known how many there is room for
    assert sum(launches) == 140
    assert max(launches) > 1


def test_short_calls_and_long_ones_have_one_program(tmp_path, launches, monkeypatch):
    compiled = []
    compile_ = engine.OnJax._compiled
    monkeypatch.setattr(
        engine.OnJax, "_compiled", lambda self, *given: compiled.append(1) or compile_(self, *given)
    )
    model = estimator.Estimator(model_fn, str(tmp_path))
    model.train(batches([2] * 150), steps=3)
    model.train(batches([2] * 150), steps=140)
    assert sum(launches) == 143
    assert len(compiled) == 1


def test_a_gpu_gets_a_program_that_says_how_many_steps_it_has(tmp_path, launches, monkeypatch):
    monkeypatch.setattr(compiled_block, "_ASKS_HOST", {"cpu"})
    blocks = []
    launch = compiled_block.CompiledBlock.__call__

    def called(self, variables, *given):
        blocks.append(self)
        return launch(self, variables, *given)

    monkeypatch.setattr(compiled_block.CompiledBlock, "__call__", called)
    model = estimator.Estimator(model_fn, str(tmp_path))
    model.train(batches([2] * 150), steps=140)
    assert model.get_variable_value("total") == sum(range(1, 281))
    assert model.get_variable_value("global_step") == 140
    assert {block.count for block in blocks} == {32}
    assert launches.count(32) > 1


def test_batches_of_other_shapes_come_in_their_order(tmp_path, launches):
    model = estimator.Estimator(model_fn, str(tmp_path))
    model.train(batches([2, 2, 2, 1, 1, 2, 2, 1]))
    assert model.get_variable_value("total") == sum(range(1, 14))
    assert model.get_variable_value("global_step") == 8
    assert sum(launches) == 8


def test_small_batches_are_predicted_together(tmp_path, launches, at_once):
    model = estimator.Estimator(model_fn, str(tmp_path))
    model.train(batches([2]))
    launches.clear()
    found = list(model.predict(batches([2] * 20 + [1]), yield_single_examples=False))
    assert [row["negative"].tolist() for row in found[:2]] == [[-1, -2], [-3, -4]]
    assert [row["same"][0] for row in found] == list(range(1, 42, 2))
    assert found[-1]["text"].tolist() == [b"41.000000"]
    assert sum(launches) == 21
    assert max(launches) > 1


def test_predictions_before_a_failure_of_the_input_are_yielded(tmp_path, launches, at_once):
    def broken():
        def refused(x):
            with tf.control_dependencies([tf.debugging.assert_less(x[0], 7.0, "too much")]):
                return tf.identity(x)

        return batches([1] * 9)().map(refused)

    model = estimator.Estimator(model_fn, str(tmp_path))
    model.train(batches([1]))
    launches.clear()
    found = []
    with pytest.raises(tf.errors.InvalidArgumentError, match="too much"):
        found.extend(row["negative"] for row in model.predict(broken))
    assert found == [-1, -2, -3, -4, -5, -6]
    assert sum(launches) == 6
