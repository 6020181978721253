"""A lowered step runs under JAX as TensorFlow's own engine runs it."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.replay.xla.core import CoreProgram
from estimator2strategy.engine.replay.xla.lowering import lower_step

jax = pytest.importorskip("jax", minversion="0.10")

from estimator2strategy.engine.replay.xla.block import block_of  # noqa: E402
from estimator2strategy.engine.replay.xla.step_function import StepFunction  # noqa: E402
from estimator2strategy.engine.replay.xla.target import Precision  # noqa: E402

tf1 = tf.compat.v1
STEPS = 4
X = np.arange(STEPS * 6, dtype=np.float32).reshape(STEPS, 2, 3) / 10


@pytest.fixture
def program():
    """w -= 0.1 * d mean((x w - 1)^2) / dw, and an int64 counter."""
    with tf.Graph().as_default() as graph:
        x = tf1.placeholder(tf.float32, [2, 3], name="x")
        w = tf1.get_variable("w", [3, 1], use_resource=True)
        counter = tf1.get_variable("counter", [], tf.int64, use_resource=True, trainable=False)
        loss = tf.reduce_mean(tf.square(x @ w - 1.0), name="loss")
        update = tf1.train.GradientDescentOptimizer(0.1).minimize(loss, counter, name="train")
    return CoreProgram(RecordedGraph(graph), ("x:0",), (loss.name,), (update.name,))


def run(program, count: int, value: float = 0.5, **how):
    replay = Replay.of_graph(program.recorded.graph)
    lowered = lower_step(program, replay.state.random_streams())
    step = StepFunction(lowered, Precision.HIGHEST)
    with jax.enable_x64(True):
        start = [np.full(v.shape, value if v.shape else 0, v.dtype) for v in step.variables]
        block = jax.jit(block_of(step, STEPS, loss=0, **how), donate_argnums=0)
        return jax.tree.map(np.asarray, block(start, [X], count))


def by_hand(count: int):
    w, losses = np.full([3, 1], 0.5, np.float32), []
    for x in X[:count]:
        error = x @ w - 1.0
        losses.append(np.mean(error**2))
        w = w - 0.1 * x.T @ error
    return w, losses


@pytest.mark.parametrize("count", [1, 3, STEPS])
def test_a_block_runs_as_many_of_the_stacked_steps_as_it_is_told(program, count):
    w, losses = by_hand(count)
    after = run(program, count)
    np.testing.assert_allclose(after.outputs[0], losses[-1], rtol=1e-5)
    np.testing.assert_allclose(after.variables[0], w, rtol=1e-5)
    assert after.variables[1] == count
    assert after.variables[1].dtype == np.int64
    assert after.nan_since == 0


def test_it_collects_the_outputs_of_all_steps(program):
    after = run(program, STEPS, collects=True)
    np.testing.assert_allclose(after.outputs[0], by_hand(STEPS)[1], rtol=1e-5)


def test_it_tells_the_step_since_which_the_loss_is_nan(program):
    assert run(program, STEPS, value=np.inf).nan_since == 1


def test_variables_after_a_block_have_the_memory_of_those_before(program):
    lowered = lower_step(program, Replay.of_graph(program.recorded.graph).state.random_streams())
    step = StepFunction(lowered)
    with jax.enable_x64(True):
        block = jax.jit(block_of(step, STEPS, loss=0), donate_argnums=0)
        memory = block.lower(step.variables, [X], 1).compile().memory_analysis()
    assert memory.alias_size_in_bytes == 3 * 4 + 8  # w, and the counter


def test_the_process_is_left_without_64_bit_values(program):
    run(program, 1)
    assert jax.numpy.arange(3).dtype == np.int32
