"""`TF_CONFIG` of another form: one sentence says the field, its value and the right form."""

from __future__ import annotations

import json
import re

import pytest

from estimator2strategy import estimator
from estimator2strategy.engine.runtime import requested_strategy
from estimator2strategy.estimator import tf_config

CHIEF = {"type": "chief", "index": 0}
WORKERS = {"cluster": {"worker": ["host0:1", "host1:1"]}}


def of_cluster(**jobs):
    return {"cluster": {"chief": ["host0:1"], **jobs}, "task": CHIEF}


def of_task(**task):
    return {"cluster": {"chief": ["host0:1"]}, "task": task}


def refusal(monkeypatch, content):
    monkeypatch.setenv("TF_CONFIG", json.dumps(content))
    with pytest.raises(ValueError, match="TF_CONFIG") as error:
        estimator.RunConfig()
    # What follows is the whole of TF_CONFIG.
    return re.split(r" Given: '\{|, given: '\{", str(error.value))[0]


@pytest.mark.parametrize(
    ("content", "field", "form"),
    [
        ({"cluster": ["host0:1"]}, 'cluster is ["host0:1"]', '{"chief": ["host0:2222"], ...}'),
        ({"cluster": None}, "cluster is null", '{"chief": ["host0:2222"], ...}'),
        (of_cluster(chief="h:1"), 'cluster.chief is "h:1"', '["h:1"], a list of addresses'),
        (
            of_cluster(worker="a:1,b:1"),
            'cluster.worker is "a:1,b:1"',
            '["a:1", "b:1"], a list of addresses',
        ),
        (of_cluster(ps=None), "cluster.ps is null", '["host1:2222"], a list of addresses'),
        (
            of_cluster(worker={"1": "h:1"}),
            'cluster.worker is {"1": "h:1"}',
            "a list of addresses, or a dict of them by their indices from 0 on",
        ),
        (of_cluster(worker=["host1"]), 'cluster.worker[0] is "host1"', '"host:port"'),
        (of_cluster(worker=["h:1 "]), 'cluster.worker[0] is "h:1 "', '"host:port"'),
        (of_cluster(worker=["grpc://h:1"]), 'cluster.worker[0] is "grpc://h:1"', '"host:port"'),
        (of_cluster(worker=[2222]), "cluster.worker[0] is 2222", '"host:port"'),
        (of_cluster(worker=["h:65536"]), 'cluster.worker[0] is "h:65536"', "of a port up to 65535"),
        (
            of_cluster(ps=["host1:1", "host0:1"]),
            'cluster.ps[1] is "host0:1"',
            "an address of its own: cluster.chief[0] has this one",
        ),
        (
            of_cluster(ps=["HOST0:1"]),
            'cluster.ps[0] is "HOST0:1"',
            "an address of its own: cluster.chief[0] has this one",
        ),
        ({**of_cluster(), "task": "chief"}, 'task is "chief"', '{"type": "worker", "index": 0}'),
        ({**of_cluster(), "task": None}, "task is null", '{"type": "worker", "index": 0}'),
        (
            of_task(type=["chief"], index=0),
            'task.type is ["chief"]',
            'the name of a job, as "worker"',
        ),
        *(
            (
                of_task(type="chief", index=index),
                f"task.index is {json.dumps(index)}",
                "a whole number, from 0 on",
            )
            for index in ("first", "--1", "\u00b2", 0.5, True, [0])
        ),
        ({"session_master": 1}, "session_master is 1", "a text"),
        ({"model_dir": ["/m"]}, 'model_dir is ["/m"]', "a text"),
    ],
)
def test_a_field_of_another_form_is_all_that_is_said(monkeypatch, content, field, form):
    assert refusal(monkeypatch, content) == f"TF_CONFIG: {field}; it must be {form}."


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            {"cluster": {"worker": ["w:1"]}, "task": {"type": "worker", "index": 0}},
            'cluster is {"worker": ["w:1"]}; it must be one with a "chief", as',
        ),
        (
            of_cluster(chief=["a:1", "b:1"]),
            'cluster.chief is ["a:1", "b:1"]; it must be a list of one address',
        ),
        (of_task(), 'task is {}; it must be {"type": "worker", "index": 0}.'),
        (of_task(type="ps"), 'task is {"type": "ps"}; it must be {"type": "worker", "index": 0}.'),
        (of_task(type="boss", index=0), 'task.type is "boss"; it must be one of chief, evaluator.'),
        (of_task(type="chief", index=-1), "task.index is -1; it must be a whole number, from 0 on"),
        (of_task(type="chief", index=1), "task.index is 1; it must be less than 1, as many as"),
    ],
)
def test_the_original_s_errors_say_the_field_too(monkeypatch, content, sentence):
    assert sentence in refusal(monkeypatch, content)


@pytest.mark.parametrize("address", ["localhost", "", "127.0.0.1:0"])
def test_a_process_that_trains_alone_may_have_any_address(monkeypatch, address):
    content = {"cluster": {"chief": [address], "evaluator": ["h"]}, "task": CHIEF}
    monkeypatch.setenv("TF_CONFIG", json.dumps(content))
    assert estimator.RunConfig().num_worker_replicas == 1


def test_a_task_in_another_case_is_not_taken_for_none(monkeypatch):
    said = refusal(monkeypatch, {"Cluster": {"chief": ["host0:1"]}, "Task": CHIEF})
    assert said == "TF_CONFIG: Cluster is no field of it; it must be cluster."


@pytest.mark.parametrize(
    "content",
    [
        of_cluster(worker=["[::1]:2222"]),
        of_cluster(worker={"0": "host1:1"}),
        of_cluster(worker=[]),
        of_cluster(evaluator=["host0:1"]),  # it has no server, so nobody asks for its address
        of_task(type="chief", index="0"),
        {**of_cluster(), "environment": "cloud", "job": {}},
    ],
)
def test_what_tensorflow_reads_is_read(monkeypatch, content):
    monkeypatch.setenv("TF_CONFIG", json.dumps(content))
    assert estimator.RunConfig().is_chief


def test_it_is_read_before_the_strategy_that_the_command_asked_for_opens_a_port(monkeypatch):
    monkeypatch.setenv(requested_strategy.VARIABLE, "multi_worker")
    said = refusal(monkeypatch, of_cluster(worker=["host0:1"]))
    assert re.match(r"TF_CONFIG: cluster.worker\[0\] is ", said)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", r"TF_CONFIG is not valid JSON"),
        ("[1]", r"TF_CONFIG must be a JSON object"),
        ('{"task": "worker"}', r'TF_CONFIG: task is "worker"; it must be \{"type"'),
        (json.dumps(WORKERS), r"TF_CONFIG: task is \{\}; it must be \{"),
        (
            json.dumps({**WORKERS, "task": {"type": "wroker", "index": 0}}),
            r'TF_CONFIG: task.type is "wroker"; it must be one of worker, evaluator',
        ),
        (
            json.dumps({**WORKERS, "task": {"type": "worker", "index": 2}}),
            r"TF_CONFIG: task.index is 2; it must be less than 2",
        ),
        (
            json.dumps({**WORKERS, "task": {"type": "worker"}}),
            r"TF_CONFIG: task is .* it must be \{",
        ),
    ],
)
def test_it_is_read_before_a_strategy_is_made_of_it(monkeypatch, content, words):
    monkeypatch.setenv(requested_strategy.VARIABLE, "multi_worker")
    monkeypatch.setenv("TF_CONFIG", content)
    requested_strategy._make.cache_clear()
    with pytest.raises(ValueError, match=words):
        requested_strategy.requested()


def test_it_is_logged_for_a_strategy_of_the_program_that_waits_for_the_others(monkeypatch, log):
    """TensorFlow's own would wait, without a word, for two processes that have one address."""
    monkeypatch.setenv("TF_CONFIG", json.dumps(of_cluster(worker=["host0:1"])))
    tf_config.warn_of_form()
    assert 'TF_CONFIG: cluster.worker[0] is "host0:1"; it must be an address' in log.text
