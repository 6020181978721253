"""Failures that XLA does not report are told under JAX where check_compiled asks for them."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import TrainingOptions, estimator

tf1 = tf.compat.v1


def ids_beyond(ids, table):
    return tf.reduce_sum(tf.gather(table, ids))


def assertion(ids, table):
    good = tf1.Assert(tf.reduce_all(ids < 4), ["ids:", ids])
    with tf.control_dependencies([good]):
        return tf.reduce_sum(table)


def assert_less(ids, table):
    with tf.control_dependencies([tf1.assert_less(ids, 4, message="too large")]):
        return tf.reduce_sum(table)


def numbers(ids, table):
    finite = tf1.check_numerics(1 / tf.cast(4 - ids, tf.float32), "of ids")
    return tf.reduce_sum(table) * tf.reduce_sum(finite)


CASES = {
    ids_beyond: (r"an id is beyond the table", "GatherV2|ResourceGather"),
    assertion: (r"the assertion fails", "Assert|If"),
    assert_less: (r"the assertion fails", "Assert|If"),
    numbers: (r"a number is infinite or NaN", "CheckNumerics"),
}


def model_of(make, folder, cores, options):
    def model_fn(features, labels, mode, params):
        del labels, params
        table = tf1.get_variable("table", [4, 2], initializer=tf1.ones_initializer())
        loss = make(features, table)
        optimizer = tf1.tpu.CrossShardOptimizer(tf1.train.GradientDescentOptimizer(0.1))
        train_op = optimizer.minimize(loss, tf1.train.get_global_step())
        return estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)

    config = estimator.tpu.RunConfig(
        model_dir=str(folder), tpu_config=estimator.tpu.TPUConfig(iterations_per_loop=6)
    )
    return estimator.tpu.TPUEstimator(
        model_fn, config=config, use_tpu=cores > 1, train_batch_size=2, params={}, options=options
    )


def input_fn(params):
    """Six batches; one id of the fourth is bad."""
    ids = np.zeros([12], np.int32)
    ids[7] = 4
    return tf.data.Dataset.from_tensor_slices(ids).batch(params["batch_size"], drop_remainder=True)


@pytest.mark.evidence("refusals", "jax")
@pytest.mark.parametrize("make", CASES)
@pytest.mark.parametrize("cores", [1, 2])
def test_a_swallowed_failure_is_told_with_its_op_and_line(make, cores, tmp_path, jax_devices):
    jax_devices(cores)
    why, op = CASES[make]
    model = model_of(make, tmp_path, cores, TrainingOptions(check_compiled=True))
    line = rf"({op}) '.*', made at .*test_jax_checks\.py:\d+.*: {why}"
    with pytest.raises(tf.errors.InvalidArgumentError, match=line):
        model.train(input_fn, steps=6)


def test_steps_without_the_switch_return_no_flags(tmp_path, jax_devices, monkeypatch):
    jax_devices(1)
    model_of(ids_beyond, tmp_path, 1, None).train(input_fn, steps=6)
    monkeypatch.setenv("E2S_CHECK_COMPILED", "1")
    with pytest.raises(tf.errors.InvalidArgumentError, match="beyond the table"):
        model_of(ids_beyond, tmp_path, 1, None).train(input_fn, steps=6)


def test_good_batches_train_with_the_switch(tmp_path, jax_devices):
    jax_devices(1)
    options = TrainingOptions(check_compiled=True)
    model = model_of(assertion, tmp_path, 1, options)
    model.train(lambda params: tf.data.Dataset.from_tensors(tf.zeros([2], tf.int32)).repeat(3))
    assert model.get_variable_value("global_step") == 3
