"""Queues in an input_fn: the batches, losses and ends of TF 1.15."""

from __future__ import annotations

import json
import threading
import time

import numpy as np
import pytest
import queue_inputs
import tensorflow as tf2

import estimator2strategy.tf1 as tf
from estimator2strategy import estimator
from estimator2strategy.errors import QueueRunnerError

GOLDEN = json.loads(queue_inputs.GOLDEN.read_text())


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("queues"))
    queue_inputs.write_files(tf, folder)
    return folder


@pytest.mark.parametrize("name", queue_inputs.ORDERED)
def test_one_reader_gives_the_batches_and_losses_of_tf_1_15_in_their_order(name, data):
    found, golden = queue_inputs.made(tf, name, data), dict(GOLDEN[name])
    np.testing.assert_allclose(found.pop("losses"), golden.pop("losses"), rtol=1e-5, atol=1e-7)
    assert found.pop("evaluated") == pytest.approx(golden.pop("evaluated"), rel=1e-5)
    assert found == golden


@pytest.mark.parametrize("name", queue_inputs.UNORDERED)
def test_several_threads_give_each_example_as_often_as_in_tf_1_15(name, data):
    assert queue_inputs.made(tf, name, data) == GOLDEN[name]


def test_a_program_of_tensorflow_2_reads_from_queues_too(data):
    class Behind2:
        """The names that such a program has; `tf.train.batch` is `tf.compat.v1.train.batch`."""

        estimator = estimator

        def __getattr__(self, name):
            return getattr(tf2.compat.v1, name)

    found = queue_inputs.made(Behind2(), "lines", data)
    assert found["steps"] == GOLDEN["lines"]["steps"]
    np.testing.assert_allclose(found["losses"], GOLDEN["lines"]["losses"], rtol=1e-5)


def _model_fn(features, labels, mode):
    del labels
    weight = tf.get_variable("weight", initializer=0.5)
    if mode == "infer":
        return tf.estimator.EstimatorSpec(mode, predictions=features)
    loss = weight * tf.reduce_mean(tf.cast(features, tf.float32))
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def _model(folder, **config):
    return tf.estimator.Estimator(_model_fn, str(folder), tf.estimator.RunConfig(**config))


def _numbers(count, epochs=None):
    return tf.train.range_input_producer(count, epochs, shuffle=False).dequeue()


def _runner_threads():
    return [t.name for t in threading.enumerate() if t.name.startswith("QueueRunnerThread")]


def test_summaries_tell_how_full_the_queues_are(data, tmp_path):
    model = _model(tmp_path, save_summary_steps=1)
    model.train(lambda: queue_inputs.summarized(tf, data, None), steps=3)
    (events,) = tmp_path.glob("events*")
    summaries = [event.summary for event in tf.train.summary_iterator(str(events))]
    values = [(v.tag, v.simple_value) for summary in summaries for v in summary.value]
    full = [value for tag, value in values if tag == "mine/fraction_of_32_full"]
    assert len(full) == 3
    assert all(0 <= value <= 1 for value in full)
    assert [value for tag, value in values if tag == "first"] == [0, 4, 8]


def test_a_hook_sees_the_batch_of_its_step_under_its_name(tmp_path):
    seen = []

    class Hook(tf.train.SessionRunHook):
        def before_run(self, context):
            return tf.train.SessionRunArgs("mine:0")

        def after_run(self, context, values):
            seen.append(values.results.tolist())

    def input_fn():
        return tf.train.batch([_numbers(9)], 2, name="mine")

    _model(tmp_path).train(input_fn, hooks=[Hook()], steps=3)
    assert seen == [[0, 1], [2, 3], [4, 5]]


def test_threads_end_with_a_training_that_fails(tmp_path):
    class Hook(tf.train.SessionRunHook):
        def after_run(self, context, values):
            assert _runner_threads()
            raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        _model(tmp_path).train(lambda: tf.train.batch([_numbers(9)], 2), hooks=[Hook()])
    assert not _runner_threads()


def test_threads_end_with_predictions_that_nobody_finishes(tmp_path):
    model = _model(tmp_path)
    model.train(lambda: tf.train.batch([_numbers(9)], 2), steps=1)
    predictions = model.predict(lambda: tf.train.batch([_numbers(9)], 2))
    assert [next(predictions), next(predictions)] == [0, 1]
    assert _runner_threads()
    predictions.close()
    assert not _runner_threads()


def test_a_thread_that_waits_in_python_does_not_keep_the_training(tmp_path):
    arrived = threading.Event()

    def waits(number):
        if number == 4:
            arrived.set()
            time.sleep(1)
        return number

    def input_fn():
        number = tf.py_func(waits, [_numbers(9)], tf.int32)
        number.set_shape([])
        return tf.train.batch([number], 2)

    _model(tmp_path).train(input_fn, steps=2)
    assert arrived.wait(5)
    assert not _runner_threads()


def test_training_that_is_restarted_reads_a_queue_from_its_start(tmp_path):
    """As in TF 1.15: nothing of a queue is in a checkpoint, and no position is beside one."""
    seen = []

    class Hook(tf.train.SessionRunHook):
        def before_run(self, context):
            return tf.train.SessionRunArgs("batch:0")

        def after_run(self, context, values):
            seen.append(values.results.tolist())
            if len(seen) == 3:
                raise KeyboardInterrupt

    def input_fn():
        return tf.train.batch([_numbers(9)], 2)

    with pytest.raises(KeyboardInterrupt):
        _model(tmp_path, save_checkpoints_steps=1).train(input_fn, hooks=[Hook()])
    assert not list(tmp_path.glob("input_position*"))
    _model(tmp_path).train(input_fn, hooks=[Hook()], max_steps=5)
    assert seen[3] == [0, 1]


def test_an_error_of_a_reader_names_the_line_of_its_op(tmp_path):
    def input_fn():
        names = tf.train.string_input_producer([str(tmp_path / "none")])
        _, line = tf.TextLineReader().read(names)  # the reader
        return tf.train.batch([tf.string_to_number(line)], 2)

    with pytest.raises(tf.errors.NotFoundError, match=r"test_queues.py:\d+: .*# the reader"):
        _model(tmp_path / "model").train(input_fn, steps=1)


def test_an_error_of_an_element_names_the_line_of_its_op(tmp_path):
    def input_fn():
        texts = tf.train.input_producer(["1", "2", "three"], shuffle=False)
        number = tf.string_to_number(texts.dequeue())  # no number
        return tf.train.batch([number], 2)

    with pytest.raises(tf.errors.InvalidArgumentError, match=r"three[\s\S]*# no number"):
        _model(tmp_path / "model").train(input_fn)


def test_an_error_in_python_names_its_line(tmp_path):
    def failing(number):
        raise ValueError(f"it is {number}")  # raises

    def input_fn():
        number = tf.py_func(failing, [_numbers(9)], tf.int32)
        number.set_shape([])
        return tf.train.batch([number], 2)

    with pytest.raises(tf.errors.InvalidArgumentError, match=r"it is 0[\s\S]*At .*# raises"):
        _model(tmp_path / "model").train(input_fn)


@pytest.mark.parametrize("case", ["variable", "fed"])
def test_a_queue_of_what_its_session_has_not_is_refused(tmp_path, case):
    def input_fn():
        if case == "fed":
            number = tf.placeholder(tf.int32, [])  # outside
        else:
            number = tf.to_int32(tf.train.get_global_step())  # outside
        return tf.train.batch([number], 2)

    with pytest.raises(QueueRunnerError, match=r"A queue of input_fn.*test_queues.py.*# outside"):
        _model(tmp_path).train(input_fn, steps=1)


def test_a_variable_that_counts_in_a_queue_is_the_queues_own(tmp_path):
    def input_fn():
        count = tf.get_variable("count", initializer=0, trainable=False)
        return tf.train.batch([tf.assign_add(count, 1)], 2)

    model = _model(tmp_path)
    model.train(input_fn, steps=2)
    predictions = model.predict(input_fn)
    assert [next(predictions) for _ in range(3)] == [1, 2, 3]


def test_a_batch_may_be_taken_in_a_branch(tmp_path):
    def input_fn():
        queues = [tf.train.range_input_producer(n, 1, shuffle=False) for n in (4, 6)]
        chosen = tf.less(tf.constant(1), 2)
        batch = tf.cond(
            chosen, lambda: queues[0].dequeue_many(2), lambda: queues[1].dequeue_many(3)
        )
        batch.set_shape([2])
        return batch

    model = _model(tmp_path)
    model.train(input_fn)
    assert model.get_variable_value("global_step") == 2


def test_an_input_that_is_shorter_than_a_batch_trains_no_step(tmp_path):
    model = _model(tmp_path)
    model.train(lambda: tf.train.batch([_numbers(3, epochs=1)], 8))
    assert model.get_variable_value("global_step") == 0


def test_compiled_steps_take_from_queues(tmp_path):
    options = estimator.TrainingOptions(jit_compile=True)
    model = estimator.Estimator(_model_fn, str(tmp_path), options=options)
    model.train(lambda: tf.train.batch([tf.to_float(_numbers(9, epochs=1))], 2))
    assert model.get_variable_value("global_step") == 4


def test_train_and_evaluate_reads_both_from_queues(tmp_path):
    model = _model(tmp_path, save_checkpoints_steps=4)
    results, _ = tf.estimator.train_and_evaluate(
        model,
        tf.estimator.TrainSpec(lambda: tf.train.batch([_numbers(9)], 2), max_steps=8),
        tf.estimator.EvalSpec(lambda: tf.train.batch([_numbers(4, epochs=1)], 2), throttle_secs=0),
    )
    assert results["global_step"] == 8
    assert not _runner_threads()
