"""A block of steps takes the next batch while a step runs, and nobody can tell."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy.engine.plan.pipeline_cut import may_prefetch
from estimator2strategy.engine.replay.engines import Step, Stopped
from estimator2strategy.engine.replay.session import ReplaySession
from estimator2strategy.engine.worlds import legacy_world, modern_world, recording

tf1 = tf.compat.v1


ON_DEMAND = tf.data.Options()
ON_DEMAND.experimental_optimization.inject_prefetch = False  # else tf.data runs ahead by itself


class Program:
    """Takes numbers from `dataset()`, and writes them into a decimal number, digit by digit.

    Args:
        dataset: Makes the dataset, in the recorded graph; it is given the number of steps so far.
        before: What a step does with what it has taken before it writes it down.
    """

    def __init__(self, dataset, before=lambda number, go: number):
        with legacy_world(), recording(seed=None) as graph:
            self.count = tf1.get_variable("count", [], tf.int64, tf1.zeros_initializer())
            self.digits = tf1.get_variable("digits", [], tf.float64, tf1.zeros_initializer())
            self.go = tf1.get_variable("go", [], tf.bool, tf1.ones_initializer())
            iterator = tf1.data.make_initializable_iterator(
                dataset(self.count).with_options(ON_DEMAND)
            )
            number = before(tf.cast(iterator.get_next(), tf.float64), self.go)
            with tf.control_dependencies([number]):
                counted = self.count.assign_add(1)
            written = self.digits.assign(self.digits.read_value() * 10 + number)
            self.step, self.loss = tf.group(counted, written), tf.identity(number)
        self.session = ReplaySession(graph)
        with legacy_world(), graph.as_default():
            self.session.run(tf1.global_variables_initializer())
            self.session.run(iterator.initializer)

    def may_prefetch(self):
        recorded, names = self.session.recorded, [self.step.name]
        return may_prefetch(recorded, names, recorded.only_next_batch(names))

    def expect(self, steps):
        step = Step(self.step.name, loss=self.loss.name, keeps_loss=True)
        self.session.expect(step, steps)

    def run(self, steps):
        """(the loss of the last step, all that was taken)."""
        self.expect(steps)
        with legacy_world(), self.session.graph.as_default():
            loss = self.session.run([self.step, self.loss])[1]
        return loss, int(self.session.value(self.digits))


def generated(generator):
    """A dataset of what `generator()` yields."""
    return lambda _: tf.data.Dataset.from_generator(
        generator, output_signature=tf.TensorSpec([], tf.int64)
    )


def test_the_next_batch_comes_while_a_step_runs():
    second = threading.Event()

    def numbers():
        yield 1
        second.set()
        yield 2

    def wait(number, go):
        (waited,) = tf.while_loop(lambda _: ~go.read_value(), lambda i: i + 1, [0])
        with tf.control_dependencies([waited]):
            return tf.identity(number)

    program = Program(generated(numbers), wait)
    with modern_world():
        go = program.session.state.variable(program.go.handle.op.name)
        go.assign(False)
        block = threading.Thread(target=program.run, args=[2])
        block.start()
        came = second.wait(60)  # the first step does not end before
        go.assign(True)
        block.join()
    assert came
    assert program.session.value(program.digits) == 12


def test_a_block_takes_as_many_batches_as_it_has_steps():
    taken = []

    def numbers():
        for number in range(1, 10):
            taken.append(number)
            yield number

    program = Program(generated(numbers))
    assert program.may_prefetch()
    assert program.run(3) == (3, 123)
    assert taken == [1, 2, 3]
    assert program.run(1) == (4, 1234)
    assert program.run(2) == (6, 123456)
    assert taken == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("blocks", [[5], [3, 5], [1, 2, 5]])
def test_the_end_of_the_input_is_an_error_after_the_steps_before_it(blocks):
    program = Program(lambda _: tf.data.Dataset.range(1, 4))
    *before, last = blocks
    for steps in before:
        program.run(steps)
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        program.run(last)
    assert program.session.value(program.digits) == 123
    with modern_world():
        assert program.session.state.gauges.last_loss() == 3


def test_no_step_follows_a_nan():
    program = Program(
        lambda _: tf.data.Dataset.range(1, 9),
        lambda number, _: tf.where(tf.equal(number, 3.0), tf.constant(np.nan, tf.float64), number),
    )
    program.expect(5)
    with legacy_world(), program.session.graph.as_default():
        assert np.isnan(program.session.run([program.step, program.loss])[1])
    assert program.session.ran.steps == 3
    assert program.session.ran.stopped is Stopped.NAN_LOSS
    assert program.session.value(program.count) == 3


def test_a_batch_that_fails_fails_as_it_is_taken():
    def below_three(number):
        with tf.control_dependencies([tf1.assert_less(number, tf.constant(3, tf.int64))]):
            return tf.identity(number)

    program = Program(lambda _: tf.data.Dataset.range(1, 9).map(below_three))
    assert program.run(2) == (2, 12)
    with pytest.raises(tf.errors.InvalidArgumentError, match="assert"):
        program.run(2)
    assert program.session.value(program.count) == 2


def test_input_that_reads_what_a_step_writes_is_taken_between_steps():
    def counting(count):
        return tf.data.Dataset.range(9).map(lambda _: count.read_value() + 1)

    program = Program(counting)
    assert not program.may_prefetch()
    assert program.run(5) == (5, 12345)


def test_input_in_python_is_taken_between_steps_in_python():
    """The program sees to it that they know of one another, or that they draw random numbers."""
    steps = [0]

    def numbers():
        while True:
            yield steps[0] + 1

    def count(number):
        steps[0] += 1
        return number

    def counted(number, _):
        number = tf1.py_func(count, [number], tf.float64)
        number.set_shape([])
        return number

    program = Program(generated(numbers), counted)
    assert not program.may_prefetch()
    assert program.run(5) == (5, 12345)


def test_values_that_are_fed_are_those_of_every_step_of_a_block():
    program = Program(lambda _: tf.data.Dataset.range(1, 9))
    program.expect(3)
    feeds = {program.loss: 7.0}
    with legacy_world(), program.session.graph.as_default():
        assert program.session.run([program.step, program.loss], feeds)[1] == 7
    assert program.run(2) == (5, 12345)


def test_strings_of_any_number_are_those_of_the_last_step_of_a_block():
    words = []

    def spell(number, go):
        words.append(tf.fill([tf.cast(number, tf.int32)], tf.as_string(tf.cast(number, tf.int32))))
        return number

    program = Program(lambda _: tf.data.Dataset.range(1, 9), before=spell)
    assert words[0].shape.as_list() == [None]
    program.expect(3)
    with legacy_world(), program.session.graph.as_default():
        assert program.session.run([program.step, words[0]])[1].tolist() == [b"3"] * 3
