"""The bytes that a TPU's compiler is given are executed: cores meet in them, and count alike."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from legacy_models import BATCH, CLASSES, FEATURES, dense_net, input_fn, program_of

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.replay.xla.lowering import lower
from estimator2strategy.engine.xla import hlo
from estimator2strategy.engine.xla.core_program import core_program
from estimator2strategy.estimator import tpu
from estimator2strategy.estimator.estimator_recording import record_for, recording_graph
from tests.xla_cpu import execute

tf1 = tf.compat.v1
CORES = 8


def batches() -> list[tuple[np.ndarray, np.ndarray]]:
    """Of each core, its features and labels."""
    rng = np.random.default_rng(0)
    shape = [CORES, BATCH // CORES]
    features = rng.normal(size=[*shape, FEATURES]).astype(np.float32)
    return list(zip(features, rng.integers(CLASSES, size=shape).astype(np.int32)))


def start(program) -> dict[str, np.ndarray]:
    """Other values for each variable, as after some steps."""
    rng = np.random.default_rng(1)
    values = {}
    for name in program.variables:
        attr = program.recorded[name].attr
        dtype = tf.as_dtype(attr["dtype"].type).as_numpy_dtype
        shape = tf.TensorShape(attr["shape"].shape).as_list()
        values[name] = (rng.random(shape) * 0.5 + 0.25).astype(dtype)
    return values


@pytest.mark.oldest
def test_parameters_are_the_feeds_then_the_variables():
    program = program_of(dense_net)
    shape = _tf_private.HloModule.FromString(lower(program)).host_program_shape
    given = [list(parameter.dimensions) for parameter in shape.parameters]
    of_variables = [
        tf.TensorShape(program.recorded[name].attr["shape"].shape).as_list()
        for name in program.variables
    ]
    assert given == [*(program.spec(name).shape.as_list() for name in program.feeds), *of_variables]


@pytest.mark.evidence("training", "xla")
def test_a_step_of_eight_cores_is_the_step_that_numpy_makes():
    program = program_of(dense_net)
    values, parts = start(program), batches()
    after = execute(program, lower(program), parts, values)

    gradients, losses = [], []
    for features, labels in parts:
        logits = features @ values["weights"]
        exponents = np.exp(logits - logits.max(1, keepdims=True))
        shares = exponents / exponents.sum(1, keepdims=True)
        hot = np.eye(CLASSES, dtype=np.float32)[labels]
        losses.append(-np.log((shares * hot).sum(1)).mean())
        gradients.append(features.T @ (shares - hot) / len(features))
    gradient = np.mean(gradients, axis=0)
    (found,) = after.outputs.values()
    np.testing.assert_allclose(found, losses, rtol=1e-6)
    momentum = 0.9 * values["weights/Adam"] + 0.1 * gradient
    for core in range(CORES):
        np.testing.assert_allclose(after.variables["weights/Adam"][core], momentum, rtol=1e-5)
    np.testing.assert_array_equal(after.variables["global_step"], [values["global_step"] + 1] * 8)


def test_every_core_has_the_same_weights_after_a_step():
    program = program_of(dense_net)
    after = execute(program, lower(program), batches(), start(program))
    assert after.variables.keys() == set(program.variables)
    for name, of_cores in after.variables.items():
        for value in of_cores:
            np.testing.assert_array_equal(value, of_cores[0], err_msg=name)


@pytest.mark.evidence("training", "xla")
def test_a_variable_that_each_core_moves_by_itself_is_its_own():
    def model_fn(features, labels, mode, params):
        spec = dense_net(features, labels, mode, params)
        average = tf1.get_variable("average", [FEATURES], trainable=False)
        moved = tf1.assign(average, tf.reduce_mean(features, 0))
        return spec._replace(train_op=tf.group(spec.train_op, moved))

    program, parts = program_of(model_fn), batches()
    after = execute(program, lower(program), parts, start(program))
    means = [features.mean(0) for features, _ in parts]
    np.testing.assert_allclose(after.variables["average"], means, rtol=1e-5, atol=1e-7)


def test_what_emulated_cores_record_is_the_program_of_a_tpu(emulated_cores):
    emulated_cores(CORES)
    model = tpu.TPUEstimator(
        dense_net,
        config=tpu.RunConfig(model_dir="/never/written", tpu_config=tpu.TPUConfig(10)),
        train_batch_size=BATCH,
        params={},
    )
    with recording_graph(model):
        emulated = core_program(record_for(model, ModeKeys.TRAIN, input_fn))
    of_a_tpu = program_of(dense_net)  # recorded under a TPUStrategy
    assert hlo.fingerprint(lower(emulated)) == hlo.fingerprint(lower(of_a_tpu))


def test_a_variable_that_is_only_read_is_no_result():
    def model_fn(features, labels, mode, params):
        scale = tf1.get_variable("scale", [FEATURES], trainable=False)
        return dense_net(features * scale, labels, mode, params)

    program = program_of(model_fn)
    after = execute(program, lower(program), batches(), start(program))
    assert set(program.variables) - after.variables.keys() == {"scale"}
