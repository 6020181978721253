"""Several devices in each of several processes that train in step."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest
import tensorflow as tf

from tests.estimator import devices_program
from tests.estimator.test_processes_in_step import run

pytestmark = pytest.mark.slow

PROGRAM = """
import runpy
runpy.run_module("tests.estimator.devices_program", run_name="__main__")
"""

# The chief has two devices, and so has the worker, but where its argument says so.
GOES_WRONG = """
import json, os, sys
import tensorflow as tf
from tests import strategies

folder, devices_of_worker = sys.argv[1], int(sys.argv[2])
number = int(json.loads(os.environ["TF_CONFIG"])["task"]["type"] == "worker")
strategy = strategies.over_processes(devices_of_worker if number else 2)

from estimator2strategy import estimator

tf1 = tf.compat.v1
tf1.logging.set_verbosity(tf1.logging.WARN)

def model_fn(features, labels, mode):
    kernel = tf1.get_variable("kernel", [2, 1])
    loss = tf.reduce_mean(tf.matmul(features, kernel))
    optimizer = tf1.train.GradientDescentOptimizer(0.1)
    train_op = optimizer.minimize(loss, global_step=tf1.train.get_global_step())
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

def batches():
    # The chief has three for both of its devices, and one more for its first.
    return tf.data.Dataset.from_tensors((tf.ones([1, 2]), tf.ones([1]))).repeat(7 + 2 * number)

config = estimator.RunConfig(folder, train_distribute=strategy)
estimator.Estimator(model_fn, config=config).train(batches)
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """`trained(processes, devices)` are the folder, and what each process has printed."""

    @functools.cache
    def train(processes, devices):
        folder = tmp_path_factory.mktemp(f"of_{processes}_and_{devices}")
        printed = []
        for code, output, error in run(PROGRAM, processes, folder, devices):
            assert code == 0, error
            printed.append(json.loads(output.splitlines()[-1]))
        return folder, printed

    return train


@pytest.mark.parametrize(("processes", "devices"), [(2, 2), (4, 1), (1, 4)])
def test_losses_are_those_of_one_device_with_the_same_global_batch(trained, processes, devices):
    _, (alone,) = trained(1, 0)
    _, printed = trained(processes, devices)
    for found in printed:
        for key in ("losses", "again"):
            np.testing.assert_allclose(found["plain"][key], alone["plain"][key], rtol=1e-5)


@pytest.mark.parametrize(("processes", "devices"), [(2, 2), (4, 1)])
def test_replicas_draw_the_same_numbers_in_whatever_process_they_are(trained, processes, devices):
    _, (together,) = trained(1, 4)
    _, printed = trained(processes, devices)
    for found in printed:
        of_dropout, expected = found["dropout"]["losses"], together["dropout"]["losses"]
        np.testing.assert_allclose(of_dropout, expected, rtol=1e-5)
        assert not np.allclose(of_dropout, found["plain"]["losses"], rtol=1e-3)


def test_a_hook_sees_the_loss_of_a_replica_and_not_the_sum(trained):
    _, of_replicas = trained(4, 1)
    own = np.array([found["plain"]["own"] for found in of_replicas])
    np.testing.assert_allclose(own.mean(axis=0), of_replicas[0]["plain"]["losses"], rtol=1e-5)
    _, of_devices = trained(2, 2)
    for found, expected in zip(of_devices, own[::2], strict=True):  # replicas 0 and 2
        np.testing.assert_allclose(found["plain"]["own"], expected, rtol=1e-5)


@pytest.mark.parametrize(("processes", "devices"), [(2, 2), (4, 1)])
def test_what_reads_the_loss_of_a_replica_after_the_sum_sees_no_sum(trained, processes, devices):
    _, printed = trained(processes, devices)
    for found in printed:
        own = np.array(found["plain"]["own"])
        np.testing.assert_allclose(found["plain"]["late"], 2 * own, rtol=1e-5)


def test_all_devices_of_all_processes_have_the_same_weights(trained):
    _, printed = trained(2, 2)
    (first, *others) = [weights for found in printed for weights in found["plain"]["weights"]]
    assert len(others) == 3
    assert all(weights == first for weights in others)


def test_the_chief_alone_saves_and_summarises(trained):
    folder, (chief, _) = trained(2, 2)
    assert tf.train.latest_checkpoint(str(folder / "plain")).endswith("model.ckpt-7")
    assert len(tf.io.gfile.glob(f"{folder}/plain/*tfevents*")) == 1
    _, (alone,) = trained(1, 0)
    assert chief["plain"]["accuracy"] == alone["plain"]["accuracy"]


@pytest.mark.parametrize(("processes", "devices"), [(2, 2), (4, 1), (1, 4)])
def test_each_process_predicts_by_itself_as_one_device_does(trained, processes, devices):
    _, (alone,) = trained(1, 0)
    expected = alone["plain"]["predictions"]
    assert len(expected) == len(devices_program.FEATURES)
    _, printed = trained(processes, devices)
    for found in printed:
        np.testing.assert_allclose(found["plain"]["predictions"], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("processes", "devices"), [(2, 2), (4, 1), (1, 4)])
def test_what_no_optimizer_touches_is_saved_of_the_first_replica(trained, processes, devices):
    folder, _ = trained(processes, devices)
    path = tf.train.latest_checkpoint(str(folder / "plain"))
    of_first_batch = devices_program.FEATURES[: devices_program.GLOBAL_BATCH // 4].mean()
    assert tf.train.load_variable(path, "seen") == pytest.approx(of_first_batch, rel=1e-5)


@pytest.mark.parametrize(("processes", "devices"), [(2, 2), (4, 1)])
def test_one_process_evaluates(trained, processes, devices):
    _, printed = trained(processes, devices)
    for found in printed:
        assert f"4 replicas, {devices} of them in this process" in found["plain"]["refused"]
        assert "tf.distribute.MirroredStrategy()" in found["plain"]["refused"]


def test_one_process_evaluates_on_all_devices_of_a_strategy_for_several(trained):
    _, (alone,) = trained(1, 4)
    assert alone["plain"]["refused"] is None


def test_training_ends_for_all_where_a_device_finds_no_batch(tmp_path):
    for code, _, error in run(GOES_WRONG, 2, tmp_path, 2):
        assert code == 0, error
        assert "The input of process 0 has ended, the others' has not." in error
    assert tf.train.latest_checkpoint(str(tmp_path)).endswith("model.ckpt-3")


def test_other_numbers_of_devices_are_refused_by_each(tmp_path):
    for code, _, error in run(GOES_WRONG, 2, tmp_path, 1):
        assert code == 1
        assert "process 1 has 1 device(s), the chief has 2" in error
