"""Few steps run one by one; a loop of steps is traced where calls, taken together, earn it back."""

from __future__ import annotations

import glob
import math

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy.engine.replay import runs
from estimator2strategy.engine.replay.engines import How, Ran
from estimator2strategy.engine.replay.runs import AloneCosts
from estimator2strategy.engine.runtime import payback
from estimator2strategy.estimator import Estimator, EstimatorSpec, RunConfig
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


@pytest.fixture
def small_steps(monkeypatch):
    """A step gains a four hundredth of what a loop takes to build."""
    monkeypatch.setattr(payback, "gained", lambda costs, prices: 2 * costs.building / 400.5)


@pytest.fixture
def slow_steps(monkeypatch):
    """A step gains a fiftieth of what a loop takes to build."""
    monkeypatch.setattr(payback, "gained", lambda costs, prices: 2 * costs.building / 50)


@pytest.mark.parametrize(
    ("steps", "batches", "way"),
    [
        (400, 1000, How.ONE_BY_ONE),
        (401, 1000, How.LOOP),
        (None, 400, How.ONE_BY_ONE),
        (None, 401, How.LOOP),
    ],
)
def test_a_training_that_is_known_to_be_short_has_no_loop(
    model_dir, built, small_steps, steps, batches, way
):
    model = host_estimator(model_dir)
    model.train(numbers(batches), steps=steps)
    assert built == [way]
    assert model.get_variable_value("global_step") == min(steps or batches, batches)


@pytest.mark.parametrize(("steps", "way"), [(400, How.ONE_BY_ONE), (401, How.PIPELINED)])
def test_an_evaluation_that_is_known_to_be_short_has_no_loop(
    model_dir, built, small_steps, steps, way
):
    assert host_estimator(model_dir).evaluate(numbers(1000), steps=steps)["loss"] == (steps + 1) / 2
    assert built == [way]


def test_a_hook_that_sees_every_step_leaves_nothing_to_a_loop(model_dir, built):
    hook = Steps()
    host_estimator(model_dir).train(numbers(120), hooks=[hook])
    assert hook.seen == list(range(1, 121))
    assert built == [How.ONE_BY_ONE]


def test_a_second_training_of_a_hundred_steps_builds_the_loop(model_dir, built, small_steps):
    model = host_estimator(model_dir)
    model.train(numbers(1000), steps=100)
    assert built == [How.ONE_BY_ONE]
    model.train(numbers(1000), steps=100)
    assert built == [How.ONE_BY_ONE, How.LOOP]
    model.train(numbers(1000), steps=100)
    assert built == [How.ONE_BY_ONE, How.LOOP]
    assert model.get_variable_value("global_step") == 300


def test_shorter_trainings_that_come_again_and_again_share_a_loop(model_dir, built, small_steps):
    model = host_estimator(model_dir)
    model.train(numbers(1000), steps=30)
    model.train(numbers(1000), steps=30)
    assert built == [How.ONE_BY_ONE]
    model.train(numbers(1000), steps=30)
    assert built == [How.ONE_BY_ONE, How.LOOP]


def test_evaluations_share_a_loop_when_their_batches_would_have_paid_for_it(
    model_dir, built, monkeypatch
):
    monkeypatch.setattr(payback, "gained", lambda costs, prices: 2.8 * costs.building / 400.5)
    model = host_estimator(model_dir)
    model.evaluate(numbers(1000), steps=180)
    model.evaluate(numbers(1000), steps=180)
    assert built == [How.ONE_BY_ONE]
    model.evaluate(numbers(1000), steps=180)
    assert built == [How.ONE_BY_ONE, How.PIPELINED]


@pytest.mark.parametrize("call", ["train", "evaluate"])
def test_slow_steps_get_a_loop_in_the_middle_of_a_call(model_dir, built, slow_steps, call):
    model = host_estimator(model_dir)
    getattr(model, call)(numbers(1000), steps=200)
    assert built == [How.ONE_BY_ONE, How.LOOP if call == "train" else How.PIPELINED]


def dropping(features, labels, mode, params):
    """A model whose losses depend on all random draws and updates before."""
    kernel = tf1.get_variable("kernel", initializer=np.linspace(-1, 1, 12).astype(np.float32))
    with tf1.variable_scope("seeded"):
        kept = tf.nn.dropout(kernel * features[0], rate=0.3, seed=5)
    loss = tf.reduce_mean(tf.square(kept - tf.range(12.0) / 7))
    optimizer = tf1.train.AdamOptimizer(0.01)
    train_op = optimizer.minimize(loss, tf1.train.get_global_step())
    metrics = {"kept": tf1.metrics.mean(kept)}
    return EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def losses_and_results(model_dir):
    """All losses of a training of 90 steps, its weights, and the results of 90 batches."""
    config = RunConfig(model_dir, tf_random_seed=3, save_summary_steps=1)
    model = Estimator(dropping, config=config)
    model.train(numbers(90))
    found = [
        (event.step, value.tag, value.simple_value)
        for path in glob.glob(f"{model_dir}/events*")
        for event in tf1.train.summary_iterator(path)
        for value in event.summary.value
        if value.tag == "loss"
    ]
    return found, model.get_variable_value("kernel").tolist(), model.evaluate(numbers(90))


def test_a_loop_in_the_middle_of_a_call_changes_no_bit(tmp_path, built, monkeypatch):
    found = []
    for name, few in {"alone": 1000, "loop": 20, "both": None}.items():
        monkeypatch.setattr(payback, "FEW", few or 400)
        pays_at_once = few is None
        monkeypatch.setattr(
            payback, "gained", lambda *of, at_once=pays_at_once: 1e9 if at_once else 0.0
        )
        found.append(losses_and_results(str(tmp_path / name)))
    assert found[0] == found[1] == found[2]
    assert len(found[0][0]) == 90
    both = [How.ONE_BY_ONE, How.LOOP, How.ONE_BY_ONE, How.PIPELINED]
    assert built == [How.ONE_BY_ONE, How.LOOP, How.PIPELINED, *both]


def test_the_loss_of_a_step_before_the_loop_is_the_last_one_where_the_input_ends(
    model_dir, built, slow_steps, log
):
    """Of an input whose end nobody knows: the loop finds none of the batches that it looks for."""
    model = host_estimator(model_dir)
    model.train(lambda: numbers(14)().filter(lambda x: tf.reduce_all(x > 0)), steps=200)
    assert "Loss for final step: 14.0." in log()


@pytest.mark.parametrize(
    ("costs", "left", "expected"),
    [
        (AloneCosts(), 400, False),
        (AloneCosts(), 401, True),
        (AloneCosts(), math.inf, True),
        # Building 50 ms, a step 0.5 ms: 0.25 ms are gained, and 100 ms are paid.
        (AloneCosts(0.05, 0.0005, 10), 400, False),
        (AloneCosts(0.05, 0.0005, 10), 401, True),
        # As many more may come as there were, and ten times as many as there were in other calls.
        (AloneCosts(0.05, 0.0005, 401), 30, True),
        (AloneCosts(0.05, 0.0005, 40, earlier=40), 100, False),
        (AloneCosts(0.05, 0.0005, 41, earlier=41), 100, True),
        # A step of 20 ms: a call of 0.25 ms and 0.4 ms beside the next step are gained.
        (AloneCosts(0.05, 0.02, 10), 153, False),
        (AloneCosts(0.05, 0.02, 10), 154, True),
        # Building 10 s, a step of 0.1 s.
        (AloneCosts(10.0, 0.1, 10), 400, False),
        (AloneCosts(0.05, 0.02, 10), 20, False),
    ],
)
def test_a_loop_pays_if_its_steps_gain_more_than_its_building_takes(costs, left, expected):
    assert payback.pays(left, costs, payback.TRAINING) is expected


def test_what_disturbs_a_step_or_its_building_does_not_count():
    costs = AloneCosts()
    costs.note(Ran(1, [], built=True, seconds=0.5), worked=0.05)
    for seconds in (0.02, 0.0005, 0.004):
        costs.note(Ran(1, [], seconds=seconds), worked=0.0005)
    assert costs == AloneCosts(building=0.05, step=0.0005, steps=3)
    assert not payback.pays(400, costs, payback.TRAINING)


def test_the_shortest_calls_never_need_one(model_dir, built):
    model = host_estimator(model_dir)
    for _ in range(7):
        model.train(numbers(1000), steps=20)
    assert built == [How.ONE_BY_ONE]


def test_a_short_call_runs_the_loop_that_is_there(model_dir, built):
    model = host_estimator(model_dir)
    model.train(numbers(1000), steps=500)
    model.train(numbers(1000), steps=5)
    assert built == [How.LOOP]
    assert model.get_variable_value("global_step") == 505
