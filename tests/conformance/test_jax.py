"""Does each program learn under JAX what it learns under TensorFlow, from the same batches?"""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.errors import UnsupportedError
from tests.conformance.programs import estimator_of, every_program, program, variables

tf1 = tf.compat.v1


@pytest.mark.evidence("training", "jax")
@pytest.mark.evidence("evaluation", "jax")
@pytest.mark.evidence("prediction", "jax")
@every_program
@pytest.mark.parametrize("devices", [1, 2])
def test_devices_of_jax_train_evaluate_and_predict_what_tensorflow_does(
    name, tmp_path, jax_devices, devices
):
    legacy = program(name, tmp_path)
    host, on_jax = tmp_path / "host", tmp_path / "jax"
    estimator_of(legacy, host).train(legacy.input_fn, steps=1)
    shutil.copytree(host, on_jax)

    expected = outcome(estimator_of(legacy, host), legacy)
    jax_devices(devices)
    found = outcome(estimator_of(legacy, on_jax, use_tpu=devices > 1), legacy)
    for what, values in expected.items():
        assert values.keys() == found[what].keys()
        for key, value in values.items():
            np.testing.assert_allclose(found[what][key], value, rtol=1e-5, atol=1e-6, err_msg=key)


@pytest.mark.evidence("refusals", "jax")
def test_work_of_the_host_in_the_middle_of_a_core_s_step_is_refused(tmp_path, jax_devices):
    jax_devices(1)
    config = estimator.tpu.RunConfig(model_dir=str(tmp_path))
    model = estimator.tpu.TPUEstimator(
        outside, config=config, use_tpu=True, train_batch_size=2, params={}
    )
    with pytest.raises(UnsupportedError, match=r"PyFunc.*test_jax.py:\d+: .*py_func"):
        model.train(lambda params: tf.data.Dataset.from_tensors(tf.ones([2, 3])).repeat(), steps=1)


def outside(features, labels, mode, params):
    del labels, params
    y = features @ tf1.get_variable("w", [3, 1])

    def on_host(value):
        return tf1.py_func(np.sum, [value], tf.float32)

    total = tf1.tpu.outside_compilation(on_host, y)
    loss = tf.reduce_mean(y) * tf.reshape(total, [])
    train_op = tf1.train.GradientDescentOptimizer(0.1).minimize(loss, tf1.train.get_global_step())
    return estimator.tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op)


def outcome(model, legacy) -> dict[str, dict]:
    """Its variables after some steps, its metrics, its first predictions."""
    model.train(legacy.input_fn, steps=4)
    metrics = model.evaluate(legacy.input_fn, steps=3)
    first = next(iter(model.predict(legacy.input_fn)))
    return {"variables": variables(model), "metrics": metrics, "predictions": first}
