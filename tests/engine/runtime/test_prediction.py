"""Prediction: a lazy generator of examples or batches, without padding."""

from __future__ import annotations

import itertools
import logging
import queue

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.replay import batched_predict
from estimator2strategy.engine.replay.runs import AloneCosts
from estimator2strategy.engine.runtime import prediction
from tests.engine.runtime.programs import (
    cores_estimator,
    host_estimator,
    numbers,
    ones,
)

tf1 = tf.compat.v1
pipelines = estimator.tpu.InputPipelineConfig


def predicting(**predictions):
    """model_fn whose predictions are functions of the features."""

    def model_fn(features, mode):
        made = {name: function(features) for name, function in predictions.items()}
        return estimator.EstimatorSpec(mode, predictions=made)

    return model_fn


def up_to(count):
    """input_fn of TPUEstimator: 1.0, 2.0, ... `count`, in batches as it is told."""
    return lambda params: numbers(count, params["batch_size"])()


class Runs(tf1.train.SessionRunHook):
    def __init__(self):
        self.count = 0

    def after_run(self, run_context, run_values):
        self.count += 1


def test_nothing_is_called_before_the_first_example_is_asked_for(model_dir):
    called = []
    predictions = host_estimator(model_dir).predict(lambda: called.append(1) or numbers(2)())
    assert not called
    assert next(predictions)["sum"] == 1.0
    assert called == [1]


def test_batches_are_computed_as_they_are_consumed(model_dir):
    hook = Runs()
    predictions = host_estimator(model_dir).predict(numbers(6, batch_size=2), hooks=[hook])
    next(predictions)
    next(predictions)
    assert hook.count == 1
    next(predictions)
    assert hook.count == 2
    predictions.close()


def test_consumer_does_not_run_in_the_graph(model_dir):
    for _ in host_estimator(model_dir).predict(numbers(2)):
        assert tf.executing_eagerly()
        assert isinstance(tf.TensorShape([1])[0], int)


def test_whole_batches_on_request(model_dir):
    model = host_estimator(model_dir)
    batches = model.predict(numbers(3, batch_size=2), yield_single_examples=False)
    assert [batch["sum"].tolist() for batch in batches] == [[1.0, 2.0], [3.0]]


def test_keys_choose_among_the_predictions(model_dir):
    model = estimator.Estimator(predicting(a=tf.identity, b=tf.negative), model_dir)
    assert list(model.predict(numbers(1), predict_keys=["b"])) == [{"b": -1.0}]


def test_keys_that_match_nothing_are_an_error(model_dir):
    model = estimator.Estimator(predicting(a=tf.identity), model_dir)
    with pytest.raises(ValueError, match="Expected to run at least one output from"):
        next(model.predict(numbers(1), predict_keys=["z"]))


def test_different_lengths_are_an_error_only_for_single_examples(model_dir):
    model = estimator.Estimator(predicting(a=tf.identity, b=lambda x: x[:1]), model_dir)
    with pytest.raises(ValueError, match="Batch length of predictions should be same"):
        next(model.predict(numbers(2, batch_size=2)))
    batch = next(model.predict(numbers(2, batch_size=2), yield_single_examples=False))
    assert len(batch["a"]) == 2
    assert len(batch["b"]) == 1


def test_tensors_without_end_are_predicted_over_and_over_with_a_warning(model_dir, caplog):
    logger = logging.getLogger("tensorflow")
    before, logger.propagate = logger.propagate, True
    predictions = host_estimator(model_dir).predict(lambda: tf.constant([1.0, 2.0]))
    values = [float(next(predictions)["sum"]) for _ in range(5)]
    predictions.close()
    logger.propagate = before
    assert values == [1.0, 2.0, 1.0, 2.0, 1.0]
    assert "predict yields forever" in caplog.text


@pytest.mark.parametrize(
    ("pipeline", "examples"),
    [
        (pipelines.PER_HOST_V1, 9),
        (pipelines.PER_HOST_V2, 9),
        (pipelines.PER_HOST_V2, 6),  # no multiple of the global batch, but of a core's
        (pipelines.BROADCAST, 9),
    ],
)
def test_each_example_is_predicted_once_and_no_padding(
    emulated_cores, model_dir, pipeline, examples
):
    emulated_cores(2)
    model = cores_estimator(model_dir, pipeline=pipeline)
    model.train(ones, steps=1)
    sums = [float(p["sum"]) for p in model.predict(up_to(examples))]
    assert sums == (np.arange(1, examples + 1) - 1.0).tolist()


@pytest.fixture
def calls(monkeypatch):
    """How many batches each call worked on that may work on several; they are never slow."""
    seen: list[int] = []

    class Noted(prediction.Growth):
        def ran(self, batches, seconds, size):
            seen.append(batches)
            super().ran(batches, 0.0, size)

    class AtOnce(prediction.Payback):
        """Two batches are worked on alone; then the second program is due."""

        def is_due(self):
            return not self._never and (self._built or self._costs.steps + 1 >= 2)

    monkeypatch.setattr(batched_predict, "_TAKING", 60.0)
    monkeypatch.setattr(prediction, "Growth", Noted)
    monkeypatch.setattr(prediction, "Payback", AtOnce)
    return seen


def test_small_batches_are_worked_on_together(model_dir, calls):
    model = estimator.Estimator(predicting(a=tf.negative), model_dir)
    predictions = model.predict(numbers(40, batch_size=2), yield_single_examples=False)
    assert [batch["a"].tolist() for batch in predictions] == [
        [-i, -i - 1.0] for i in range(1, 40, 2)
    ]
    assert calls == [1, 1, 2, 4, 8, 2]


def due_after(batches, costs=None, **of):
    """The number of batches, of so many, after which a second program is due; None: it never is.

    The first batch takes 100 ms of processor time, each later one 1 ms: half of it is gained.
    """
    clock = itertools.chain([0.0, 0.5], *([i, i + 0.001] for i in range(1, 2000)))
    processor = itertools.chain([0.0, 0.1], itertools.repeat(1.0))
    payback = prediction.Payback(
        **{"never": False, "costs": costs or AloneCosts(), **of},
        clock=lambda: next(clock),
        processor=lambda: next(processor),
    )
    for done in range(batches):
        if payback.is_due():
            return done
        with payback.timing():
            pass
    return None


@pytest.mark.parametrize(
    ("of", "after"),
    [
        ({}, 562),  # 561 batches of 0.5 ms, and the one that has built: 2.8 times 100 ms
        ({"never": True}, None),
        ({"built": True}, 0),
        ({"most": 564}, None),
        ({"most": 565}, 562),
        ({"costs": AloneCosts(0.1, 0.001, 400, earlier=400)}, 161),
        ({"costs": AloneCosts(0.1, 0.001, 600, earlier=600)}, 0),
        ({"costs": AloneCosts(0.1, 0.001, 600, earlier=600), "most": 2}, None),
        ({"costs": AloneCosts(0.1, 0.4, 3)}, 0),  # long batches: a quarter of one is gained
    ],
)
def test_a_program_for_several_batches_is_due_when_those_that_ran_would_have_paid_for_it(of, after):
    assert due_after(700, **of) == after


def test_a_later_prediction_begins_with_the_program_for_several_batches(model_dir, calls):
    model = estimator.Estimator(predicting(a=tf.negative), model_dir)
    first = list(model.predict(numbers(9), yield_single_examples=False))
    calls.clear()
    second = list(model.predict(numbers(9), yield_single_examples=False))
    assert sum(calls) == 9  # none of them alone
    np.testing.assert_array_equal([x["a"] for x in second], [x["a"] for x in first])


def test_values_of_every_kind_come_batch_by_batch(model_dir, calls):
    """A smaller last batch, strings, and what has no batch dimension."""
    made = predicting(
        text=lambda x: tf.strings.as_string(x, precision=0), total=tf.reduce_sum, same=tf.identity
    )
    model = estimator.Estimator(made, model_dir)
    found = list(model.predict(numbers(9, batch_size=2), yield_single_examples=False))
    assert calls == [1, 1, 1]
    assert [batch["text"].tolist() for batch in found][-2:] == [[b"7", b"8"], [b"9"]]
    assert [batch["total"] for batch in found] == [3, 7, 11, 15, 9]
    assert isinstance(found[0]["total"], np.float32)
    assert found[-1]["same"].tolist() == [9.0]


def refusing(seven):
    with tf.control_dependencies([tf1.assert_less(seven, 7.0, message="seven is too much")]):
        return tf.identity(seven)


@pytest.mark.parametrize("where", ["model", "input"])
def test_what_comes_before_a_failure_is_yielded(model_dir, calls, where):
    def broken():
        return numbers(9)().map(refusing)

    model = estimator.Estimator(
        predicting(a=refusing if where == "model" else tf.identity), model_dir
    )
    predictions = model.predict(numbers(9) if where == "model" else broken)
    found = []
    with pytest.raises(tf.errors.InvalidArgumentError, match="seven is too much"):
        found.extend(predictions)
    assert found == [{"a": float(i)} for i in range(1, 7)]
    assert max(calls) > 1


def test_a_generator_may_wait_for_what_is_made_of_the_batch_before(model_dir, calls):
    """Programs serve so."""
    requests: queue.Queue[float] = queue.Queue()
    requests.put(0.0)

    def generator():
        for _ in range(9):
            yield [requests.get(timeout=300)]

    def input_fn():
        spec = tf.TensorSpec([None], tf.float32)
        return tf.data.Dataset.from_generator(generator, output_signature=spec)

    model = estimator.Estimator(predicting(a=tf.identity), model_dir)
    found = []
    for prediction_ in model.predict(input_fn):
        found.append(prediction_["a"])
        requests.put(found[-1] + 1)
    assert found == list(range(9))
    assert calls == []


def test_steps_with_effects_are_done_one_by_one(model_dir, calls):
    def count(features):
        counter = tf1.get_variable("counter", [], tf.int64, tf1.zeros_initializer())
        return counter.assign_add(1) + tf.zeros_like(features, tf.int64)

    model = estimator.Estimator(predicting(a=count), model_dir)
    assert [p["a"] for p in model.predict(numbers(9))] == list(range(1, 10))
    assert calls == []


def test_calls_stay_short_and_what_they_give_small():
    growth = prediction.Growth()
    growth.ran(1, 9.0, 1)  # builds the program
    sizes = [growth.batches()]
    for _ in range(9):
        growth.ran(sizes[-1], sizes[-1] * 0.001, sizes[-1] * 2**18)
        sizes.append(growth.batches())
    assert sizes == [1, 2, 4, 8, 16, 16, 16, 16, 16, 16]
    growth.ran(16, 3.2, 0)
    assert growth.batches() == 1
