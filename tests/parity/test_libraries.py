"""Libraries whose Estimators are subclasses or users of ours train as they did where they ran."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.same import assert_same

ROOT = Path(__file__).parents[2]


def e2s(*arguments: str, path: str = "") -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "estimator2strategy", "run", *arguments],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), path])),
            "TF_CPP_MIN_LOG_LEVEL": "3",
        },
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )


@pytest.fixture
def adanet(tmp_path):
    """A folder that has adanet, which asks for a protobuf that no TensorFlow of today runs on."""
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target"]
    folder = str(tmp_path / "packages")
    subprocess.run([*pip, folder, "adanet==0.9.0", "tensorboard"], check=True, timeout=300)
    return folder


@pytest.mark.slow
def test_adanet_grows_the_ensemble_that_it_grew_on_tf_2_7(adanet, tmp_path):
    program = ROOT / "tests" / "programs" / "ada.py"
    ran = e2s(str(program), str(tmp_path / "model"), path=adanet)
    assert ran.returncode == 0, ran.stderr[-2000:]
    golden = json.loads((ROOT / "tests" / "goldens" / "ada.json").read_text())
    assert_same(json.loads(ran.stdout), golden, "adanet")


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
    ran = e2s("--emulate_tpu_cores=2", "-m", name, *flags, *GAN_TESTS[module])
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert "\nOK" in ran.stderr
    assert "Ran 0 tests" not in ran.stderr
