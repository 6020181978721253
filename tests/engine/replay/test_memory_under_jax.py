"""A training under JAX holds no memory that it need not."""

from __future__ import annotations

import ctypes
import gc
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

jax = pytest.importorskip("jax", minversion="0.10")

from estimator2strategy import estimator  # noqa: E402
from estimator2strategy.engine.replay import freed_memory  # noqa: E402
from estimator2strategy.engine.replay.engines import on_jax  # noqa: E402
from estimator2strategy.engine.replay.xla.device_values import DeviceValues  # noqa: E402
from estimator2strategy.engine.replay.xla.target import Precision  # noqa: E402

tf1 = tf.compat.v1
HAS_GLIBC = sys.platform == "linux" and hasattr(ctypes.CDLL(None), "malloc_trim")


def images(size):
    """input_fn: batches of two square images; 32 batches are more than one launch has room for."""
    pixels = np.random.default_rng(0).random((2, size, size, 1), np.float32)
    return lambda: tf.data.Dataset.from_tensors(pixels).repeat()


def model_fn(features, labels, mode):
    del labels
    kernel = tf1.get_variable("kernel", [3, 3, 1, 4])
    loss = tf.reduce_mean(tf.nn.relu(tf.nn.conv2d(features, kernel, 1, "SAME")))
    train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(
        loss, global_step=tf1.train.get_global_step()
    )
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)


def count_calls(monkeypatch, owner, name):
    """The results of the calls of a function, which still does its work."""
    results = []
    function = getattr(owner, name)

    def called(*given, **more):
        results.append(function(*given, **more))
        return results[-1]

    monkeypatch.setattr(owner, name, called)
    return results


def test_a_step_that_is_launched_alone_is_compiled_once_for_short_and_long_calls(
    tmp_path, jax_devices, monkeypatch
):
    """A second program of the same step was a second compilation, and 60 MB at the peak."""
    jax_devices(1)
    compiled = count_calls(monkeypatch, on_jax.OnJax, "_compiled")
    estimator.Estimator(model_fn, str(tmp_path)).train(images(128), steps=6)
    assert [program.steps for program in compiled] == [1]


def test_a_step_with_two_programs_is_lowered_once(tmp_path, jax_devices, monkeypatch):
    jax_devices(1)
    monkeypatch.setattr(on_jax, "_SLOW_IN_LOOPS", {})
    lowered = count_calls(monkeypatch, on_jax, "kept_step")
    compiled = count_calls(monkeypatch, on_jax.OnJax, "_compiled")
    estimator.Estimator(model_fn, str(tmp_path)).train(images(128), steps=6)
    assert sorted(program.steps for program in compiled) == [1, 32]
    assert len(lowered) == 1


def test_the_programs_text_is_not_kept_beside_its_compilation(tmp_path, jax_devices, monkeypatch):
    jax_devices(1)
    references = []
    make = on_jax.kept_step

    def kept_step(*given):
        step = make(*given)
        references.append(weakref.ref(step))
        return step

    monkeypatch.setattr(on_jax, "kept_step", kept_step)
    left = []

    class Looks(tf1.train.SessionRunHook):
        def after_run(self, run_context, run_values):
            gc.collect()
            left.append([reference() is not None for reference in references])

    estimator.Estimator(model_fn, str(tmp_path)).train(images(8), steps=2, hooks=[Looks()])
    assert left == [[False], [False]]


class _State:
    def __init__(self, value):
        self._variable = tf.Variable(value)

    def variable(self, name):
        del name
        return self._variable


def test_devices_of_a_cpu_begin_with_the_hosts_own_values_and_leave_them_alone():
    """A copy of all variables, made before the first step, would be at the peak."""
    state = _State(np.zeros([512, 64], np.float32))
    values = DeviceValues(state, jax.devices()[:1], Precision.DEFAULT)
    (array,) = values.take(["kernel"])
    on_host = np.asarray(state.variable("kernel").read_value()).ctypes.data
    assert array.unsafe_buffer_pointer() == on_host
    after = jax.jit(lambda x: x + 1, donate_argnums=0)(array)
    values.put(["kernel"], [after], changed=[0])
    assert float(after[0, 0]) == 1
    assert state.variable("kernel").numpy().max() == 0
    state.variable("kernel").assign_add(np.full([512, 64], 5, np.float32))
    assert float(after[0, 0]) == 1


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(not HAS_GLIBC, reason="another C library")
def test_memory_that_is_freed_in_small_pieces_goes_back_to_the_system():
    """glibc keeps what lies below a piece that is still in use."""
    pieces = [bytes(100_000) for _ in range(640)]
    top = bytearray(100_000)
    del pieces
    before = resident()
    freed_memory.give_back()
    assert before - resident() > 32_000_000
    assert top
