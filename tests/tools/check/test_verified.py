"""`e2s check --golden DIR`: what an older TensorFlow recorded, replayed as a level of the check."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from checked_programs import e2s

TESTS = Path(__file__).parents[2]
GOLDEN = str(TESTS / "goldens" / "parity_tf115")


@pytest.fixture
def folder(tmp_path):
    shutil.copy(TESTS / "programs" / "verified.py", tmp_path)
    return tmp_path


def report_of(folder, *arguments):
    options = ("--levels", "verified", "--cores", "1", "--format", "json=out.json")
    done = e2s("check", "--golden", GOLDEN, *options, *arguments, folder=folder)
    report = json.loads((folder / "out.json").read_text())
    (level,) = report["levels"]
    return done, report, level


def test_program_that_is_still_the_same_model_passes_tier_by_tier(folder):
    page = ("--format", "html=out.html")
    done, report, level = report_of(folder, *page, "--program", "verified.py")
    assert done.returncode == 0, done.stderr
    assert [f["rule"] for f in report["findings"] if f["evidence"] == "VERIFIED"] == []
    assert {v["question"].partition(":")[0]: v["outcome"] for v in level["verdicts"]} == (
        dict.fromkeys(
            ("contract", "forward", "one step", "N steps", "evaluation", "export"), "passed"
        )
    )
    assert any(why.startswith("replicas: ") for why in level["not_checked"])
    shown = (folder / "out.html").read_text()
    assert "the same model: TensorFlow 1.15.5 (golden)" in shown
    assert "<figcaption>loss of each step</figcaption>\n<svg" in shown


def test_model_with_swapped_betas_is_an_error_at_its_line(folder):
    done, report, level = report_of(
        folder,
        "verified.py:model_fn",
        *("--input", "train=verified.py:input_fn", "--input", "eval=verified.py:eval_input_fn"),
        *("--params", "learning_rate=0.05,mutation=swapped betas,use_tpu=False"),
        *("--batch-size", "16"),
    )
    assert done.returncode == 1, done.stderr
    (found,) = (f for f in report["findings"] if f["evidence"] == "VERIFIED")
    written = (folder / "verified.py").read_text().splitlines()
    assert (found["rule"], found["path"]) == ("E2S626", "verified.py")
    assert written[found["line"] - 1].startswith("def model_fn(")
    assert "one step, updates of variables and slots: first at step 1" in found["message"]
    assert "other betas, or another momentum?" in found["message"]
    outcomes = {v["question"].partition(":")[0]: v["outcome"] for v in level["verdicts"]}
    assert (outcomes["forward"], outcomes["one step"]) == ("passed", "failed")


def test_folder_that_is_no_golden_is_named(folder):
    arguments = ("--golden", "nowhere", "--levels", "verified", "--program", "verified.py")
    done = e2s("check", *arguments, folder=folder)
    assert done.returncode == 2
    assert "there is no folder nowhere" in done.stderr
