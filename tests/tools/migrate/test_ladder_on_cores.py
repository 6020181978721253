"""After each stage a program trains what it trained before: on one device, and on TPU cores."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.tools.migrate.ladder_runs import ROOT, Ran, assert_same_training, at_stage, run

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


def ran(text: str, stage: int, folder: Path, *, cores: int, steps: int) -> Ran | None:
    """The program after a stage; None if the stage leaves it as it was."""
    written, changed = at_stage(stage, {"program.py": text}, folder)
    if not changed:
        return None
    model_dir = written / "model"
    flags = [f"--model_dir={model_dir}", f"--train_steps={steps}", f"--use_tpu={cores > 1}"]
    return run(written / "program.py", flags, cores=cores, model_dir=model_dir, by_e2s=stage == 1)


def assert_same(found: Ran, expected: Ran, *, steps: int) -> None:
    assert_same_training(found, expected, steps=steps)
    printed = [
        json.loads(next(line for line in one.output.splitlines() if line.startswith("{")))
        for one in (found, expected)
    ]
    assert printed[0]["evaluation"] == pytest.approx(printed[1]["evaluation"], abs=1e-6)
    after, before = (one["predictions"] for one in printed)
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-5)


@pytest.mark.parametrize("stage", [5, 7])
def test_cores_train_together_after_a_stage_as_before(stage, tmp_path):
    before, after = (ran(PROGRAM, n, tmp_path, cores=2, steps=6) for n in (1, stage))
    assert before is not None
    assert after is not None
    assert_same(after, before, steps=6)
    assert after.tags == before.tags


@pytest.mark.slow
@pytest.mark.parametrize("cores", [1, 8])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_each_stage_trains_what_the_program_trained(optimizer, cores, tmp_path):
    text = PROGRAM.replace(_MINIMIZED, OPTIMIZERS[optimizer])
    before = ran(text, 1, tmp_path, cores=cores, steps=50)
    assert before is not None
    # Of those that optimize otherwise, the stages that have to do with it.
    for stage in range(2, 9) if optimizer == "minimize" else (5, 7):
        after = ran(text, stage, tmp_path, cores=cores, steps=50)
        if after is not None:
            assert_same(after, before, steps=50)
