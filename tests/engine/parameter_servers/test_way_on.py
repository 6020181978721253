"""From a job with parameter servers to TensorFlow 2's own, by the program of the guide's page."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests import fresh
from tests.engine.parameter_servers.jobs import PROGRAM, ROOT, Job
from tests.test_docs import BLOCK

pytestmark = pytest.mark.slow

PAGE = ROOT / "migration_guide" / "servers.md"
STEPS = 20, 25  # at which the old job ends, and the new one

REFUSED = """
import tensorflow as tf
import estimator2strategy as e2s

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
with tf.distribute.ParameterServerStrategy(resolver).scope():
    for make in e2s.LegacyModel, e2s.adapt:
        try:
            make(lambda features, labels, mode: None, lambda: None)
        except ValueError as error:
            print(type(error).__name__, error)
"""


@pytest.fixture(scope="module")
def old(tmp_path_factory) -> str:
    """The model_dir of a job of the Estimator, over two servers: its table has two parts."""
    with Job(tmp_path_factory.mktemp("old"), chief=1, ps=2) as job:
        job.start("ps 0", "ps 1", "chief")
        job.ended("chief")
        return job.model_dir


@pytest.fixture(scope="module")
def stayed(old, tmp_path_factory) -> tuple[list[float], str]:
    """Losses and model_dir of an Estimator that goes on, in one process."""
    folder = str(tmp_path_factory.mktemp("stayed") / "model")
    shutil.copytree(old, folder)
    return estimator_losses(folder, STEPS[1]), folder


class Moved(Job):
    """A job of TensorFlow 2's own: all tasks run one program."""

    program: Path

    def command(self, flags):
        return [str(self.program), *flags]


@pytest.fixture(scope="module")
def moved(old, tmp_path_factory):
    folder = tmp_path_factory.mktemp("moved")
    (page,) = [block["code"] for block in BLOCK.finditer(PAGE.read_text())]
    with Moved(folder, chief=1, worker=1, ps=2) as job:
        job.program = folder / "coordinator.py"
        job.program.write_text(page)
        Path(job.model_dir).mkdir()
        flags = (old, job.model_dir, str(STEPS[1] - STEPS[0]))
        job.start("ps 0", "ps 1", "worker 0", "chief", flags=flags)
        job.ended("chief")
        (losses,) = [line for line in job.text("chief").splitlines() if line.startswith("[")]
        yield job, json.loads(losses)


def estimator_losses(folder: str, steps: int) -> list[float]:
    command = [fresh.python(), "-m", "estimator2strategy", "run", str(PROGRAM), folder]
    ran = subprocess.run(
        [*command, f"--steps={steps}"], capture_output=True, text=True, cwd=ROOT, check=True
    )
    lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    return [line["loss"] for line in lines if "loss" in line]


def test_one_worker_has_the_losses_of_the_estimator(moved, stayed):
    assert len(stayed[0]) == STEPS[1] - STEPS[0]
    np.testing.assert_allclose(moved[1], stayed[0], rtol=1e-5)


def test_the_table_and_its_slots_come_back_in_the_old_order(moved, stayed):
    new, estimators = (
        tf.train.load_checkpoint(folder) for folder in (moved[0].model_dir, stayed[1])
    )
    assert new.get_variable_to_shape_map() == estimators.get_variable_to_shape_map()
    for name in new.get_variable_to_shape_map():
        np.testing.assert_allclose(
            new.get_tensor(name), estimators.get_tensor(name), rtol=1e-5, atol=1e-6, err_msg=name
        )


def test_the_estimator_goes_on_from_what_was_trained_there(moved, stayed):
    went_on = [
        estimator_losses(shutil.copytree(folder, f"{folder}_{name}"), STEPS[1] + 3)
        for name, folder in (("a", moved[0].model_dir), ("b", stayed[1]))
    ]
    assert len(went_on[0]) == 3
    np.testing.assert_allclose(*went_on, rtol=1e-5)


def test_a_legacy_model_is_refused_there(moved):
    job, _ = moved
    config = {"cluster": job.cluster, "task": {"type": "chief", "index": 0}}
    environment = {**os.environ, "TF_CONFIG": json.dumps(config), "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [fresh.python(), "-c", REFUSED], env=environment, capture_output=True, text=True, check=True
    )
    said = [line for line in ran.stdout.splitlines() if line.startswith("UnsupportedError")]
    assert ["LegacyModel" in line for line in said] == [True, False]
