"""Checks that a worker trains the chief's program, and that its ops can run where they are put.

The chief leaves the facts of its program on a server. A worker whose variables the chief does not
have would wait for them for ever, because nobody gives them values.
"""

from __future__ import annotations

import contextlib
import json
import time
import zlib
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.parameter_servers.servers import Servers, until_next_look
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.runtime import agreement
from estimator2strategy.engine.runtime.liveness import answers
from estimator2strategy.engine.runtime.roll_call import can_be_reached
from estimator2strategy.engine.user_code import user_line
from estimator2strategy.errors import UnsupportedError

tf1 = tf.compat.v1

# Seconds between two words about the chief.
_REMINDER = 30.0
_NAME = "e2s_program"
_HERE = (None, "localhost")


def facts_of(recorded: RecordedGraph, train_op: str) -> dict[str, Any]:
    """The facts of this worker's training: its step, and all variables of the servers."""
    shared = tf1.global_variables()
    variables = {v.op.name: f"{v.dtype.base_dtype.name} {v.shape}" for v in shared}
    return {**agreement.facts_of(recorded, [train_op]), "variables": variables}


class ProgramOnServer:
    """The facts of the chief's program, on the first parameter server.

    They are in a graph of their own: those of the program, and its checkpoints, are as they were.

    Args:
        config: A RunConfig of a task that trains.
        servers: The parameter servers, which must be there.
        facts: Of this process.
    """

    def __init__(self, config: Any, servers: Servers, facts: agreement.Facts):
        self._config, self._servers, self._facts = config, servers, facts

    def publish(self) -> None:
        """Leaves the chief's facts, once all variables have values."""
        text = zlib.compress(json.dumps(self._facts).encode())
        with self._variable() as (session, variable):
            session.run(tf1.assign(variable, tf.constant(text)).op)

    def check(self) -> None:
        """Waits for the chief's facts, and compares this worker's program with them.

        Where only the step differs, that is logged.

        Raises:
            ValueError: The chief has not some variable, or has one of another type or shape.
            tf.errors.InternalError: The chief did not come.
        """
        with self._variable() as (session, variable):
            is_there = tf1.is_variable_initialized(variable)
            self._wait(lambda: session.run(is_there))
            text = session.run(variable)
        self._compare(json.loads(zlib.decompress(text)))

    @contextlib.contextmanager
    def _variable(self) -> Iterator[tuple[tf1.Session, tf.Tensor]]:
        with tf.Graph().as_default(), tf1.device("/job:ps/task:0"):
            variable = tf.raw_ops.VariableV2(shape=[], dtype=tf.string, shared_name=_NAME)
            session = tf1.Session(self._config.master, config=self._config.session_config)
            try:
                yield session, variable
            finally:
                self._servers.close(session.close)

    def _wait(self, is_there: Any) -> None:
        began = time.monotonic()
        next_word = began + _REMINDER
        while not is_there():
            waited = time.monotonic() - began
            if waited > self._config.session_creation_timeout_secs:
                raise tf.errors.InternalError(None, None, self._chief(waited))
            if time.monotonic() > next_word:
                next_word += _REMINDER
                tf1.logging.warn(self._chief(waited))
            time.sleep(until_next_look(waited))

    def _chief(self, waited: float) -> str:
        """The sentence about a chief that has not given the variables their values yet."""
        jobs = self._config.cluster_spec.as_dict()
        job = next(job for job in ("chief", "master", "worker") if job in jobs)
        address = self._config.cluster_spec.task_address(job, 0)
        if not can_be_reached(address):
            state = "nobody answers there. Is it started, with this address?"
        elif answers(address):
            state = "it is at work."
        else:
            state = "it is there, but does not answer: it is stopped (SIGSTOP, a debugger)."
        return (
            f"Waiting since {waited:.0f} s for {job} 0 ({address}), which initialises or restores "
            f"the variables: {state}"
        )

    def _compare(self, chief: agreement.Facts) -> None:
        mine = f"{self._config.task_type} {self._config.task_id}"
        fatal, lines = agreement.differences(chief, self._facts)
        wrong = [line for line in fatal if line.startswith("variable ") and ": none," not in line]
        if wrong:
            raise ValueError(agreement.refusal([f"  {mine} has {line}" for line in wrong]))
        if lines:
            agreement.warn(mine, lines)


def check_python_ops(recorded: RecordedGraph, config: Any) -> None:
    """Refuses calls of Python functions in another process than this one, whose functions they are.

    TensorFlow says of it `KeyError: 'pyfunc_0'`, at the first step.

    Args:
        recorded: The graph of a worker.
        config: A RunConfig of its task.

    Raises:
        UnsupportedError: The message names the line of the program, and the process.
    """
    if not recorded.runs_python():
        return
    for node in recorded.nodes:
        device = tf.DeviceSpec.from_string(node.device)
        is_here = device.job == config.task_type and device.task in (None, config.task_id)
        if device.job in _HERE or is_here or not recorded.call_python([node.name]):
            continue
        traceback = recorded.graph.get_operation_by_name(node.name).traceback
        raise UnsupportedError(
            f"The program puts {node.name!r}, which calls a Python function, on {node.device}, but "
            f"the function is in this process, {config.task_type} {config.task_id}:\n"
            f"  {user_line(traceback)}\n"
            "  Make it outside of `tf.device`: then it runs on the worker."
        )
