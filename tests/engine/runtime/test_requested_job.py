"""The job that a process is part of, from its environment."""

from __future__ import annotations

import json

import pytest

from estimator2strategy.engine.runtime.requested_job import Job, requested_job

CLUSTER = {"chief": ["host0:2222"], "worker": ["host1:2222", "host2:2222"]}


@pytest.fixture
def given(monkeypatch):
    """`given(TF_CONFIG=..., E2S_PROCESS=...)` sets variables."""

    def set_all(**variables):
        for name, value in variables.items():
            text = value if isinstance(value, str) else json.dumps(value)
            monkeypatch.setenv(name, text)

    return set_all


def task(job, index=0, cluster=CLUSTER):
    return {"cluster": cluster, "task": {"type": job, "index": index}}


def test_without_settings_a_process_is_alone():
    assert requested_job() is None


def test_the_options_name_coordinator_and_number(given):
    given(E2S_COORDINATOR="host0:2222", E2S_PROCESSES="2", E2S_PROCESS="1")
    job = requested_job()
    assert job == Job("host0:2222", 1, ("process 0", "process 1"))
    assert (job.count, job.is_chief) == (2, False)


def test_one_process_of_one_is_alone(given):
    given(E2S_COORDINATOR="host0:2222", E2S_PROCESSES="1", E2S_PROCESS="0")
    assert requested_job() is None


def test_the_chief_of_a_cluster_coordinates_and_workers_follow_in_their_order(given):
    given(TF_CONFIG=task("worker", 1))
    names = ("chief 0 (host0:2222)", "worker 0 (host1:2222)", "worker 1 (host2:2222)")
    assert requested_job() == Job("host0:2222", 2, names)


def test_a_cluster_without_a_chief_is_led_by_its_first_worker(given):
    given(TF_CONFIG=task("worker", 0, {"worker": ["a:1", "b:1"]}))
    assert requested_job() == Job("a:1", 0, ("worker 0 (a:1)", "worker 1 (b:1)"))


@pytest.mark.parametrize(
    "config",
    [
        task("evaluator"),
        task("chief", cluster={"chief": ["a:1"]}),
        task("worker", cluster={**CLUSTER, "ps": ["c:1"]}),
    ],
    ids=["evaluator", "one", "parameter servers"],
)
def test_who_does_not_train_with_others_is_alone(given, config):
    given(TF_CONFIG=config)
    assert requested_job() is None


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"E2S_COORDINATOR": "a:1"}, "without E2S_PROCESSES, E2S_PROCESS. Give all processes"),
        (
            {"E2S_COORDINATOR": "a", "E2S_PROCESSES": "2", "E2S_PROCESS": "0"},
            "E2S_COORDINATOR is 'a', no HOST:PORT",
        ),
        (
            {"E2S_COORDINATOR": "a:1", "E2S_PROCESSES": "two", "E2S_PROCESS": "0"},
            "E2S_PROCESSES is 'two', no whole number",
        ),
        (
            {"E2S_COORDINATOR": "a:1", "E2S_PROCESSES": "2", "E2S_PROCESS": "2"},
            "There is no process 2 of 2. .* from 0 to N-1",
        ),
        (
            {
                "E2S_COORDINATOR": "a:1",
                "E2S_PROCESSES": "2",
                "E2S_PROCESS": "0",
                "TF_CONFIG": task("chief"),
            },
            "TF_CONFIG names 3 processes that train, and E2S_COORDINATOR.* Leave one of them out",
        ),
    ],
    ids=["alone", "no port", "no number", "too high", "both"],
)
def test_wrong_settings_are_refused(given, variables, message):
    given(**variables)
    with pytest.raises(ValueError, match=message):
        requested_job()
