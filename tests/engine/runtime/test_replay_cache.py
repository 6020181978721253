"""A later call of an Estimator runs what an earlier one has traced, if it records the same."""

from __future__ import annotations

import gc
import re
import weakref

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.replay.replay import Replay
from tests.engine.runtime.programs import cores_estimator, falling, host_estimator, numbers, ones

tf1 = tf.compat.v1


@pytest.fixture
def traced(monkeypatch):
    """The tensors and ops of each function that was traced."""
    seen = []
    trace = Replay.trace

    def noted(self, tensors, ops, *rest, **named):
        seen.append((tuple(tensors), tuple(ops)))
        return trace(self, tensors, ops, *rest, **named)

    monkeypatch.setattr(Replay, "trace", noted)
    return seen


def round_of(model, batches=4):
    """The results of one round of training, evaluation and prediction."""
    model.train(numbers(batches), steps=batches)
    results = model.evaluate(numbers(batches))
    predictions = list(model.predict(numbers(batches)))
    return results, predictions, {n: model.get_variable_value(n) for n in names(model)}


def names(model):
    return model.get_variable_names()


def assert_rounds_equal(round_a, round_b):
    np.testing.assert_equal(round_a[0], round_b[0])
    np.testing.assert_equal(round_a[1], round_b[1])
    np.testing.assert_equal(round_a[2], round_b[2])


def test_rounds_equal_those_of_an_estimator_for_each_call(tmp_path, traced):
    kept = host_estimator(str(tmp_path / "kept"))
    rounds = [round_of(kept) for _ in range(3)]
    for expected in rounds:
        assert_rounds_equal(round_of(host_estimator(str(tmp_path / "fresh"))), expected)


def test_rounds_after_the_first_trace_nothing(model_dir, traced):
    """The second is the first that restores a checkpoint: its Saver needs no program."""
    model = host_estimator(model_dir)
    round_of(model)
    for _ in range(2):
        traced.clear()
        round_of(model)
        assert traced == []


def test_later_trainings_on_cores_trace_nothing(emulated_cores, model_dir, traced):
    emulated_cores(2)
    model = cores_estimator(model_dir)
    model.train(ones, steps=2)
    model.train(ones, steps=2)
    traced.clear()
    model.train(ones, steps=2)
    assert traced == []
    assert model.get_variable_value("global_step") == 6


def test_what_model_fn_reads_elsewhere_is_noticed(model_dir):
    """It is called each time."""
    rate = {"value": 1.0}

    def model_fn(features, labels, mode, params):
        return falling(features * rate["value"], labels, mode, params)

    model = host_estimator(model_dir, model_fn)
    first = [model.evaluate(numbers(2))["loss"] for _ in range(2)]
    rate["value"] = 2.0
    assert model.evaluate(numbers(2))["loss"] != first[0] == first[1]


def test_another_input_is_noticed(model_dir):
    model = host_estimator(model_dir)
    model.train(numbers(2))
    assert model.evaluate(numbers(3)) == model.evaluate(numbers(3))
    assert model.evaluate(numbers(5)) == host_estimator(model_dir).evaluate(numbers(5))


def test_another_input_after_equal_ones_gives_equal_metrics(model_dir):
    """The calls of tf.metrics are not watched where a graph is expected to be known."""

    def model_fn(features, labels, mode, params):
        spec = falling(features, labels, mode, params)
        if mode != estimator.ModeKeys.EVAL:
            return spec
        auc = tf1.metrics.auc(features > 2, features / 8)
        return spec._replace(eval_metric_ops={"auc": auc, "mean": tf1.metrics.mean(features)})

    model = host_estimator(model_dir, model_fn)
    model.train(numbers(2))
    for count in (3, 3, 3, 5, 3):
        fresh = host_estimator(model_dir, model_fn)
        assert model.evaluate(numbers(count)) == fresh.evaluate(numbers(count))


def test_a_function_of_python_that_is_made_anew_is_noticed(model_dir):
    def generated(value):
        def input_fn():
            data = tf.data.Dataset.from_generator(lambda: iter([[value]] * 2), tf.float32, [1])
            return data.map(lambda x: (x, x))

        return input_fn

    model = host_estimator(model_dir)
    model.train(numbers(1))
    (one, _), (two, _) = (list(model.predict(generated(value))) for value in (1.0, 2.0))
    assert two["sum"] - one["sum"] == 1


def test_another_kind_of_variables_is_noticed(model_dir):
    """Equal nodes: only the order of reads and writes differs."""
    is_resource = {"value": False}

    def model_fn(features, mode):
        tf1.get_variable_scope().set_use_resource(is_resource["value"])
        total = tf1.get_variable("total", [], initializer=tf1.zeros_initializer())
        updates = [tf1.assign(total, total + 1.0) for _ in range(2)]
        count = tf1.assign_add(tf1.train.get_global_step(), 1)
        loss = tf.reduce_mean(features)
        return estimator.EstimatorSpec(mode, loss=loss, train_op=tf.group(count, *updates))

    model = estimator.Estimator(model_fn, model_dir)
    totals = []
    for kind in (False, False, True, False):
        is_resource["value"] = kind
        model.train(lambda: ones({"batch_size": 1}), steps=1)
        totals.append(model.get_variable_value("total"))
    np.testing.assert_array_equal(np.diff([0.0, *totals]), [2, 2, 1, 2])


def test_seeded_numbers_begin_anew_as_in_a_new_session(model_dir):
    def model_fn(features, labels, mode):
        noise = tf1.random_uniform([2], seed=1)
        in_branch = tf1.cond(
            tf.reduce_all(features > -1), lambda: tf1.random_uniform([2], seed=2), lambda: noise
        )
        return estimator.EstimatorSpec(mode, predictions={"a": noise, "b": in_branch})

    model = estimator.Estimator(model_fn, model_dir)
    first, second = (list(model.predict(numbers(1), yield_single_examples=False)) for _ in "12")
    np.testing.assert_equal(first, second)


def test_a_training_in_the_middle_of_a_prediction_has_state_of_its_own(model_dir):
    model = host_estimator(model_dir)
    model.train(numbers(2))
    list(model.predict(numbers(2)))
    predictions = model.predict(numbers(2))
    first = next(predictions)
    others = list(model.predict(numbers(2)))
    model.train(numbers(2))
    np.testing.assert_equal([first, *predictions], others)


def test_a_recorded_graph_is_freed_when_its_call_is_over(model_dir):
    model = host_estimator(model_dir, noting := NotingGraphs())
    calls = [
        lambda: model.train(numbers(30), steps=30),
        lambda: model.evaluate(numbers(2)),
        lambda: list(model.predict(numbers(2))),
    ]
    for call in [*calls, *calls, *calls]:
        call()
        gc.collect()
        assert [graph() for graph in noting.graphs] == [None]
        noting.graphs.clear()


def test_an_op_in_a_branch_that_fails_in_a_later_call_is_named_with_its_line(model_dir, tmp_path):
    """TensorFlow gives the branch another name in each graph."""
    path = tmp_path / "numbers.txt"

    def refused(number):
        with tf.control_dependencies([tf1.assert_less(number, 7.0, message="seven is too much")]):
            return tf.identity(number)

    def model_fn(features, labels, mode, params):
        number = tf.cond(features > 5, lambda: refused(features), lambda: features)
        return falling(number, labels, mode, params)

    def input_fn():
        return tf.data.TextLineDataset(str(path)).map(tf.strings.to_number)

    def failure(model):
        path.write_text("1\n9\n")
        with pytest.raises(tf.errors.InvalidArgumentError, match="seven is too much") as caught:
            model.evaluate(input_fn)
        return re.findall(r"test_replay_cache.py:[0-9]+", str(caught.value))

    model = host_estimator(model_dir, model_fn)
    path.write_text("1\n2\n")
    assert model.evaluate(input_fn)["loss"] == 1.5
    assert failure(model) == failure(host_estimator(model_dir, model_fn)) != []


class NotingGraphs:
    """model_fn `falling`, which notes the graphs that it is called in."""

    def __init__(self):
        self.graphs = []

    def __call__(self, features, labels, mode, params):
        self.graphs.append(weakref.ref(tf1.get_default_graph()))
        return falling(features, labels, mode, params)
