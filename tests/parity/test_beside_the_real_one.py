"""The same program, run by the real TPUEstimator of TensorFlow 2.15 and by ours, in turns.

Needs a Python with `tensorflow==2.15.1`, named by E2S_LEGACY_PYTHON; `.ci/run` makes one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

LEGACY_PYTHON = os.environ.get("E2S_LEGACY_PYTHON")
PROGRAM = Path(__file__).parents[1] / "programs" / "regression.py"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not LEGACY_PYTHON,
        reason="E2S_LEGACY_PYTHON does not name a Python that has tensorflow==2.15.1",
    ),
]


def run(python: str, model_dir: Path, max_steps: int) -> dict:
    environment = {**os.environ, "PYTHONPATH": str(PROGRAM.parents[2])}
    result = subprocess.run(
        [python, str(PROGRAM), str(model_dir), str(max_steps)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return json.loads(result.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def started(tmp_path_factory) -> dict[str, Path]:
    """By whom -> a model folder with a checkpoint of step 10."""
    folders = {"real": tmp_path_factory.mktemp("real"), "ours": tmp_path_factory.mktemp("ours")}
    for who, folder in folders.items():
        run(_python(who), folder / "model", 10)
    return folders


def _python(who: str) -> str:
    return LEGACY_PYTHON if who == "real" else sys.executable


@pytest.mark.parametrize("first", ["real", "ours"])
def test_either_continues_the_others_training(started, first, tmp_path):
    results = {}
    for second in ("real", "ours"):
        folder = shutil.copytree(started[first] / "model", tmp_path / second)
        results[second] = run(_python(second), folder, 30)
    real, ours = results["real"], results["ours"]
    np.testing.assert_allclose(ours["losses"], real["losses"], rtol=1e-5)
    assert len(ours["losses"]) == 20
    assert ours["variables"].keys() == real["variables"].keys()
    for name, value in real["variables"].items():
        np.testing.assert_allclose(ours["variables"][name], value, rtol=1e-4, atol=1e-5)
    assert ours["metrics"].keys() == real["metrics"].keys()
    for name, value in real["metrics"].items():
        assert ours["metrics"][name] == pytest.approx(value, rel=1e-5), name
    np.testing.assert_allclose(ours["probabilities"], real["probabilities"], rtol=1e-4, atol=1e-6)
