"""Programs of TF 1.15 as the tasks of a cluster with parameter servers."""

from __future__ import annotations

import json
import socket
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests import fresh
from tests.engine.parameter_servers.jobs import PROGRAM, ROOT, Job

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> list[dict]:
    """What the program says without a cluster."""
    folder = str(tmp_path_factory.mktemp("alone") / "model")
    command = [fresh.python(), "-m", "estimator2strategy", "run", str(PROGRAM), folder, "--after"]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    return [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]


def of(said: list[dict], key: str) -> list:
    """The values of a key in all lines that have it."""
    return [line[key] for line in said if key in line]


class TestOneTrainer:
    @pytest.fixture(scope="class")
    @classmethod
    def job(cls, tmp_path_factory):
        with Job(tmp_path_factory.mktemp("job"), chief=1, ps=2) as job:
            job.start("ps 0", "ps 1", "chief", flags=("--after",))
            job.ended("chief")
            yield job

    def test_trains_as_a_process_by_itself(self, job, alone):
        losses = of(alone, "loss")
        assert len(losses) == 20
        np.testing.assert_allclose(job.losses("chief"), losses, rtol=1e-6)

    def test_evaluates_and_predicts_as_a_process_by_itself(self, job, alone):
        said = job.said("chief")
        np.testing.assert_allclose(of(said, "mae"), of(alone, "mae"), rtol=1e-6)
        (found,), (expected,) = of(said, "predictions"), of(alone, "predictions")
        assert len(found) == 64
        np.testing.assert_allclose(found, expected, rtol=1e-5)

    def test_variables_and_slots_are_reference_variables_of_the_servers_in_turn(self, job):
        (devices,) = of(job.said("chief"), "devices")
        assert {kind for _, kind in devices.values()} == {"VariableV2"}
        where = {name: device[-1] for name, (device, _) in devices.items()}
        assert where == {
            "global_step": "0",
            "table/part_0": "1",
            "table/part_1": "0",
            "output/kernel": "1",
            "output/bias": "0",
            "table/part_0/Adagrad": "1",
            "table/part_1/Adagrad": "0",
            "output/kernel/Adagrad": "1",
            "output/bias/Adagrad": "0",
        }

    def test_a_checkpoint_has_a_file_of_each_server_and_whole_variables(self, job):
        files = tf.io.gfile.glob(f"{job.model_dir}/model.ckpt-20.data-*")
        assert [Path(file).name[-5:] for file in sorted(files)] == ["00002", "00002"]
        shapes = dict(tf.train.list_variables(job.model_dir))
        assert shapes["table"] == shapes["table/Adagrad"] == [1000, 8]

    def test_one_process_goes_on_from_it(self, job):
        command = [fresh.python(), "-m", "estimator2strategy", "run", str(PROGRAM), job.model_dir]
        ran = subprocess.run(
            [*command, "--steps=22"], capture_output=True, text=True, cwd=ROOT, check=True
        )
        lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
        losses = [line["loss"] for line in lines if "loss" in line]
        assert len(losses) == 2
        assert max(losses) < job.losses("chief")[0]


class TestSeveralWorkers:
    def test_train_together_and_an_evaluator_sees_the_last_step(self, tmp_path):
        workers = ("chief", "worker 0", "worker 1")
        with Job(tmp_path, chief=1, worker=2, ps=1) as job:
            flags = ("--steps=300", "--slow=0.1")
            job.start("ps", "chief", "evaluator", flags=flags)
            job.wait_for_step("chief", 1)  # a worker looks every 30 s if the chief is ready
            job.start("worker 0", "worker 1", flags=flags)
            job.ended(*workers, "evaluator")
            seen = [{line["step"] for line in job.said(name) if "step" in line} for name in workers]
            assert all(len(steps) > 5 for steps in seen)
            assert 300 <= max(set.union(*seen)) < 305
            # Their updates interleave: no worker has seen all steps.
            assert all(len(steps) < 300 for steps in seen)
            log = job.text("evaluator")
            assert "Saving dict for global step 30" in log

    def test_synchronous_updates_wait_for_a_gradient_of_each(self, tmp_path):
        with Job(tmp_path, chief=1, worker=1, ps=1) as job:
            # Who comes last waits for ever, as in the original, because the other one has ended.
            job.start("ps", "chief", "worker 0", flags=("--steps=1000", "--sync=2"))
            job.wait_for_step("chief", 40)
            chief, worker = job.said("chief"), job.said("worker 0")
            steps = [line["step"] for line in (*chief, *worker) if "step" in line]
            counts = np.bincount([step for step in steps if 5 < step < 35])[6:]
            # The step is read beside its update, so a line may name the step before.
            assert abs(counts.sum() - 2 * len(counts)) <= 2

    def test_queues_feed_the_session(self, tmp_path):
        with Job(tmp_path, chief=1, ps=1) as job:
            job.start("ps", "chief", flags=("--queue",))
            job.ended("chief")
            assert len(job.losses("chief")) == 20


class TestFailures:
    FLAGS = ("--steps=100000", "--slow=0.05")

    @pytest.fixture
    def job(self, tmp_path):
        with Job(tmp_path, chief=1, worker=1, ps=1) as job:
            job.start("ps", "chief", flags=self.FLAGS)
            job.wait_for_step("chief", 1)
            job.start("worker 0", flags=self.FLAGS)
            job.wait_for_step("worker 0", 1)
            job.wait_for_step("chief", 30)
            yield job

    def test_a_worker_that_was_killed_is_started_again_and_goes_on(self, job):
        job.kill("worker 0")
        step = job.step("worker 0")
        job.start("worker 0", flags=self.FLAGS)
        job.wait_for_step("worker 0", step + 30)
        job.wait_for_step("chief", step + 30)

    def test_a_chief_that_was_killed_restores_the_last_checkpoint(self, job):
        job.kill("chief")
        saved = int(tf.train.latest_checkpoint(job.model_dir).rpartition("-")[2])
        before = len(job.said("chief"))
        job.start("chief", flags=self.FLAGS)
        job.wait_for(lambda: any("step" in line for line in job.said("chief")[before:]))
        assert f"Restoring parameters from {job.model_dir}/model.ckpt-{saved}" in job.text("chief")
        job.wait_for_step("worker 0", job.step("chief") + 10)

    def test_an_evaluator_that_was_killed_is_started_again_and_nothing_is_lost(self, job):
        def evaluated():
            # The summaries of both its lives.
            paths = tf.io.gfile.glob(f"{job.model_dir}/eval/*tfevents*")
            events = (
                event for path in paths for event in tf.compat.v1.train.summary_iterator(path)
            )
            return {event.step for event in events if event.summary.value}

        job.start("evaluator", flags=self.FLAGS)
        job.wait_for(evaluated)
        job.kill("evaluator")
        before, step = evaluated(), job.step("chief")
        job.wait_for_step("chief", step + 20)
        job.start("evaluator", flags=self.FLAGS)
        job.wait_for(lambda: evaluated() - before)
        assert before < evaluated()
        assert min(evaluated() - before) > max(before)
        job.wait_for_step("worker 0", job.step("chief"))

    def test_a_worker_that_is_stopped_stops_nobody(self, job):
        job.stop("worker 0")
        job.wait_for_step("chief", job.step("worker 0") + 100)

    def test_a_server_that_was_killed_is_named_and_all_go_on_when_started_again(self, job):
        job.kill("ps")
        for name in ("chief", "worker 0"):
            assert job.code(name) == 1
            ended = f"ps 0 ({job.cluster['ps'][0]}) has ended in the middle of training"
            assert ended in job.text(name)
        saved = int(tf.train.latest_checkpoint(job.model_dir).rpartition("-")[2])
        before = len(job.said("chief"))
        job.start("ps", "chief", "worker 0", flags=(f"--steps={saved + 20}",))
        job.ended("chief", "worker 0")
        steps = [line["step"] for line in job.said("chief")[before:] if "step" in line]
        assert min(steps) >= saved

    def test_a_server_that_is_started_again_in_time_gets_the_last_checkpoint(self, job):
        job.kill("ps")
        saved = int(tf.train.latest_checkpoint(job.model_dir).rpartition("-")[2])
        before = len(job.said("chief"))
        job.start("ps")
        job.wait_for(lambda: any("step" in line for line in job.said("chief")[before + 20 :]))
        steps = [line["step"] for line in job.said("chief")[before:] if "step" in line]
        assert saved <= min(steps)


class TestOtherPrograms:
    @pytest.fixture(scope="class")
    @classmethod
    def job(cls, tmp_path_factory):
        flags = ("--steps=100000", "--slow=0.05")
        with Job(tmp_path_factory.mktemp("job"), chief=1, worker=2, ps=1) as job:
            job.start("ps", "chief", flags=flags)
            job.start("worker 0", flags=(*flags, "--width=4"))
            job.start("worker 1", flags=(*flags, "--rate=0.5"))
            yield job

    def test_a_worker_with_other_variables_ends_and_names_them(self, job):
        assert job.code("worker 0") == 1
        said = "worker 0 has variable table/part_0: float32 (500, 4), the chief has float32 (500, 8"
        assert said in job.text("worker 0")

    def test_another_flag_is_logged_and_all_go_on(self, job):
        job.wait_for_step("worker 1", 1)
        said = "only it has Const 'Adagrad/learning_rate' = 0.5"
        assert said in job.text("worker 1")
        job.wait_for_step("chief", job.step("worker 1") + 10)


class TestNeverStarts:
    def test_a_server_that_does_not_come_is_named(self, tmp_path):
        with Job(tmp_path, chief=1, worker=1, ps=1) as job:
            job.start("chief", flags=("--patience=3",))
            assert job.code("chief") != 0
            address = job.cluster["ps"][0]
            assert f"ps 0 ({address}) of TF_CONFIG's cluster did not" in job.text("chief")

    def test_a_port_that_somebody_has_is_named(self, tmp_path):
        with Job(tmp_path, chief=1, ps=1) as job:
            job.start("ps")
            port = int(job.cluster["chief"][0].rpartition(":")[2])
            with socket.create_server(("localhost", port)):
                job.start("chief")
                assert job.code("chief") != 0
            log = job.text("chief")
            assert f"gives chief 0 the address localhost:{port}, and somebody listens" in log
