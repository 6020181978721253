"""Several processes, each a host with some of JAX's devices, run one TPUEstimator program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from estimator2strategy import errors, estimator
from estimator2strategy.engine.runtime.jax_devices import JaxReplicas
from estimator2strategy.estimator.tpu_context import Deployment
from tests import addresses, fresh
from tests.programs import on_hosts

pytest.importorskip("jax", minversion="0.10")
tf1 = tf.compat.v1
ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "tests/programs/on_hosts.py"
STEPS, LIMIT = 12, 200


class Ended:
    """A process that has ended.

    Attributes:
        code: Its exit status.
        said: What it wrote to stderr.
        seen: What it has seen, if it came to its end.
        losses: Step -> the loss of an execution that ended there.
    """

    def __init__(self, process: subprocess.Popen, output: Path):
        _, self.said = process.communicate(timeout=LIMIT)
        self.code = process.returncode
        self.seen = json.loads(output.read_text()) if output.exists() else None
        lines = map(str.split, Path(f"{output}.losses").read_text().splitlines())
        self.losses = {int(step): float(loss) for step, loss in lines}


def run(folder, environments, *options):
    """Runs the program with these variables in each process, and `options` of each."""
    processes = []
    for number, (more, own) in enumerate(zip(environments, options, strict=True)):
        output = Path(f"{folder}.{number}.json")
        for file in (output, Path(f"{output}.losses")):
            file.unlink(missing_ok=True)
        arguments = [fresh.python(), str(PROGRAM), str(folder), str(output), str(STEPS), *own]
        process = subprocess.Popen(
            arguments,
            env={**os.environ, "PYTHONPATH": str(ROOT), "E2S_RUNTIME": "jax", **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append((process, output))
    try:
        return [Ended(*started) for started in processes]
    finally:
        for process, _ in processes:
            process.kill()


def run_by_options(folder, *options):
    """Of a job that --coordinator describes."""
    with addresses.held(1) as (coordinator,):
        job = {"E2S_COORDINATOR": coordinator, "E2S_PROCESSES": "2"}
        return run(folder, [{**job, "E2S_PROCESS": str(i)} for i in range(2)], *options)


def run_by_cluster(folder, *options):
    """Of a cluster of TF_CONFIG; a third process is its evaluator."""
    with addresses.held(2) as (chief, worker):
        cluster = {"chief": [chief], "worker": [worker]}
        jobs = [*cluster, "evaluator"][: len(options)]
        tasks = [{"type": job, "index": 0} for job in jobs]
        configs = [json.dumps({"cluster": cluster, "task": task}) for task in tasks]
        return run(folder, [{"TF_CONFIG": config} for config in configs], *options)


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """The folder, and the two processes of a job that nothing disturbs."""
    folder = tmp_path_factory.mktemp("job") / "model"
    ended = run_by_options(folder, [], [])
    for process in ended:
        assert process.code == 0, process.said
    return folder, *ended


def test_two_hosts_of_two_cores_train_what_as_many_emulated_ones_do(job, tmp_path, emulated_cores):
    emulated_cores(4, 2)
    on_hosts.main(str(tmp_path / "model"), str(tmp_path / "seen"), STEPS, "predict=0")
    expected = json.loads((tmp_path / "seen").read_text())
    folder, *processes = job
    for process in processes:
        np.testing.assert_allclose(process.seen["losses"], expected["losses"], rtol=1e-5)
        for name, value in expected["metrics"].items():
            assert process.seen["metrics"][name] == pytest.approx(value, rel=1e-5)
    for name, _ in tf.train.list_variables(folder):
        of_job, emulated = (tf.train.load_variable(f, name) for f in (folder, tmp_path / "model"))
        np.testing.assert_allclose(of_job, emulated, rtol=1e-4, atol=1e-6)


def test_each_host_predicts_all_by_itself(job):
    folder, *processes = job
    kernel, out = (tf.train.load_variable(folder, name) for name in ("kernel", "out"))
    expected = np.maximum(on_hosts.TO_PREDICT @ kernel, 0) @ out
    for process in processes:
        np.testing.assert_allclose(process.seen["predictions"], expected[:, 0], rtol=1e-4)


def test_input_fn_is_called_in_each_for_its_own_host(job):
    _, *processes = job
    for host, process in enumerate(processes):
        assert process.seen["contexts"] == [[host, 2, 4, host]] * 2


def test_only_the_chief_writes_checkpoints_events_and_results(job):
    folder, chief, other = job
    assert (chief.seen["chief"], other.seen["chief"]) == (True, False)
    assert len(list(folder.glob("events.out.tfevents.*.v2"))) == 1  # of the host_call
    assert len(list(folder.glob("events.out.tfevents.*"))) == 2
    assert len(list((folder / "eval").glob("events.*"))) == 1
    assert "Saving checkpoints for 12" in chief.said
    assert "Saving checkpoints" not in other.said


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The folder of a cluster, and the processes of its starts: one dies in each but the last."""
    folder = tmp_path_factory.mktemp("killed") / "model"
    options = [([], ["dies_at=6"]), (["dies_at=10"], []), ([], [])]
    return folder, [
        run_by_cluster(folder, *(["evaluate=0", "predict=0", *o] for o in own)) for own in options
    ]


@pytest.mark.slow
def test_where_a_worker_is_killed_the_chief_names_it_and_ends(killed):
    _, ((chief, worker), *_) = killed
    assert worker.code == -signal.SIGKILL
    assert chief.code not in (0, None)
    assert "DeviceError: worker 0 (localhost:" in chief.said
    assert "has ended in the middle of the job" in chief.said


@pytest.mark.slow
def test_where_the_chief_is_killed_a_worker_names_it_and_ends(killed):
    _, (_, (chief, worker), _) = killed
    assert chief.code == -signal.SIGKILL
    assert worker.code not in (0, None)
    assert "e2s: chief 0 (localhost:" in worker.said
    assert "has ended in the middle of the job" in worker.said


@pytest.mark.slow
def test_after_kills_training_goes_on_with_the_same_losses(killed, job):
    # An epoch is 2.5 steps, so each host's input must go on where it was.
    _, whole, _ = job
    _, starts = killed
    for chief, worker in starts:
        for process in (chief, worker):
            assert process.losses.items() <= whole.losses.items()
    *_, (chief, worker) = starts
    assert chief.code == worker.code == 0, chief.said
    assert max(chief.losses) == max(worker.losses) == STEPS


@pytest.mark.slow
def test_an_evaluator_beside_two_hosts_evaluates_what_they_have_trained(tmp_path, job):
    folder = tmp_path / "model"
    together = ["together=1", "evaluate=0", "predict=0"]
    chief, worker, evaluator = run_by_cluster(folder, together, together, together)
    for process in (chief, worker, evaluator):
        assert process.code == 0, process.said
    assert chief.losses == worker.losses == pytest.approx(job[1].losses)
    assert not evaluator.losses
    assert evaluator.seen["contexts"][0] == [0, 1, 2, 0]  # two devices of its own, and all files
    found = {
        event.step: value.simple_value
        for path in (folder / "eval").glob("events.*")
        for event in tf1.train.summary_iterator(str(path))
        for value in event.summary.value
        if value.tag == "error"
    }
    kernel, out = (tf.train.load_variable(str(folder), name) for name in ("kernel", "out"))
    x = np.random.RandomState(3).randn(40, 6).astype("float32")
    x = np.concatenate([x, x])[: 3 * 16]
    error = np.abs(np.maximum(x @ kernel, 0) @ out - x.sum(axis=1, keepdims=True)).mean()
    assert found[STEPS] == pytest.approx(error, rel=1e-4)


@pytest.mark.slow
def test_where_the_input_of_one_ends_training_ends_for_all(tmp_path):
    ended = run_by_options(tmp_path / "model", *[["batches=3", "evaluate=0", "predict=0"]] * 2)
    for process in ended:
        assert process.code == 0, process.said
        assert "The input of host 0 has ended, the others' has not." in process.said
    assert tf.train.latest_checkpoint(str(tmp_path / "model")).endswith("model.ckpt-3")


@pytest.mark.slow
def test_hosts_at_different_places_of_the_program_are_told(tmp_path):
    ended = run_by_options(tmp_path / "model", ["stops_at=4"], [])
    for process in ended:
        assert process.code not in (0, None)
        assert "The hosts are at different places of the program" in process.said


@pytest.fixture
def asked_for(monkeypatch):
    """The environment of a process of a job, which no other process joins."""
    monkeypatch.setenv("E2S_RUNTIME", "jax")
    for name, value in (("COORDINATOR", "a:1"), ("PROCESSES", "2"), ("PROCESS", "1")):
        monkeypatch.setenv(f"E2S_{name}", value)


def model_fn(features, labels, mode, params):
    raise AssertionError("Nothing shall be recorded.")


def cores_estimator(**more):
    config = estimator.tpu.RunConfig(tpu_config=estimator.tpu.TPUConfig(**more))
    return estimator.tpu.TPUEstimator(model_fn, config=config, train_batch_size=8)


@pytest.mark.parametrize(
    "model",
    [lambda: estimator.Estimator(model_fn, params={}), lambda: cores_estimator(num_shards=1)],
    ids=["Estimator", "one core"],
)
def test_a_training_on_one_device_is_refused_at_once(asked_for, model):
    with pytest.raises(errors.UnsupportedError, match="each would train a model of its own"):
        model().train(on_hosts.input_fn, steps=1)


def test_blocks_of_so_many_seconds_are_refused(asked_for):
    with pytest.raises(errors.UnsupportedError, match="give a number of steps"):
        cores_estimator(iterations_per_loop="5s").train(on_hosts.input_fn, max_steps=8)


def test_evaluations_in_the_middle_of_training_are_refused(asked_for):
    specs = estimator.TrainSpec(on_hosts.input_fn, 8), estimator.EvalSpec(on_hosts.input_fn)
    with pytest.raises(errors.UnsupportedError, match="Call train and then evaluate, in all"):
        estimator.train_and_evaluate(cores_estimator(), *specs)


def test_the_options_without_the_runtime_are_refused(asked_for, monkeypatch):
    monkeypatch.delenv("E2S_RUNTIME")
    with pytest.raises(errors.UnsupportedError, match="add --runtime=jax"):
        cores_estimator().train(on_hosts.input_fn, steps=1)


@pytest.mark.parametrize("mode", ["train", "eval", "infer"])
def test_one_input_for_all_hosts_is_refused(mode):
    pipeline = estimator.tpu.InputPipelineConfig.BROADCAST
    deployment = Deployment(mode, 8, JaxReplicas(((0, 1), (2, 3)), here=1), pipeline)
    with pytest.raises(errors.UnsupportedError, match=r"2 processes, each [\s\S]*PER_HOST_V2"):
        deployment.validate(None)


def test_who_is_not_the_chief_writes_no_export(asked_for, tmp_path):
    model = cores_estimator()
    assert not model.config.is_chief
    assert model.export_saved_model(tmp_path / "export", lambda: None) == bytes(tmp_path / "export")
    assert not (tmp_path / "export").exists()
