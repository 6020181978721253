"""Who of a cluster has not come, while TensorFlow waits for it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path

import pytest

from estimator2strategy.engine.runtime import roll_call
from tests import addresses, fresh

ROOT = Path(__file__).parents[3]


@pytest.fixture
def hosts():
    """One where somebody listens, and one where nobody does."""
    with socket.create_server(("localhost", 0)) as taken, addresses.held(1) as (free,):
        yield [f"localhost:{taken.getsockname()[1]}", free]


def test_who_does_not_come_is_named_at_once_and_not_again(hosts, capsys, monkeypatch):
    here, absent = hosts
    parents = iter([1, 1, 1, 2])  # it ends after three looks
    monkeypatch.setattr(os, "getppid", lambda: next(parents))
    roll_call.call({"worker 0": here, "worker 1": absent}, parent=1, patience=0)
    (said,) = capsys.readouterr().err.splitlines()
    assert f"nobody answers at worker 1 ({absent})" in said
    assert here not in said


def test_it_ends_when_all_have_come(hosts, capsys):
    here, _ = hosts
    roll_call.call({"worker 0": here}, parent=os.getppid(), patience=0)
    assert capsys.readouterr().err == ""


# In a process in which TensorFlow has not started, as a program begins.
IMPORTS = """
from estimator2strategy import estimator
from estimator2strategy.engine.runtime import liveness
liveness.watch()
"""


@pytest.mark.parametrize(
    ("is_taken", "worker"), [(True, list), (False, list), (True, lambda at: {"0": at[0]})]
)
def test_a_port_that_somebody_has_is_named_before_a_strategy_is_made(hosts, is_taken, worker):
    mine, other = hosts if is_taken else reversed(hosts)
    cluster = {"chief": worker([mine]), "worker": worker([other])}
    config = {"cluster": cluster, "task": {"type": "chief", "index": 0}}
    ran = subprocess.run(
        [fresh.python(), "-c", IMPORTS],
        env={**os.environ, "TF_CONFIG": json.dumps(config), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    said = f"gives this process the address {mine}, and somebody listens there already"
    assert (said in ran.stderr) == is_taken


WAITS = """
import tensorflow as tf
from estimator2strategy.engine.runtime import liveness
liveness._PATIENCE = 0.5
from estimator2strategy import estimator
liveness.watch()
tf.distribute.MultiWorkerMirroredStrategy()
"""


@pytest.mark.slow
@pytest.mark.parametrize("job", ["chief", "worker"])
def test_a_strategy_that_waits_for_a_process_is_no_silent_wait(job):
    """TensorFlow keeps Python's lock there."""
    with addresses.held(2) as (chief, worker):
        cluster = {"chief": [chief], "worker": [worker]}
        config = {"cluster": cluster, "task": {"type": job, "index": 0}}
        process = subprocess.Popen(
            [fresh.python(), "-c", WAITS],
            env={**os.environ, "TF_CONFIG": json.dumps(config), "PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
            text=True,
        )
        other = {"chief": "worker", "worker": "chief"}[job]
        try:
            said = next(line for line in process.stderr if "e2s: waiting since" in line)
            assert f"nobody answers at {other} 0 ({cluster[other][0]})" in said
            assert process.poll() is None
        finally:
            process.kill()
            # The roll call ends with it, and closes the pipe.
            rest = process.communicate(timeout=60)
        assert "Error" not in rest[1]
