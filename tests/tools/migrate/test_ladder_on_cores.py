"""After each stage a program trains what it trained before: on one device, and on TPU cores."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.tools.migrate.ladder_runs import ROOT, Ran, assert_same_training, at_stages, run

PROGRAM = (ROOT / "tests" / "programs" / "ladder_on_cores.py").read_text()
_MINIMIZED = PROGRAM[
    PROGRAM.index("    # The optimizer,") : PROGRAM.index(
        "    return tf.contrib.tpu.TPUEstimatorSpec(mode, loss=loss, train_op"
    )
]

# How programs optimize, each with its sum over the cores.
OPTIMIZERS = {
    "minimize": _MINIMIZED,
    "clipped": """\
    optimizer = tf.contrib.tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.05))
    pairs = optimizer.compute_gradients(loss + 0.1)
    gradients, _ = tf.clip_by_global_norm([gradient for gradient, _ in pairs], 0.02)
    pairs = list(zip(gradients, [variable for _, variable in pairs]))
    train_op = optimizer.apply_gradients(pairs, global_step=step)
    train_op = tf.group(train_op, *tf.get_collection(tf.GraphKeys.UPDATE_OPS))
""",
    "summed": """\
    # The loss is a replica's part of the whole.
    optimizer = tf.train.AdagradOptimizer(0.02)
    if params["use_tpu"]:
        loss = loss / 8.0
        optimizer = tf.contrib.tpu.CrossShardOptimizer(
            optimizer, reduction=tf.losses.Reduction.SUM)
    update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    train_op = tf.group(optimizer.minimize(loss, step), *update_ops)
""",
    "left": """\
    optimizer = tf.contrib.tpu.CrossShardOptimizer(tf.train.RMSPropOptimizer(0.005))
    update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    train_op = tf.group(optimizer.minimize(loss, step), *update_ops)
""",
}  # fmt: skip


@pytest.fixture(scope="module")
def migrated(tmp_path_factory) -> Callable[[str], dict[int, Path]]:
    """The folders of the program, with one of OPTIMIZERS, after each stage that changes it."""

    @functools.cache
    def folders(optimizer: str) -> dict[int, Path]:
        text = PROGRAM.replace(_MINIMIZED, OPTIMIZERS[optimizer])
        return at_stages({"program.py": text}, tmp_path_factory.mktemp("stages"), last=7)

    return folders


def ran(folder: Path, model_dir: Path, *, cores: int, steps: int) -> Ran:
    """The program of a stage's folder."""
    flags = [f"--model_dir={model_dir}", f"--train_steps={steps}", f"--use_tpu={cores > 1}"]
    by_e2s = folder.name == "stage_1"
    return run(folder / "program.py", flags, cores=cores, model_dir=model_dir, by_e2s=by_e2s)


def assert_same(found: Ran, expected: Ran, *, steps: int) -> None:
    assert_same_training(found, expected, steps=steps)
    printed = [
        json.loads(next(line for line in one.output.splitlines() if line.startswith("{")))
        for one in (found, expected)
    ]
    assert printed[0]["evaluation"] == pytest.approx(printed[1]["evaluation"], abs=1e-6)
    after, before = (one["predictions"] for one in printed)
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-5)


@pytest.fixture(scope="module")
def before(migrated, tmp_path_factory) -> Ran:
    """The program as it was, six steps on two cores."""
    return ran(migrated("minimize")[1], tmp_path_factory.mktemp("before"), cores=2, steps=6)


@pytest.mark.parametrize("stage", [5, 7])
def test_cores_train_together_after_a_stage_as_before(stage, before, migrated, tmp_path):
    after = ran(migrated("minimize")[stage], tmp_path, cores=2, steps=6)
    assert_same(after, before, steps=6)
    assert after.tags == before.tags


def test_a_prediction_on_cores_can_be_left_before_its_end(migrated, tmp_path):
    left = "[next(estimator.predict(predict_input_fn))['probabilities']]"
    (tmp_path / "left").mkdir()
    text = (migrated("minimize")[7] / "program.py").read_text()
    text = re.sub(r"\[found\[.probabilities.\] for found in .*\]", left, text)
    assert left in text
    (tmp_path / "left" / "program.py").write_text(text)
    found = ran(tmp_path / "left", tmp_path / "model", cores=8, steps=1)
    assert len(json.loads(found.output.splitlines()[-1])["predictions"]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("cores", [1, 8])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_cores_train_as_before_however_the_program_optimizes(optimizer, cores, migrated, tmp_path):
    folders = migrated(optimizer)
    before = ran(folders[1], tmp_path / "before", cores=cores, steps=50)
    for stage in (5, 7):  # of the optimizer and of the loop; test_ladder_on_examples has the others
        after = ran(folders[stage], tmp_path / f"after_{stage}", cores=cores, steps=50)
        assert_same(after, before, steps=50)
        assert after.tags == before.tags
