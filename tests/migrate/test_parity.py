"""A program of TF 1.x, taken up the ladder, gives the numbers that TensorFlow 1.15 gave it.

The golden is what `python tests/programs/ladder.py --model_dir=DIR` printed under TF 1.15.5.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from estimator2strategy.migrate.plan import make_plan
from estimator2strategy.migrate.rule import Tier, rules

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tests" / "programs" / "ladder.py"
GOLDEN = json.loads((ROOT / "tests" / "goldens" / "ladder.json").read_text())


def migrated(text, folder, *, stage, tier=Tier.SAFE):
    """The program after all stages up to this one, and how often each rule changed it."""
    path = folder / "program.py"
    path.write_text(text)
    chosen = [rule for rule in rules().values() if rule.stage <= stage]
    plan = make_plan([str(path)], chosen, tier=tier)
    assert not plan.problems
    path.write_text(plan.files[0].outcome.text)
    return path, {name for name, _ in plan.counts}


def results(path, tmp_path):
    """What a program prints when it is run as it is."""
    result = subprocess.run(
        [sys.executable, str(path), f"--model_dir={tmp_path / 'model'}"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return json.loads(result.stdout.splitlines()[-1])


def assert_equals_golden(found):
    np.testing.assert_allclose(found["losses"], GOLDEN["losses"], rtol=0, atol=1e-5)
    np.testing.assert_allclose(found["probabilities"], GOLDEN["probabilities"], atol=1e-5)
    assert found["metrics"].keys() == GOLDEN["metrics"].keys()
    for name, value in GOLDEN["metrics"].items():
        assert found["metrics"][name] == pytest.approx(value, abs=1e-5), name
    assert found["variables"] == GOLDEN["variables"]


@pytest.mark.slow
@pytest.mark.parametrize("stage", [2])
def test_safe_stages_give_the_numbers_of_tensorflow_1(stage, tmp_path):
    path, applied = migrated(PROGRAM.read_text(), tmp_path, stage=stage)
    wanted = {r.name for r in rules().values() if r.stage <= stage and r.tier is Tier.SAFE}
    assert wanted <= applied
    assert_equals_golden(results(path, tmp_path))
