"""Steps that are a call each give what a loop of them gives."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy.engine.replay.engines import How, Step, Stopped
from estimator2strategy.engine.replay.session import ReplaySession
from estimator2strategy.engine.worlds import legacy_world, recording

tf1 = tf.compat.v1


class Program:
    """Counts steps, and multiplies what it counts with the batch: 1, 2, ... `last`."""

    def __init__(self, last, how, nan_at=None):
        with legacy_world(), recording(None) as graph:
            data = tf.data.Dataset.range(1, last + 1)
            iterator = tf1.data.make_initializable_iterator(data)
            number = tf.cast(iterator.get_next(), tf.float64)
            self.count = tf1.get_variable("count", [], tf.int64, tf1.zeros_initializer())
            nan = tf.constant(np.nan, tf.float64)
            self.loss = tf.where(tf.equal(number, nan_at or 0), nan, number)
            with tf.control_dependencies([self.loss]):
                self.op = self.count.assign_add(1).op
            self.session = ReplaySession(graph)
            self.session.run([iterator.initializer, self.count.initializer])
        counter = self.count.handle.op.name
        self.step = Step(self.op.name, how, self.loss.name, counter=counter, keeps_loss=True)

    def run(self, steps):
        """(the loss of the last step, how many ran, why no more, how many there were in all)."""
        self.session.expect(self.step, steps)
        with legacy_world(), self.session.graph.as_default():
            loss = self.session.run([self.op, self.loss])[1]
        ran = self.session.ran
        return loss, ran.steps, ran.stopped, int(self.session.value(self.count))


@pytest.mark.parametrize("steps", [1, 4])
def test_as_many_run_as_were_asked_for(steps):
    one_by_one, loop = Program(9, How.ONE_BY_ONE), Program(9, How.LOOP)
    assert one_by_one.run(steps) == loop.run(steps) == (steps, steps, Stopped.COMPLETED, steps)
    assert one_by_one.run(2) == loop.run(2)


def test_the_counter_is_read_when_the_last_one_has_run():
    program = Program(9, How.ONE_BY_ONE)
    program.run(4)
    assert program.session.ran.counter.numpy() == 4


def test_none_runs_after_a_nan():
    program = Program(9, How.ONE_BY_ONE, nan_at=3)
    loss, *rest = program.run(5)
    assert np.isnan(loss)
    assert rest == [3, Stopped.NAN_LOSS, 3]


@pytest.mark.parametrize("how", [How.ONE_BY_ONE, How.LOOP])
def test_a_nan_of_the_last_one_is_told_too(how):
    program = Program(9, how, nan_at=3)
    program.run(3)
    assert program.session.ran.nan_since == 3


@pytest.mark.parametrize("steps", [4, 9])
def test_the_input_ends_after_its_last_batch(steps):
    program = Program(3, How.ONE_BY_ONE)
    with pytest.raises(tf.errors.OutOfRangeError, match="End of sequence"):
        program.run(steps)
    assert program.session.value(program.count) == 3
    assert program.session.ran.stopped is Stopped.END_OF_INPUT
    with legacy_world():
        assert program.session.state.gauges.last_loss() is not None
