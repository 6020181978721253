"""What becomes of an input when the call that used it ends."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest
import tensorflow as tf

from tests.engine.runtime.programs import host_estimator, numbers


@pytest.fixture
def slow_end(monkeypatch):
    """Iterators that end when `slow_end.set()`; `slow_end.threads` are those that wait for it."""
    may_end = threading.Event()
    may_end.threads = []
    make = tf.raw_ops.MakeIterator

    def make_iterator(dataset, iterator, name=None):
        if tf.executing_eagerly():  # a program's own is part of a function
            may_end.threads.append(threading.current_thread())
            assert may_end.wait(60)
        return make(dataset=dataset, iterator=iterator, name=name)

    monkeypatch.setattr(tf.raw_ops, "MakeIterator", make_iterator)
    yield may_end
    may_end.set()
    for thread in set(may_end.threads) - {threading.main_thread()}:
        thread.join()


def test_calls_do_not_wait_until_an_input_has_ended(model_dir, slow_end):
    model = host_estimator(model_dir)
    model.train(numbers(3))
    model.evaluate(numbers(3))
    assert len(slow_end.threads) == 2
    assert all(thread.is_alive() and not thread.daemon for thread in slow_end.threads)


def test_an_input_that_calls_python_has_ended_when_the_call_has(model_dir, slow_end):
    def input_fn():
        return tf.data.Dataset.from_generator(lambda: [[1.0]], tf.float32, [1])

    slow_end.set()
    host_estimator(model_dir).train(input_fn)
    assert slow_end.threads == [threading.main_thread()]


def test_a_process_that_is_about_to_end_starts_no_thread(model_dir, slow_end, monkeypatch):
    slow_end.set()
    model = host_estimator(model_dir)
    model.train(numbers(3))
    predictions = model.predict(numbers(3))
    next(predictions)
    monkeypatch.setattr(sys, "is_finalizing", lambda: True)
    predictions.close()
    assert slow_end.threads[1:] == [threading.main_thread()]


PROGRAM = """
import tensorflow as tf
from estimator2strategy import estimator
from tests.engine.runtime.programs import falling, host_estimator
import sys

model = host_estimator(sys.argv[1])
data = lambda: tf.data.Dataset.from_tensors([1.0]).repeat().prefetch(tf.data.AUTOTUNE)
model.train(data, steps=3000)
predictions = model.predict(data)
print(next(predictions), flush=True)
"""


def test_a_process_ends_in_silence(tmp_path):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "model")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "Exception" not in done.stderr
    assert "Traceback" not in done.stderr
