"""A program of TF 1.x, taken up the ladder, gives the numbers that TensorFlow 1.15 gave it.

The golden is what `python tests/programs/ladder.py --model_dir=DIR` printed under TF 1.15.5.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from estimator2strategy.tools.migrate.codemod import SafetyTier, codemods
from estimator2strategy.tools.migrate.preview import make_plan
from tests import fresh

ROOT = Path(__file__).resolve().parents[3]
RUN = ROOT / "tests" / "tools" / "migrate" / "run_programs.py"
PROGRAM = ROOT / "tests" / "programs" / "ladder.py"
GOLDEN = json.loads((ROOT / "tests" / "goldens" / "ladder.json").read_text())


# The programs that are compared: each with all stages up to one.
LADDER = {
    "stage 2": (2, SafetyTier.SAFE),
    "stage 3": (3, SafetyTier.SAFE),
    "stage 4, with what needs a review": (4, SafetyTier.REVIEW),
    "stage 5": (5, SafetyTier.SAFE),
    "stage 8": (8, SafetyTier.SAFE),
    "stage 7, with what needs a review": (7, SafetyTier.REVIEW),
}


def migrated(folder, stage, tier):
    """The program after all stages up to this one, and the codemods that changed it."""
    folder.mkdir()
    path = folder / "program.py"
    path.write_text(PROGRAM.read_text())
    chosen = [codemod for codemod in codemods().values() if codemod.stage <= stage]
    plan = make_plan([str(path)], chosen, tier=tier)
    assert not plan.problems
    for planned in plan.changed:
        path.write_text(planned.migrated.text)
    return path, {name for name, _ in plan.counts}


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """(path, codemods that changed it) of each program."""
    folder = tmp_path_factory.mktemp("ladder")
    return {
        name: migrated(folder / f"{number}", *case)
        for number, (name, case) in enumerate(LADDER.items())
    }


@pytest.fixture(scope="module")
def results(programs):
    """The output of each program; and of the last one again, beside the checkpoint of the first."""
    names = [*LADDER, "stage 7 on the checkpoint of stage 2"]
    paths = [path for path, _ in programs.values()]
    runs = [(path, path.parent / "model") for path in paths]
    runs.append((paths[-1], paths[0].parent / "model"))
    result = subprocess.run(
        [fresh.python(), str(RUN), *(f"{path}={model}" for path, model in runs)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    lines = [line for line in result.stdout.splitlines() if line.startswith("{")]
    return dict(zip(names, map(json.loads, lines), strict=True))


def assert_equal_results(found):
    np.testing.assert_allclose(found["probabilities"], GOLDEN["probabilities"], atol=1e-5)
    assert found["metrics"].keys() == GOLDEN["metrics"].keys()
    for name, value in GOLDEN["metrics"].items():
        assert found["metrics"][name] == pytest.approx(value, abs=1e-5), name


@pytest.mark.slow
@pytest.mark.parametrize("name", LADDER)
def test_migrated_program_gives_the_numbers_of_tensorflow_1(name, results):
    np.testing.assert_allclose(results[name]["losses"], GOLDEN["losses"], rtol=0, atol=1e-5)
    assert_equal_results(results[name])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name, (_, tier) in LADDER.items() if tier is SafetyTier.SAFE]
)
def test_safe_stages_keep_all_names_in_checkpoints(name, results):
    assert results[name]["variables"] == GOLDEN["variables"]


@pytest.mark.slow
def test_keras_layers_and_metrics_load_the_old_checkpoint(results):
    found = results["stage 7 on the checkpoint of stage 2"]
    assert found["losses"] == []  # it is trained already
    assert_equal_results(found)


def test_every_codemod_of_these_stages_has_something_to_do(programs):
    for (stage, tier), (_, applied) in zip(LADDER.values(), programs.values(), strict=True):
        due = {r.name for r in codemods().values() if r.stage <= stage and r.tier <= tier}
        # A hook that fetches tensors keeps the Estimator; test_estimator_to_fit.py has one without.
        # Rows that are looked up: test_replacements.py has programs that do. A host_call: so has
        # tests/ladder.
        elsewhere = {"estimator-to-fit", "keras-3-lookups", "host-call-to-summaries"}
        assert due - elsewhere <= applied
