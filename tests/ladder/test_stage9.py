"""bikes.py at stage 9 on JAX and torch, where TensorFlow is not installed: the losses of TF 1.15.

Needs an environment with `keras jax torch grain pyarrow` alone, which E2S_KERAS_PYTHON names;
`.ci/run` makes it. E2S_KERAS_BACKENDS names the backends that it has, if it lacks one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from estimator2strategy.tools.checkpoint.checkpoint_command import main
from estimator2strategy.tools.golden.opened import read

LADDER = Path(__file__).parent
GOLDEN = LADDER / "goldens" / "bikes_tf115"
PYTHON = os.environ.get("E2S_KERAS_PYTHON")
BACKENDS = os.environ.get("E2S_KERAS_BACKENDS", "jax torch").split()

pytestmark = pytest.mark.skipif(not PYTHON, reason="E2S_KERAS_PYTHON names no Python")

WRITES = """\
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np
import bikes_stage9 as program
for name in ("train", "eval"):
    numbers, station, labels = (np.load(f"{sys.argv[2]}/{name}_{k}.npy") for k in "nsl")
    program.write_csv(f"{sys.argv[2]}/{name}.csv", numbers, station, labels)
    features, found = program.read_csv(f"{sys.argv[2]}/{name}.csv")
    assert np.array_equal(features["numbers"], numbers)
    assert np.array_equal(features["station"], station)
    assert np.array_equal(found, labels)
assert "tensorflow" not in sys.modules
"""


def python_of_keras(*arguments, backend="jax"):
    """The output of a Python that has Keras and no TensorFlow."""
    ran = subprocess.run(
        [str(PYTHON), *map(str, arguments)],
        env={**os.environ, "KERAS_BACKEND": backend, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def golden():
    return read(str(GOLDEN))


@pytest.fixture(scope="module")
def folder(golden, tmp_path_factory):
    """train.csv and eval.csv of the program, and the golden's first weights for Keras."""
    made = tmp_path_factory.mktemp("bikes")
    for mode, name in (("train", "train"), ("eval", "eval")):
        batches = golden.batches(mode)
        for key, leaves in zip("nsl", zip(*batches, strict=True), strict=True):
            np.save(made / f"{name}_{key}.npy", np.concatenate(leaves))
    python_of_keras("-c", WRITES, LADDER / "final", made)
    model = f"{LADDER / 'stage9.py'}:built_bikes"
    weights = str(made / "first.weights.h5")
    first = golden.checkpoint("first")
    assert main(["convert", first, weights, "--to", "keras", "--model", model]) == 0
    return made


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("reader", ["pyarrow", "grain"])
def test_input_without_tensorflow_trains_and_evaluates_as_tf_1_15(golden, folder, backend, reader):
    program = LADDER / "final" / "bikes_stage9.py"
    options = ("--reader", reader, "--folder", folder, "--weights", folder / "first.weights.h5")
    said = json.loads(python_of_keras(program, *options, backend=backend).splitlines()[-1])
    results = golden.all_results()
    np.testing.assert_allclose(said["losses"], results["train/losses"], rtol=1e-5)
    np.testing.assert_allclose(
        said["evaluation"]["accuracy"], results["evaluate/metric/accuracy"], rtol=1e-6
    )
    np.testing.assert_allclose(
        said["evaluation"]["loss"], results["evaluate/metric/loss"], rtol=1e-5
    )
    if "predict/first/probabilities" in results:
        expected = results["predict/first/probabilities"]
        np.testing.assert_allclose(said["probabilities"][: len(expected)], expected, atol=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_proof_command_runs_the_backend_of_another_python(backend, capfd):
    model = f"{LADDER / 'stage9.py'}:bikes"
    arguments = ["verify", str(GOLDEN), "--backend", backend, "--python", str(PYTHON)]
    code = main([*arguments, "--model", model])
    said = capfd.readouterr()
    assert code == 0, said.err + said.out
    assert said.out.count(" passed ") == 3
    assert f"on {backend}, no TensorFlow" in said.out
    assert sys.executable != PYTHON
