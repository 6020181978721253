"""What a program says itself about its servers, exporters and listeners; all ways to start it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.engine.parameter_servers.jobs import ROOT, Job

pytestmark = pytest.mark.slow

PLACED = ROOT / "tests" / "programs" / "placed_job.py"


class Placed(Job):
    """A job of placed_job.py."""

    def command(self, flags):
        return ["-m", "estimator2strategy", "run", str(PLACED), self.model_dir, *flags]


class Imported(Job):
    """The same with another import, and without `e2s run`."""

    def command(self, flags):
        program = self.folder / "placed_job.py"
        old, new = "import tensorflow as tf", "import estimator2strategy.tf1 as tf"
        program.write_text(PLACED.read_text().replace(old, new))
        return [str(program), self.model_dir, *flags]


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    with Placed(tmp_path_factory.mktemp("placed"), chief=1, ps=2) as job:
        job.start("ps 0", "ps 1", "chief", "evaluator")
        job.ended("chief", "evaluator")
        yield job


def servers(job: Job) -> dict[str, str]:
    (found,) = [line["servers"] for line in job.said("chief") if "servers" in line]
    return found


def test_a_greedy_strategy_balances_the_bytes_of_the_servers(job):
    assert servers(job) == {
        "global_step": "0",  # 8 bytes
        "wide/kernel": "1",  # 800
        "wide/bias": "0",  # 200
        "narrow/kernel": "0",  # 400
        "narrow/bias": "0",
        "out/kernel": "0",
        "out/bias": "0",
    }


def test_saving_listeners_of_the_chief_are_called(job):
    assert [line["saved"] for line in job.said("chief") if "saved" in line] == [0, 5, 10]


def test_the_evaluator_exports(job):
    exported = tf.io.gfile.glob(f"{job.model_dir}/export/latest/*")
    assert exported
    model = tf.saved_model.load(exported[-1])
    batch = np.ones([3, 4], np.float32)
    (predictions,) = model.signatures["serving_default"](tf.constant(batch)).values()
    assert predictions.shape == [3]


@pytest.mark.parametrize(
    ("kind", "flags"),
    [(Imported, ()), (Placed, ("--train",)), (Placed, ("--strategy",))],
    ids=["changed import", "Estimator.train", "strategy"],
)
def test_trains_the_same(kind, flags, job, tmp_path: Path):
    with kind(tmp_path, chief=1, ps=2) as other:
        other.start("ps 0", "ps 1", "chief", flags=flags)
        other.ended("chief")
        assert len(other.losses("chief")) == 10
        np.testing.assert_allclose(other.losses("chief"), job.losses("chief"), rtol=1e-6)
        # Without a device_fn the servers take turns.
        in_turn = list(servers(other).values()) == ["0", "1", "0", "1", "0", "1", "0"]
        assert in_turn == ("--strategy" in flags)
