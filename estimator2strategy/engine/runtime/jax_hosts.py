"""This process as one of several hosts that run a program together under JAX.

    join(Job("host0:2222", number=0, names=("process 0", "process 1")))    # before JAX starts
    with needed():                # an error of JAX because a host has ended names that host
        meet("training is done")  # all hosts wait for one another

The chief, which is the first, writes files for all. JAX is imported here when there is a job.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from estimator2strategy.engine import patches
from estimator2strategy.engine.plan.rewrites import SINGLE_REPLICA, WITHOUT_EVENTS, Rewrite
from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.replay import splice as splice_lib
from estimator2strategy.engine.runtime import agreement, host_watch
from estimator2strategy.engine.runtime.input_position import InputPosition
from estimator2strategy.engine.runtime.requested_job import Job, job_under_jax
from estimator2strategy.engine.runtime.saving_session import SavingSession
from estimator2strategy.engine.worlds import modern_world
from estimator2strategy.errors import DeviceError

tf1 = tf.compat.v1

# Seconds in which all processes must have come, in which they must end once one has, and in which
# the end of one is known.
_COME, _LEAVE, _KNOWN = 600, 20, 5.0

_watch: _Watch | None = None


def joined() -> Job | None:
    """The job whose other processes this one has met; None: it runs alone."""
    return _watch.job if _watch else None


def writes_files() -> bool:
    """True unless another process writes the files of the job."""
    job = joined() or job_under_jax()
    return job is None or job.is_chief


def rewrite_on_host() -> Rewrite:
    """The change to nodes that the host runs."""
    return SINGLE_REPLICA if writes_files() else WITHOUT_EVENTS


def join(job: Job) -> None:
    """Waits for the other processes, which then share their devices.

    Raises:
        DeviceError: JAX has started without them, or they do not come.
    """
    global _watch
    import jax
    from jax.experimental import multihost_utils

    patches.noted("hosts of JAX")
    with contextlib.suppress(AttributeError):  # a JAX that has no other
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
    tf1.logging.info(
        "%s of %d waits at %s for the others.", job.names[job.number], job.count, job.coordinator
    )
    try:
        jax.distributed.initialize(
            job.coordinator,
            job.count,
            job.number,
            initialization_timeout=_COME,
            shutdown_timeout_seconds=_LEAVE,
        )
        started = _Started(job) if job.is_chief else None
        port = int(multihost_utils.broadcast_one_to_all([started.port if started else 0])[0])
    except RuntimeError as error:
        raise DeviceError(
            f"{job.names[job.number]} of {job.count} has not met the others at {job.coordinator}: "
            f"{error}\n  Start all processes, with the same coordinator, within {_COME} s, and "
            "before the program uses JAX."
        ) from error
    _watch = _Watch(job, started or _Started(job, port))
    atexit.register(_watch.part)


class _Started:
    """The process that watches, see `host_watch.py`."""

    def __init__(self, job: Job, port: int = 0):
        chief = None if job.is_chief else [job.coordinator.rpartition(":")[0].strip("[]"), port]
        settings = {"names": job.names, "number": job.number, "parent": os.getpid(), "chief": chief}
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", host_watch.__file__, json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the parent
        )
        assert self.process.stdin
        assert self.process.stdout
        self.input, self.output = self.process.stdin, self.process.stdout
        self.port = 0 if chief else int(self.output.readline())


class _Watch:
    """The process that watches the others, seen from this one."""

    def __init__(self, job: Job, started: _Started):
        self.job, self._started = job, started
        self.is_lost = False

    def say(self, word: str) -> None:
        with contextlib.suppress(OSError):  # it is gone
            self._started.input.write(f"{word}\n".encode())
            self._started.input.flush()

    def ended(self) -> str | None:
        """The names of the processes that have ended; None: none has."""
        names: list[str] = []
        deadline, text = time.monotonic() + _KNOWN, b""
        output = self._started.output.fileno()
        while not names and select.select([output], [], [], max(deadline - time.monotonic(), 0))[0]:
            data = os.read(output, 4096)
            if not data:
                break
            text += data
            names = text.decode("ascii", "replace").splitlines()
        self.is_lost = bool(names)
        return ", ".join(names) or None

    def part(self) -> None:
        """Leaves the job, at the end of this process; waits for the others if all went well."""
        self.say("end")
        if not self.is_lost and not hasattr(sys, "last_value"):  # an error that nobody has caught
            self._started.process.wait()
            return
        # JAX would wait here for those that are gone, and then abort.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)


@contextlib.contextmanager
def needed() -> Iterator[None]:
    """A context in which this process needs the others.

    Raises:
        DeviceError: The body has ended with an error of JAX, because another process has ended.
    """
    if _watch is None:
        yield
        return
    import jax

    _watch.say("busy")
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        names = _watch.ended()
        if names is None:
            raise
        raise DeviceError(host_watch.ENDED % names) from error
    finally:
        _watch.say("idle")


def meet(where: str) -> None:
    """Waits for the other processes, which must call it at the same place.

    Raises:
        DeviceError: Another process is at another place, or has ended.
    """
    if _watch is None:
        return
    with needed():
        _conversation().of_each(where, [])


def _conversation() -> Any:
    """The module in which hosts tell each other something; it imports JAX."""
    from estimator2strategy.engine.replay.xla import hosts

    return hosts


class StartTogetherHook(tf1.train.SessionRunHook):
    """Gives all hosts the chief's variables, once they agree. Must be the first of all hooks.

    Raises:
        DeviceError, ValueError: As the session starts: the hosts have different models.
    """

    def __init__(self, recording: Recording):
        self._recording = recording

    def after_create_session(self, session: SavingSession, coord: Any) -> None:
        del coord
        hosts = _conversation()
        assert self._recording.jax
        meet("the start of a session")
        roots = splice_lib.inside(session.replay.splices)
        devices = len(self._recording.jax.devices)
        with modern_world(), needed():
            agreement.check(agreement.facts_of(session.recorded, roots, devices), hosts.texts)
            names = [v.handle.op.name for v in tf1.global_variables() if v.dtype != tf.string]
            variables = list(map(session.state.variable, names))
            chiefs = hosts.of_first([variable.numpy() for variable in variables])
            if not writes_files():
                for variable, value in zip(variables, chiefs, strict=True):
                    variable.assign(value, read_value=False)


class SamePlacesHook(tf1.train.SessionRunHook):
    """Puts random ops where the chief's are; says when the chief has saved. Must be the last hook.

    Args:
        position: The place in this host's input; None: nobody keeps it.
    """

    def __init__(self, position: InputPosition | None):
        self._position = position
        self._told: int | None = None

    def after_run(self, run_context: Any, run_values: Any) -> None:
        del run_context, run_values
        position = self._position
        if position is None:
            return
        with needed():
            saved = -1 if position.saved in (None, self._told) else position.saved
            saved = int(_conversation().of_each("the end of a block", [saved])[0, 0])
        self._told = position.saved
        if saved >= 0 and not writes_files():
            position.save_beside(saved)

    def after_create_session(self, session: SavingSession, coord: Any) -> None:
        del coord
        hosts, state = _conversation(), session.replay.state
        if self._position:
            self._told = self._position.saved  # as the session started
        with modern_world(), needed():
            chiefs = hosts.texts(json.dumps(state.random_places()).encode())[0]
            if not writes_files():
                state.move_random(json.loads(chiefs))


def hooks_of(
    recording: Recording, hooks: list[Any], position: InputPosition | None = None
) -> list[Any]:
    """The hooks, with those that several hosts need.

    Args:
        recording: The recording of a training or an evaluation.
        hooks: Its hooks.
        position: The place in the input, where it is kept.
    """
    if recording.jax is None or not recording.jax.of_several_hosts:
        return hooks
    return [StartTogetherHook(recording), *hooks, SamePlacesHook(position)]
