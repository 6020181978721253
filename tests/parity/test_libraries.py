"""Libraries whose Estimators are subclasses or users of ours train as they did where they ran."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import fresh
from tests.same import assert_same

ROOT = Path(__file__).parents[2]


def e2s(*arguments: str, path: str = "") -> subprocess.CompletedProcess:
    return subprocess.run(
        [fresh.python(), "-m", "estimator2strategy", "run", *arguments],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), path])),
            "TF_CPP_MIN_LOG_LEVEL": "3",
        },
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def installed(folder: Path, *packages: str) -> str:
    """A folder that has these packages, and nothing of what they ask for."""
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-compile", "--target"]
    subprocess.run([*pip, str(folder), *packages], check=True, timeout=300)
    return str(folder)


@pytest.fixture
def adanet(tmp_path):
    """adanet asks for a protobuf that no TensorFlow of today runs on."""
    return installed(tmp_path / "packages", "adanet==0.9.0", "tensorboard")


@pytest.fixture
def tensor2tensor(tmp_path):
    """tensor2tensor, and what it imports; it asks for much more, of which some is gone."""
    of_datasets = ["etils", "immutabledict", "promise", "tensorflow-metadata", "toml"]
    of_clients = ["httplib2", "oauth2client", "pyasn1", "pyasn1-modules", "rsa", "uritemplate"]
    return installed(
        tmp_path / "packages",
        "tensor2tensor==1.15.7",
        "google-api-python-client==1.7.12",
        "gym==0.12.6",
        "mpmath",
        "pypng",
        "sympy",
        "tensorboard",
        "tensorflow-datasets",
        *of_datasets,
        *of_clients,
    )


@pytest.mark.slow
def test_adanet_grows_the_ensemble_that_it_grew_on_tf_2_7(adanet, tmp_path):
    program = ROOT / "tests" / "programs" / "ada.py"
    ran = e2s(str(program), str(tmp_path / "model"), path=adanet)
    assert ran.returncode == 0, ran.stderr[-2000:]
    golden = json.loads((ROOT / "tests" / "goldens" / "ada.json").read_text())
    assert_same(json.loads(ran.stdout), golden, "adanet")


@pytest.mark.slow
def test_tensor2tensor_spells_backwards_as_it_did_on_tf_1_15(tensor2tensor, tmp_path):
    program = ROOT / "tests" / "programs" / "t2t.py"
    ran = e2s(str(program), str(tmp_path), path=tensor2tensor)
    assert ran.returncode == 0, ran.stderr[-2000:]
    golden = json.loads((ROOT / "tests" / "goldens" / "t2t.json").read_text())
    assert_same(json.loads((tmp_path / "found.json").read_text()), golden, "tensor2tensor")


# Some of the tests that TF-GAN brings along.
GAN_TESTS = {
    "gan_estimator_test": ["GANEstimatorIntegrationTest.test_numpy_input_fn"],
    "tpu_gan_estimator_test": [
        "TPUGANEstimatorIntegrationTest.test_numpy_input_fn_joint_train",
        "TPUGANEstimatorMultiTrainStepTest.test_train_1:1 seq",
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("module", GAN_TESTS)
def test_tf_gan_passes_its_own_tests(module):
    flags = ["--use_tpu=True"] if module.startswith("tpu") else []
    name = f"tensorflow_gan.python.estimator.{module}"
    ran = e2s("--emulate-tpu-cores=2", "-m", name, *flags, *GAN_TESTS[module])
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert "\nOK" in ran.stderr
    assert "Ran 0 tests" not in ran.stderr
