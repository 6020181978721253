"""`e2s run --strategy` trains the Estimators of a program under a strategy."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.runtime import devices
from estimator2strategy.engine.runtime import requested_strategy as strategies
from estimator2strategy.errors import DeviceError
from tests import addresses, fresh

ROOT = Path(__file__).parents[2]


def start(*arguments: str, **environment: str) -> subprocess.Popen:
    return subprocess.Popen(
        [fresh.python(), "-m", "estimator2strategy", "run", *arguments],
        cwd=ROOT / "tests" / "programs",
        env={**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(process: subprocess.Popen) -> tuple[dict[str, list], str]:
    """The lines that the program printed of each Estimator, and its log."""
    out, log = process.communicate(timeout=300)
    assert process.returncode == 0, log
    return {name: rest for name, *rest in map(json.loads, out.splitlines())}, log


@pytest.fixture(scope="module")
def mirrored():
    names = ("host", "own strategy", "TPUEstimator on the host", "TPUEstimator")
    options = ("--strategy=mirrored:3", "--emulate-tpu-cores=2")
    return finished(start(*options, "strategies_program.py", *names))


@pytest.mark.slow
def test_every_estimator_trains_as_with_train_distribute(mirrored):
    # Two steps of three batches, of whose gradients TF1's optimizers take the mean: of 1, 2, 3 and
    # of 4, 5, 6. Evaluation is on one device.
    results, _ = mirrored
    assert results["host"] == [[3, 1], 7]
    assert results["TPUEstimator on the host"] == [[3, 1], 7]


@pytest.mark.slow
def test_the_strategy_takes_the_place_of_the_programs_own_and_says_so(mirrored):
    results, log = mirrored
    assert results["own strategy"] == [[3, 1], 7]
    said = "--strategy=mirrored:3 takes the place of the program's own train_distribute, a OneDev"
    assert log.count(said) == 1


@pytest.mark.slow
def test_a_tpu_estimator_keeps_its_cores_and_says_so(mirrored):
    # Two steps of a batch of two, one for each core: 1 and 2, then 3 and 4.
    results, log = mirrored
    assert results["TPUEstimator"] == [[1, 1], 5]
    assert log.count("--strategy=mirrored:3 is ignored: a TPUEstimator with use_tpu=True") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "name"),
    [
        (("--strategy=multi_worker",), "cluster"),
        ((), "own strategy of the cluster"),
        ((), "contrib strategy of the cluster"),
    ],
)
def test_the_processes_of_a_cluster_train_in_step(model_dir, options, name):
    with addresses.held(2) as hosts:
        cluster = {"chief": hosts[:1], "worker": hosts[1:]}
        common = {"cluster": cluster, "model_dir": model_dir}
        processes = [
            start(
                *options,
                "strategies_program.py",
                name,
                TF_CONFIG=json.dumps({**common, "task": {"type": job, "index": 0}}),
            )
            for job in cluster
        ]
        (chief, _), (worker, _) = map(finished, processes)
    # Each takes 1, then 2. The chief evaluates by itself.
    assert chief[name] == [[2, 1], 3]
    assert worker[name] == [[2], 3]


def test_a_program_without_estimators_is_told_that_no_strategy_was_used(tmp_path):
    (tmp_path / "plain.py").write_text("import sys\nprint('ran')\nsys.exit(3)\n")
    process = start("--strategy=mirrored:2", str(tmp_path / "plain.py"))
    out, log = process.communicate(timeout=300)
    assert (process.returncode, out) == (3, "ran\n")
    assert "--strategy=mirrored:2 was not used: no Estimator was made" in log


@pytest.fixture
def ask(monkeypatch):
    def ask(name):
        monkeypatch.setenv(strategies.VARIABLE, name)

    strategies._make.cache_clear()
    yield ask
    strategies._make.cache_clear()
    strategies._used.clear()


def test_nothing_changes_unless_asked():
    assert strategies.VARIABLE not in os.environ
    assert estimator.RunConfig().train_distribute is None


@pytest.mark.parametrize(
    ("name", "kind", "replicas"),
    [
        ("one_device", tf.distribute.OneDeviceStrategy, 1),
        ("mirrored", tf.distribute.OneDeviceStrategy, 1),  # of a CPU there is one
        ("mirrored:5", tf.distribute.MirroredStrategy, 5),
        ("tpu", tf.distribute.MirroredStrategy, 4),
    ],
)
def test_what_a_name_stands_for_on_a_cpu(ask, emulated_cores, name, kind, replicas):
    emulated_cores(4)
    ask(name)
    strategy = estimator.RunConfig().train_distribute
    assert isinstance(strategy, kind)
    assert strategy.num_replicas_in_sync == replicas
    assert estimator.tpu.RunConfig().train_distribute is strategy


def test_the_cores_of_a_tpu_are_dealt_out_as_a_default_tpu_config_says():
    layout = devices.CoreLayout()._asdict()
    assert layout == {name: getattr(estimator.tpu.TPUConfig(), name) for name in layout}


def test_more_replicas_than_gpus_are_refused(ask, monkeypatch):
    monkeypatch.setattr(strategies, "_gpus", lambda: ["a GPU"])
    ask("mirrored:2")
    with pytest.raises(DeviceError, match=r"this machine has 1 GPU.*mirrored:1"):
        estimator.RunConfig()


def test_more_parts_than_a_started_cpu_has_are_refused(ask):
    ask("mirrored:99")
    with pytest.raises(DeviceError, match="--strategy=mirrored:99 came too late"):
        estimator.RunConfig()


def test_no_tpu_is_an_error_that_says_what_to_do(ask):
    ask("tpu")
    with pytest.raises(DeviceError, match="emulate-tpu-cores=8"):
        estimator.RunConfig()


@pytest.mark.parametrize("name", ["mirorred", "mirrored:0", "mirrored:", "one_device:2"])
def test_an_unknown_name_is_refused_with_the_list(ask, name):
    ask(name)
    with pytest.raises(ValueError, match=r"no strategy .*; there are one_device, mirrored,"):
        estimator.RunConfig()


def test_gpus_that_are_not_there_are_taken_by_the_cpu_as_in_tf_1_15():
    names = ("public", "v2", "contrib")
    results, log = finished(start("absent_gpus.py", *names, CUDA_VISIBLE_DEVICES="-1"))
    # Two steps of 0.1 down the slope of (w - 2)^2, on both replicas.
    assert results == {name: [pytest.approx(2 * (1 - 0.8**2))] for name in names}
    assert "this machine has no GPU:7, GPU:8. The CPU takes the place of each." in log
