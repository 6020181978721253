"""Few steps run one by one; a loop of steps is traced where calls, taken together, earn it back."""

from __future__ import annotations

import pytest
import tensorflow as tf

from estimator2strategy.engine.replay import runs
from estimator2strategy.engine.replay.engines import How
from tests.engine.runtime.programs import Steps, host_estimator, numbers

tf1 = tf.compat.v1


@pytest.fixture
def built(monkeypatch):
    """The ways to run steps for which programs were traced, in their order.

    Several in a row of one way count once: steps with summaries have a program of their own.
    """
    ways: list[How] = []
    make = runs.engine_for

    def engine_for(replay, step, request, others):
        if step and step.how not in ways[-1:]:
            ways.append(step.how)
        return make(replay, step, request, others)

    monkeypatch.setattr(runs, "engine_for", engine_for)
    return ways


@pytest.mark.parametrize(
    ("steps", "batches", "way"),
    [
        (100, 1000, How.ONE_BY_ONE),
        (101, 1000, How.LOOP),
        (None, 100, How.ONE_BY_ONE),
        (None, 101, How.LOOP),
    ],
)
def test_a_training_that_is_known_to_be_short_has_no_loop(model_dir, built, steps, batches, way):
    model = host_estimator(model_dir)
    model.train(numbers(batches), steps=steps)
    assert built == [way]
    assert model.get_variable_value("global_step") == min(steps or batches, batches)


@pytest.mark.parametrize(("steps", "way"), [(100, How.ONE_BY_ONE), (101, How.PIPELINED)])
def test_an_evaluation_that_is_known_to_be_short_has_no_loop(model_dir, built, steps, way):
    assert host_estimator(model_dir).evaluate(numbers(1000), steps=steps)["loss"] == (steps + 1) / 2
    assert built == [way]


def test_a_hook_that_sees_every_step_leaves_nothing_to_a_loop(model_dir, built):
    hook = Steps()
    host_estimator(model_dir).train(numbers(120), hooks=[hook])
    assert hook.seen == list(range(1, 121))
    assert built == [How.ONE_BY_ONE]


def test_short_calls_that_come_again_and_again_share_a_loop(model_dir, built):
    model = host_estimator(model_dir)
    for _ in range(4):
        model.train(numbers(1000), steps=60)
    assert built == [How.ONE_BY_ONE, How.LOOP]
    assert model.get_variable_value("global_step") == 240


def test_the_shortest_calls_never_need_one(model_dir, built):
    model = host_estimator(model_dir)
    for _ in range(7):
        model.train(numbers(1000), steps=20)
    assert built == [How.ONE_BY_ONE]


def test_a_short_call_runs_the_loop_that_is_there(model_dir, built):
    model = host_estimator(model_dir)
    model.train(numbers(1000), steps=200)
    model.train(numbers(1000), steps=5)
    assert built == [How.LOOP]
    assert model.get_variable_value("global_step") == 205
