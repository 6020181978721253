"""The chief's program, as workers find it on the first server."""

from __future__ import annotations

import json
import threading

import pytest
import tensorflow as tf

from estimator2strategy import estimator
from estimator2strategy.engine.parameter_servers import same_program
from estimator2strategy.engine.parameter_servers.servers import Servers
from estimator2strategy.engine.plan.graph import RecordedGraph
from tests import addresses

tf1 = tf.compat.v1


def facts(width=1, rate=0.1, more=()):
    with tf.Graph().as_default() as graph:
        kernel = tf1.get_variable("kernel", [2, width], use_resource=False)
        for name in more:
            tf1.get_variable(name, [], use_resource=False)
        optimizer = tf1.train.AdagradOptimizer(rate)
        train_op = optimizer.minimize(tf.reduce_sum(kernel), tf1.train.get_or_create_global_step())
        return same_program.facts_of(RecordedGraph(graph), train_op.name)


@pytest.fixture(scope="module")
def cluster():
    """The addresses of a server of each task, all in this process."""
    with addresses.held(3) as held:
        found = {job: [address] for job, address in zip(("chief", "worker", "ps"), held)}
        servers = [tf.distribute.Server(found, job_name=job, task_index=0) for job in found]
    yield found
    del servers


@pytest.fixture
def program(cluster, monkeypatch):
    """`program("worker", facts)`: the facts of that task."""

    def of(job, found, **settings):
        task = {"cluster": cluster, "task": {"type": job, "index": 0}}
        monkeypatch.setenv("TF_CONFIG", json.dumps(task))
        config = estimator.RunConfig(**settings)
        return same_program.ProgramOnServer(config, Servers({}, 1), found)

    return of


def test_a_chief_that_is_not_ready_is_waited_for_and_named(program, cluster, monkeypatch):
    monkeypatch.setattr(same_program, "_NAME", "of_nobody")
    with pytest.raises(tf.errors.InternalError, match="initialises or restores") as error:
        program("worker", facts(), session_creation_timeout_secs=1).check()
    assert f"chief 0 ({cluster['chief'][0]})" in str(error.value)
    assert "it is at work" in str(error.value)


def test_a_worker_goes_on_once_the_chief_is_ready(program, monkeypatch, log):
    monkeypatch.setattr(same_program, "_NAME", "of_both")
    worker, chief = program("worker", facts()), program("chief", facts())
    waiting = threading.Thread(target=worker.check)
    waiting.start()
    chief.publish()
    waiting.join(timeout=60)
    assert not waiting.is_alive()
    assert "does not train" not in log.text


def test_another_variable_is_refused_by_name(program):
    program("chief", facts()).publish()
    with pytest.raises(ValueError, match="worker 0 has variable kernel: float32 ") as error:
        program("worker", facts(width=3)).check()
    assert "float32 (2, 3), the chief has float32 (2, 1)" in str(error.value)
    assert "Start all of them with the same code and flags" in str(error.value)


def test_a_variable_that_nobody_would_initialise_is_refused(program):
    program("chief", facts()).publish()
    with pytest.raises(ValueError, match=r"worker 0 has variable bias: float32 \(\), the chief h"):
        program("worker", facts(more=["bias"])).check()


def test_a_variable_of_the_chief_alone_does_no_harm(program, log):
    program("chief", facts(more=["bias"])).publish()
    program("worker", facts()).check()
    assert "does not train" not in log.text


def test_another_flag_is_logged(program, log):
    program("chief", facts()).publish()
    program("worker", facts(rate=0.5)).check()
    assert "worker 0 does not train the chief's step" in log.text
    assert "only it has Const 'Adagrad/learning_rate' = 0.5" in log.text
