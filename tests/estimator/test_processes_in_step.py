"""Processes that train in step, when something is wrong with one of them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests import addresses, fresh
from tests.estimator import workers_program

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]

TRAINS = """
import sys
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
from tests.estimator import workers_program
workers_program.train(sys.argv[1], strategy)
"""

# One after the other, in the same processes: an input that ends sooner in one of them, another
# learning rate, other variables, and the end of one of them.
GOES_WRONG = """
import json, os, sys, time
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
from estimator2strategy import estimator
from tests.estimator import workers_program

tf1 = tf.compat.v1
tf1.logging.set_verbosity(tf1.logging.WARN)
number = int(json.loads(os.environ["TF_CONFIG"])["task"]["type"] == "worker")

def model_fn(features, labels, mode, params):
    if number == 1:
        time.sleep(2)  # the chief is ready sooner, and must not act before they have agreed
    kernel = tf1.get_variable("kernel", [2, params.get("units", 1)])
    loss = tf.reduce_mean(tf.matmul(features, kernel))
    optimizer = tf1.train.GradientDescentOptimizer(params.get("rate", 0.1))
    train_op = optimizer.minimize(loss, global_step=tf1.train.get_global_step())
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

def batches(count):
    return lambda: tf.data.Dataset.from_tensors((tf.ones([1, 2]), tf.ones([1]))).repeat(count)

def model(name, **params):
    config = estimator.RunConfig(os.path.join(sys.argv[1], name), train_distribute=strategy)
    return estimator.Estimator(model_fn, config=config, params=params)

class Dies(tf1.train.SessionRunHook):
    def after_run(self, run_context, run_values):
        if number == 1 and run_context.session.run(tf1.train.get_global_step()) == 3:
            os._exit(9)

ends_sooner = model("ends_sooner")
ends_sooner.train(batches(3 + number))
rate = model("rate", rate=0.1 + number)
rate.train(batches(2))
try:
    model("units", units=1 + number).train(batches(2))
except ValueError as error:
    refused = str(error)
print(json.dumps({"refused": refused}), flush=True)
model("dies").train(batches(9), hooks=[Dies()])
"""


def run(program, count, *arguments, awaited=None):
    """Runs a program in a cluster of so many processes; returns each one's (code, out, err).

    Args:
        awaited: The numbers of those to wait for, by default all; the others are killed then.
    """
    with addresses.held(count) as hosts:
        return _run_on(hosts, program, arguments, awaited)


def _run_on(hosts, program, arguments, awaited):
    """As `run`, of a process at each of `hosts`."""
    count = len(hosts)
    cluster = {"chief": hosts[:1], "worker": hosts[1:]}
    tasks = [("chief", 0), *(("worker", i) for i in range(count - 1))]
    processes = []
    for job, index in tasks:
        config = {"cluster": cluster, "task": {"type": job, "index": index}}
        environment = {**os.environ, "TF_CONFIG": json.dumps(config), "PYTHONPATH": str(ROOT)}
        processes.append(
            subprocess.Popen(
                [fresh.python(), "-c", program, *map(str, arguments)],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    try:
        first = range(count) if awaited is None else awaited
        outputs = {number: processes[number].communicate(timeout=400) for number in first}
    finally:
        for process in processes:
            process.kill()
    outputs |= {n: p.communicate() for n, p in enumerate(processes) if n not in outputs}
    return [(process.returncode, *outputs[n]) for n, process in enumerate(processes)]


def test_four_train_as_one_with_all_their_input(tmp_path, capsys):
    workers_program.train(str(tmp_path / "alone"))
    expected = json.loads(capsys.readouterr().out)
    for code, output, error in run(TRAINS, 4, tmp_path / "model"):
        assert code == 0, error
        found = json.loads(output)
        np.testing.assert_allclose(found["losses"], expected["losses"], rtol=1e-5)
        np.testing.assert_allclose(found["weights"], expected["weights"], rtol=1e-5)


@pytest.fixture(scope="module")
def gone_wrong(tmp_path_factory):
    """The folder, and (code, out, err) of chief and worker."""
    folder = tmp_path_factory.mktemp("gone_wrong")
    return folder, *run(GOES_WRONG, 2, folder)


def test_training_ends_for_all_where_the_input_of_one_has_ended(gone_wrong):
    folder, *processes = gone_wrong
    for _, _, error in processes:
        assert "The input of process 0 has ended, the others' has not." in error
    assert tf.train.latest_checkpoint(str(folder / "ends_sooner")).endswith("model.ckpt-3")


def test_another_learning_rate_is_named_by_each(gone_wrong):
    _, *processes = gone_wrong
    for _, _, error in processes:
        assert "only it has Const 'GradientDescent/learning_rate' = 1.1" in error


def test_other_variables_are_refused_by_each(gone_wrong):
    _, *processes = gone_wrong
    for _, output, error in processes:
        assert output, error
        said = json.loads(output)["refused"]
        assert "process 1 has variable kernel: float32 (2, 2), the chief has float32 (2, 1)" in said


def test_the_end_of_one_is_an_error_for_the_other_that_names_it(gone_wrong):
    _, (code, _, error), (code_of_worker, _, _) = gone_wrong
    assert code_of_worker == 9
    assert code not in (0, None)
    assert "worker 0 (localhost:" in error
    assert "has ended in the middle of training" in error


# The worker stops itself, and is silent from then on.
STOPS = """
import json, os, signal, sys
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
from tests.estimator import workers_program
stops = json.loads(os.environ["TF_CONFIG"])["task"]["type"] == sys.argv[2]

class Stops(tf.compat.v1.train.SessionRunHook):
    def after_run(self, run_context, run_values):
        step = run_context.session.run(tf.compat.v1.train.get_global_step())
        if stops and step == 3:
            print("STOP", flush=True)
            os.kill(os.getpid(), signal.SIGSTOP)

workers_program.train(sys.argv[1], strategy, hooks=[Stops()])
"""


@pytest.mark.parametrize(("number", "job"), [(0, "chief"), (1, "worker")])
def test_a_process_that_is_stopped_is_named_by_the_other(tmp_path, number, job):
    ended = run(STOPS, 2, tmp_path, job, awaited=[1 - number])
    _, output, _ = ended[number]
    assert output == "STOP\n"
    code, _, error = ended[1 - number]
    assert code not in (0, None)
    assert f"{job} 0 (localhost:" in error
    assert "is there, but has not answered in the middle of training" in error
    assert "has ended" not in error


# A label out of range, in the input of all or of one.
FAILS = """
import os, sys
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
from estimator2strategy import estimator
tf1 = tf.compat.v1

def model_fn(features, labels, mode):
    logits = tf.matmul(features, tf1.get_variable("kernel", [2, 3]))
    xent = tf1.nn.sparse_softmax_cross_entropy_with_logits
    loss = tf.reduce_mean(xent(labels=labels, logits=logits, name="xent"))
    optimizer = tf1.train.GradientDescentOptimizer(0.1)
    train_op = optimizer.minimize(loss, global_step=tf1.train.get_global_step())
    return estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

def input_fn(input_context):
    label = 7 if str(input_context.input_pipeline_id) in sys.argv[2] else 1
    return tf.data.Dataset.from_tensors((tf.ones([2]), tf.constant(label))).repeat(9).batch(1)

config = estimator.RunConfig(sys.argv[1], train_distribute=strategy)
try:
    estimator.Estimator(model_fn, config=config).train(input_fn)
except tf.errors.InvalidArgumentError as error:
    print(error.message, flush=True)
except tf.errors.OpError:
    print("of another process", flush=True)
os._exit(0)  # the others may wait for this one
"""


@pytest.mark.parametrize("failing", ["01", "1"])
def test_a_step_that_fails_names_the_users_line_in_each_process_where_it_fails(tmp_path, failing):
    line = 1 + next(i for i, code in enumerate(FAILS.splitlines()) if "xent(" in code)
    named = f"[[node xent/xent (defined at <string>:{line}) ]]"
    for number, (_, output, error) in enumerate(run(FAILS, 2, tmp_path, failing)):
        fails = str(number) in failing
        assert (named in output) == fails, output + error
        assert ("of another process" in output) != fails
