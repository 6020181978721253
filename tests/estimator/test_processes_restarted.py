"""Processes that train in step: one is killed or preempted, and all are started again."""

from __future__ import annotations

import signal
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from tests.estimator import workers_program
from tests.estimator.test_processes_in_step import run

pytestmark = pytest.mark.slow

# Its arguments: a folder, and which process gets which signal after which step.
PROGRAM = """
import json, os, sys
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
from tests.estimator import workers_program

folder, job, number, step = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
mine = json.loads(os.environ["TF_CONFIG"])["task"]["type"]

class Signal(tf.compat.v1.train.SessionRunHook):
    def after_run(self, run_context, run_values):
        global_step = run_context.session.run(tf.compat.v1.train.get_global_step())
        if mine == job and global_step == step:
            os.kill(os.getpid(), number)

told = workers_program.TellsLosses(f"{folder}.{mine}")
workers_program.train(folder, strategy, save_every=2, hooks=[told, Signal()])
"""

NOBODY = ("nobody", 0, 0)


class Ended(NamedTuple):
    """How both processes of one start ended, and the latest checkpoint then."""

    chief: int
    worker: int
    chief_said: str
    worker_said: str
    latest: str


@pytest.fixture(scope="module")
def losses(tmp_path_factory):
    """Step -> loss of a training in one process that nothing interrupts."""
    folder = tmp_path_factory.mktemp("alone")
    told = workers_program.TellsLosses(f"{folder}/losses")
    workers_program.train(str(folder / "model"), hooks=[told])
    return told.read()


@pytest.fixture(scope="module")
def starts(tmp_path_factory):
    """The folder, and what came of starting the processes again and again until they were done."""
    folder = tmp_path_factory.mktemp("together") / "model"
    endings = [
        ("worker", signal.SIGKILL.value, 3),
        ("chief", signal.SIGKILL.value, 5),
        ("chief", signal.SIGTERM.value, 7),
        NOBODY,
    ]
    ended = []
    for ending in endings:
        (chief, _, chief_said), (worker, _, worker_said) = run(PROGRAM, 2, folder, *ending)
        latest = tf.train.latest_checkpoint(str(folder)).rpartition("/")[2]
        ended.append(Ended(chief, worker, chief_said, worker_said, latest))
    return folder, ended


def test_where_a_worker_is_killed_the_chief_ends_and_says_so(starts):
    _, (ended, *_) = starts
    assert ended.worker == -signal.SIGKILL
    assert ended.chief != 0
    assert "worker 0 (localhost:" in ended.chief_said
    assert ended.latest == "model.ckpt-2"


def test_where_the_chief_is_killed_the_worker_ends(starts):
    _, (_, ended, *_) = starts
    assert ended.chief == -signal.SIGKILL
    assert ended.worker != 0
    assert ended.latest == "model.ckpt-4"


def test_a_preempted_chief_saves_and_the_worker_ends(starts):
    _, (_, _, ended, _) = starts
    assert ended.chief == 128 + signal.SIGTERM, ended.chief_said
    assert ended.worker != 0
    assert ended.latest == "model.ckpt-7"


def test_started_again_they_train_as_if_nothing_had_happened(starts, losses):
    folder, (*_, ended) = starts
    assert ended.chief == ended.worker == 0, ended.chief_said + ended.worker_said
    assert ended.latest == "model.ckpt-8"
    for job in ("chief", "worker"):
        told = workers_program.TellsLosses(f"{folder}.{job}").read()
        assert sorted(told) == sorted(losses)
        np.testing.assert_allclose(
            [told[step] for step in sorted(losses)],
            [losses[step] for step in sorted(losses)],
            rtol=1e-5,
        )
