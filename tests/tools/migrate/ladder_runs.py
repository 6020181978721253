"""Programs at the stages of the ladder: taken there by the codemods, run, and what they wrote.

folders = at_stages(programs, tmp_path)
found = run(folders[5] / "train.py", ["--use_tpu=True"], cores=8, model_dir=model_dir, by_e2s=False)
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from estimator2strategy.tools.migrate.codemod import SafetyTier, codemods
from estimator2strategy.tools.migrate.preview import make_plan
from tests import fresh

ROOT = Path(__file__).resolve().parents[3]
LOSSES_OF = ("loss", "judge", "maker")  # tags, the last two of the GAN's host_call


@dataclasses.dataclass(frozen=True)
class Ran:
    """What a program wrote into event files, and on its output.

    Attributes:
        losses: By folder and tag, the values step by step.
        evaluations: By folder and tag, the values step by step.
        tags: By folder below model_dir, all tags.
        output: Its standard output.
    """

    losses: dict[tuple[str, str], list[float]]
    evaluations: dict[tuple[str, str], list[float]]
    tags: dict[str, set[str]]
    output: str


def at_stages(programs: Mapping[str, str], folder: Path, *, last: int = 8) -> dict[int, Path]:
    """Writes the files of a program after each stage, from those of the stage before.

    Args:
        programs: Name -> text of the files.
        folder: Where each stage gets a folder of its own.
        last: The last stage.

    Returns:
        Stage -> its folder, of the stages that change something. Stage 1 is the program as it was.
    """
    written = {1: folder / "stage_1"}
    for name, text in programs.items():
        (written[1] / name).parent.mkdir(parents=True, exist_ok=True)
        (written[1] / name).write_text(text)
    before = written[1]
    for stage in range(2, last + 1):
        after = shutil.copytree(before, folder / f"stage_{stage}")
        chosen = [codemod for codemod in codemods().values() if codemod.stage == stage]
        plan = make_plan([str(after)], chosen, tier=SafetyTier.REVIEW)
        assert not plan.problems, plan.problems
        for planned in plan.changed:
            planned.file.path.write_text(planned.migrated.text)
        if plan.counts:
            written[stage] = after
        before = after
    return written


def run(program: Path, flags: Sequence[str], *, cores: int, model_dir: Path, by_e2s: bool) -> Ran:
    """Runs a program by itself, or by `e2s run` as one must before stage 2.

    Args:
        program: The file.
        flags: Its flags.
        cores: The emulated cores; with 1 there are none.
        model_dir: Where its event files are afterwards.
        by_e2s: Whether `e2s run` runs it.
    """
    command = [fresh.python(), *(["-m", "estimator2strategy", "run"] if by_e2s else [])]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "CUDA_VISIBLE_DEVICES": "-1",
    }
    if cores > 1:
        environment["E2S_EMULATE_TPU_CORES"] = str(cores)
    done = subprocess.run(
        [*command, str(program), *flags],
        env=environment,
        cwd=program.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,  # of one that hangs
    )
    assert done.returncode == 0, done.stderr[-3000:]
    losses, evaluations, tags = {}, {}, {}
    for path in sorted({events.parent for events in model_dir.rglob("events*")}):
        folder = str(path.relative_to(model_dir))
        found = summaries(path)
        tags[folder] = set(found)
        kept = evaluations if path.name.startswith("eval") else losses
        for tag, by_step in found.items():
            if kept is evaluations or tag in LOSSES_OF:
                kept[folder, tag] = [by_step[step] for step in sorted(by_step)]
    return Ran(losses, evaluations, tags, done.stdout)


def summaries(folder: Path) -> dict[str, dict[int, float]]:
    """Tag -> step -> value, of the event files in a folder."""
    found: dict[str, dict[int, float]] = {}
    for path in sorted(folder.glob("events*")):
        for event in tf.compat.v1.train.summary_iterator(str(path)):
            for value in event.summary.value:
                if value.HasField("tensor"):
                    number = tf.make_ndarray(value.tensor)
                    if number.dtype == np.float32 and number.ndim == 0:
                        found.setdefault(value.tag, {})[event.step] = float(number)
                elif value.HasField("simple_value"):
                    found.setdefault(value.tag, {})[event.step] = value.simple_value
    return found


def assert_same_training(found: Ran, expected: Ran, *, steps: int) -> None:
    """The losses of so many steps to 1e-5, and what was evaluated to 1e-6."""
    assert any(len(values) == steps for values in expected.losses.values())
    assert found.losses.keys() == expected.losses.keys()
    for name, values in expected.losses.items():
        np.testing.assert_allclose(found.losses[name], values, rtol=0, atol=1e-5, err_msg=str(name))
    assert found.evaluations.keys() == expected.evaluations.keys()
    for name, values in expected.evaluations.items():
        np.testing.assert_allclose(
            found.evaluations[name], values, rtol=0, atol=1e-6, err_msg=str(name)
        )
