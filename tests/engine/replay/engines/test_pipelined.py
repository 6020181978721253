"""Pipelined steps give what steps one after the other give, wherever the input ends."""

from __future__ import annotations

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.replay import engines
from estimator2strategy.engine.replay.engines import How, Step, loop, pipelined
from estimator2strategy.engine.replay.session import ReplaySession
from estimator2strategy.engine.worlds import legacy_world, recording
from tests.engine.runtime.programs import host_estimator, numbers

tf1 = tf.compat.v1


class Sum:
    """A program that adds up what it takes, and keeps the order in which it did."""

    def __init__(self, batches: list[list[float]], how: How):
        with legacy_world(), recording(None) as graph:
            dataset = tf.data.Dataset.from_generator(
                lambda: iter(batches), output_signature=tf.TensorSpec([None], tf.float32)
            )
            iterator = tf1.data.make_initializable_iterator(dataset)
            batch = iterator.get_next()
            self.taken = tf1.get_variable("taken", [], tf.int32, tf1.zeros_initializer())
            self.digits = tf1.get_variable("digits", [], tf.float64, tf1.zeros_initializer())
            total = tf.cast(tf.reduce_sum(batch), tf.float64)
            self.step = tf.group(
                self.taken.assign_add(1),
                # Not the same in another order: 1, 2, 3 give 123.
                self.digits.assign(self.digits.read_value() * 10 + total),
            )
            self.last = tf.identity(batch)
            self.session = ReplaySession(graph)
            self.session.run([iterator.initializer, tf1.global_variables_initializer()])
        self.how = how

    def run(self, steps: int):
        """(what the last step took, all that was taken, how many steps ran)."""
        self.session.expect(Step(self.step.name, self.how), steps)
        with legacy_world(), self.session.graph.as_default():
            _, last = self.session.run([self.step, self.last])
        return list(last), self.all_taken(), self.session.ran.steps

    def all_taken(self) -> int:
        assert self.session.value(self.taken) == len(str(int(self.session.value(self.digits))))
        return int(self.session.value(self.digits))


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 6])
def test_pipelined_steps_equal_steps_one_by_one(steps):
    batches = [[float(i)] for i in range(1, 9)]
    program = Sum(batches, how=How.PIPELINED)
    assert program.run(steps) == Sum(batches, how=How.LOOP).run(steps)
    # Nothing was taken ahead of what was asked for.
    assert program.run(2)[0] == batches[steps + 1]


@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_input_ends_after_its_last_batch_was_worked_on(count):
    program = Sum([[float(i)] for i in range(1, count + 1)], how=How.PIPELINED)
    with pytest.raises(tf.errors.OutOfRangeError):
        program.run(100)
    assert program.all_taken() == int("12345"[:count])


def test_a_smaller_last_batch_is_worked_on_as_it_is():
    program = Sum([[1.0, 1.0], [2.0, 2.0], [3.0]], how=How.PIPELINED)
    assert program.run(3) == ([3.0], 243, 3)


def test_two_batches_are_worked_on_at_the_same_time():
    """Each waits in a py_func until the other one is there, too."""
    import threading

    both = threading.Barrier(2)

    def meet(value):
        both.wait(timeout=200)
        return value

    with legacy_world(), recording(None) as graph:
        batch = tf1.data.make_one_shot_iterator(tf.data.Dataset.range(4)).get_next()
        met = tf1.py_func(meet, [batch], tf.int64, stateful=False)
        total = tf1.get_variable("total", [], tf.int64, tf1.zeros_initializer())
        step = total.assign_add(met).op
        session = ReplaySession(graph)
        session.run(total.initializer)
        session.expect(Step(step.name, How.PIPELINED), 4)
        session.run(step)
        assert session.value(total) == 6


def test_evaluation_is_the_same_pipelined(model_dir, monkeypatch):
    blocks = []

    def build(*args):
        blocks.append(pipelined.build(*args))
        return blocks[-1]

    model = host_estimator(model_dir)
    monkeypatch.setitem(engines._ENGINES, How.PIPELINED, (build,))
    halved = model.evaluate(numbers(445), steps=445)
    assert len(blocks) == 1
    assert blocks[0]
    monkeypatch.setitem(engines._ENGINES, How.PIPELINED, (loop.build,))
    assert model.evaluate(numbers(445), steps=445) == halved


def test_a_check_of_a_batch_ends_the_evaluation(model_dir):
    def model_fn(features, labels, mode):
        with tf1.control_dependencies([tf1.assert_less(features, 3.0, message="too much")]):
            loss = tf.reduce_mean(tf.abs(features - labels))
        return estimator.EstimatorSpec(mode, loss=loss)

    def input_fn():
        values = tf.range(5.0)
        return tf.data.Dataset.from_tensor_slices((values, values)).batch(1)

    model = estimator.Estimator(model_fn, model_dir)
    with pytest.raises(tf.errors.InvalidArgumentError, match="too much"):
        model.evaluate(input_fn)
    assert model.evaluate(input_fn, steps=3)["loss"] == 0
