"""Seeded random ops in branches and loops draw under XLA what kernels for CPUs draw there."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import tensorflow as tf

pytest.importorskip("jax", minversion="0.10")

from estimator2strategy import estimator
from estimator2strategy.engine.worlds import legacy_world

tf1 = tf.compat.v1

# Draws [6] floats, with a seed of the op's own.
DRAWS = {
    "uniform": lambda: tf1.random_uniform([6], seed=3),
    "normal": lambda: tf1.random_normal([6], seed=4),
    "truncated": lambda: tf1.truncated_normal([6], seed=5),
    "integers": lambda: tf.cast(tf1.random_uniform([6], 0, 99, tf.int32, seed=6), tf.float32),
    "shuffle": lambda: tf1.random_shuffle(tf.range(6.0), seed=7),
    "classes": lambda: tf.cast(tf1.multinomial(tf.zeros([2, 9]), 3, seed=8), tf.float32),
    "stateless classes": lambda: tf.cast(
        tf.random.stateless_categorical(tf.zeros([2, 9]), 3, seed=[8, 9]), tf.float32
    ),
}


def drawn(draw):
    return tf.reshape(draw(), [6])


def of_all(place, step):
    """The numbers of each op at such a place."""
    return tf.stack([place(draw, step) for draw in DRAWS.values()])


def in_a_loop(draw, step):
    """Draws three times, and twice in a branch of the body. A Session must not race here."""
    del step

    def body(i, total):
        again = tf.cond(i > 0, lambda: drawn(draw), lambda: tf.zeros([6]))
        return i + 1, 2 * total + drawn(draw) + again

    start = (0, tf.zeros([6]))
    return tf.while_loop(lambda i, _: i < 3, body, start, parallel_iterations=1)[1]


def in_a_branch(draw, step):
    """Draws at each second step, so that the steps between must not move the stream on."""
    return tf.cond(tf.equal(step % 2, 0), lambda: drawn(draw), lambda: tf.zeros([6]))


def in_a_case(draw, step):
    branches = [lambda: drawn(draw), lambda: -drawn(draw), lambda: tf.zeros([6])]
    return tf.switch_case(tf.cast(step % 3, tf.int32), branches)


PLACES = {"loop": in_a_loop, "branch": in_a_branch, "case": in_a_case}


STEPS = 5


def model_of(numbers_at):
    """model_fn: keeps what `numbers_at` gives for each step."""

    def model_fn(features, labels, mode, params):
        del labels, params
        step = tf1.train.get_global_step()
        numbers = numbers_at(step) + 0 * tf.reduce_sum(features)
        kept = tf1.get_variable(
            "kept", [STEPS, *numbers.shape], initializer=tf1.zeros_initializer()
        )
        at_step = tf.reshape(tf.one_hot(step, STEPS), [STEPS, *[1] * len(numbers.shape)])
        with tf.control_dependencies([kept.assign_add(at_step * numbers)]):
            train_op = tf1.assign_add(step, 1)
        loss = tf.reduce_sum(numbers)
        return estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    return model_fn


def of_session(place):
    """The numbers of a Session of TF 1."""
    with legacy_world(), tf.Graph().as_default():
        tf1.set_random_seed(1)
        step = tf1.placeholder(tf.int64, [])
        numbers = of_all(place, step)
        with tf1.Session() as session:
            return [session.run(numbers, {step: i}) for i in range(STEPS)]


def trained(model_fn, folder, **more):
    tpu = estimator.tpu
    loop = tpu.TPUConfig(iterations_per_loop=STEPS)
    config = tpu.RunConfig(tf_random_seed=1, tpu_config=loop)
    model = tpu.TPUEstimator(model_fn, str(folder), config, train_batch_size=16, **more)
    model.train(lambda params: tf.data.Dataset.from_tensors(tf.zeros([16])).repeat(), steps=STEPS)
    return model.get_variable_value("kept")


@pytest.mark.parametrize("place", PLACES)
def test_numbers_are_those_of_a_session(place, tmp_path, jax_devices, caplog):
    jax_devices(1)
    model_fn = model_of(functools.partial(of_all, PLACES[place]))
    found = trained(model_fn, tmp_path, use_tpu=False)
    np.testing.assert_allclose(found, of_session(PLACES[place]), rtol=1e-6, atol=1e-6)
    assert "no effect" not in caplog.text


def test_each_of_eight_devices_has_streams_of_its_own(tmp_path, emulated_cores, jax_devices):
    def of_all_cores(step):
        numbers = [in_a_loop(DRAWS["normal"], step), in_a_branch(DRAWS["uniform"], step)]
        return tf1.tpu.cross_replica_sum(tf.stack(numbers))

    emulated_cores(8)
    expected = trained(model_of(of_all_cores), tmp_path / "emulated")
    emulated_cores(0)
    jax_devices(8)
    found = trained(model_of(of_all_cores), tmp_path / "jax")
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-6)
