"""Does each program learn on cores what it learns on one device, from the same global batches?"""

from __future__ import annotations

import shutil

import numpy as np

from tests.conformance.programs import estimator_of, every_program, program, variables


@every_program
def test_two_cores_train_what_one_device_trains(name, tmp_path, emulated_cores):
    legacy = program(name, tmp_path)
    host, cores = tmp_path / "host", tmp_path / "cores"
    estimator_of(legacy, host).train(legacy.input_fn, steps=1)
    shutil.copytree(host, cores)
    emulated_cores(2)
    expected, found = (
        variables(estimator_of(legacy, folder, use_tpu=use_tpu).train(legacy.input_fn, steps=4))
        for folder, use_tpu in ((host, False), (cores, True))
    )
    assert expected.keys() == found.keys()
    for variable, value in expected.items():
        np.testing.assert_allclose(found[variable], value, rtol=1e-5, atol=1e-6, err_msg=variable)
