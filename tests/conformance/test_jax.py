"""Does each program learn under JAX what it learns under TensorFlow, from the same batches?"""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from tests.conformance.programs import estimator_of, every_program, program, variables


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


def outcome(model, legacy) -> dict[str, dict]:
    """Its variables after some steps, its metrics, its first predictions."""
    model.train(legacy.input_fn, steps=4)
    metrics = model.evaluate(legacy.input_fn, steps=3)
    first = next(iter(model.predict(legacy.input_fn)))
    return {"variables": variables(model), "metrics": metrics, "predictions": first}
