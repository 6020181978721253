"""The form of `TF_CONFIG`: what is not of it is refused by one sentence, before anything starts."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

# Fields that are text, where they are set.
_TEXTS = ("model_dir", "session_master", "eval_session_master")
_ADDRESS = re.compile(r"(?!\w+://).*:(\d+)", re.ASCII)
_INDEX = re.compile(r"-?\d+", re.ASCII)
_MOST_PORT = 65535
_CLUSTER = '{"chief": ["host0:2222"], ...}'
TASK = '{"type": "worker", "index": 0}'


def wrong(field: str, value: Any, form: str) -> str:
    """The sentence about a field of another form."""
    return f"TF_CONFIG: {field} is {json.dumps(value)}; it must be {form}."


def parsed() -> dict[str, Any]:
    """The environment's `TF_CONFIG`, {} if it is not set.

    Raises:
        ValueError: It is not a JSON object, or a field of it has another form.
    """
    text = os.environ.get("TF_CONFIG") or "{}"
    try:
        tf_config = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"TF_CONFIG is not valid JSON ({error}): {text}") from error
    if not isinstance(tf_config, dict):
        raise ValueError(f"TF_CONFIG must be a JSON object, given: {text}")
    check_form(tf_config)
    return tf_config


def check_place(tf_config: Mapping[str, Any]) -> None:
    """Refuses a task that is not in the cluster, if there is one; both have the right form.

    For strategies, which TensorFlow makes of both before a RunConfig reads them.

    Raises:
        ValueError: The sentence names the field, its value, and the right form.
    """
    cluster, task = tf_config.get("cluster"), tf_config.get("task", {})
    if not cluster:
        return
    job, index = task.get("type"), task.get("index")
    if not job or index is None:
        raise ValueError(wrong("task", task, TASK))
    if job not in cluster:
        raise ValueError(wrong("task.type", job, "one of " + ", ".join([*cluster, "evaluator"])))
    tasks = dict(tasks_of(job, cluster[job]))
    if int(index) not in tasks:
        form = f"less than {len(tasks)}, as many as the job has tasks"
        raise ValueError(wrong("task.index", index, form))


def check_form(tf_config: Mapping[str, Any]) -> None:
    """Refuses fields of another form than TensorFlow reads, and equal addresses.

    Raises:
        ValueError: The sentence names the field, its value, and the right form.
    """
    for field in tf_config:
        if field.lower() in ("cluster", "task") and field != field.lower():
            raise ValueError(f"TF_CONFIG: {field} is no field of it; it must be {field.lower()}.")
    for field in _TEXTS:
        if not isinstance(tf_config.get(field, ""), str):
            raise ValueError(wrong(field, tf_config[field], "a text"))
    _check_cluster(tf_config.get("cluster", {}))
    _check_task(tf_config.get("task", {}))


def _check_cluster(cluster: Any) -> None:
    if not isinstance(cluster, dict):
        raise ValueError(wrong("cluster", cluster, _CLUSTER))
    owner: dict[str, str] = {}
    listed = [(job, *task) for job, tasks in cluster.items() for task in tasks_of(job, tasks)]
    # To a process that trains alone nobody connects: any text is an address for it.
    alone = sum(job != "evaluator" for job, _, _ in listed) == 1
    for job, index, address in listed:
        field = f"cluster.{job}[{index}]"
        if not isinstance(address, str):
            raise ValueError(wrong(field, address, '"host:port"'))
        if alone:
            continue
        port = _ADDRESS.fullmatch(address)
        if not port:
            raise ValueError(wrong(field, address, '"host:port"'))
        if int(port[1]) > _MOST_PORT:
            raise ValueError(wrong(field, address, f"of a port up to {_MOST_PORT}"))
        if job == "evaluator":  # it has no server, so it may have any address
            continue
        known = owner.setdefault(address.lower(), field)
        if known != field:
            form = f"an address of its own: {known} has this one"
            raise ValueError(wrong(field, address, form))


def tasks_of(job: str, tasks: Any) -> Iterator[tuple[int, Any]]:
    """(index, address) of the tasks of a job: a list of addresses, or a dict by index.

    Raises:
        ValueError: They have another form.
    """
    field = f"cluster.{job}"
    if isinstance(tasks, list):
        yield from enumerate(tasks)
        return
    if not isinstance(tasks, dict):
        addresses = tasks.split(",") if isinstance(tasks, str) else ["host1:2222"]
        raise ValueError(wrong(field, tasks, f"{json.dumps(addresses)}, a list of addresses"))
    for index in tasks:
        if not _INDEX.fullmatch(index) or not 0 <= int(index) < len(tasks):
            form = "a list of addresses, or a dict of them by their indices from 0 on"
            raise ValueError(wrong(field, tasks, form))
    yield from ((int(index), address) for index, address in tasks.items())


def _check_task(task: Any) -> None:
    if not isinstance(task, dict):
        raise ValueError(wrong("task", task, TASK))
    if not isinstance(task.get("type") or "", str):
        raise ValueError(wrong("task.type", task["type"], 'the name of a job, as "worker"'))
    index = task.get("index")
    if index is not None and not _INDEX.fullmatch(json.dumps(index).strip('"')):
        raise ValueError(wrong("task.index", index, "a whole number, from 0 on"))
