"""Watches the other processes of a cluster, and names the one that is not there, or not at work.

TensorFlow waits for a process that never comes, and for one that has died, without a word. Who has
not come is said by a process of its own, `roll_call.py`; who goes in the middle of training, by a
thread: while TensorFlow waits, Python's main thread does too.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.runtime import roll_call
from estimator2strategy.engine.runtime.roll_call import can_be_reached
from estimator2strategy.engine.runtime.tf_config_form import tasks_of

tf1 = tf.compat.v1

# Seconds between two looks, and until the first word about who has not come.
_EVERY, _PATIENCE = 2.0, 20.0
# Looks in a row at which a process that was there must be gone, or say nothing.
_GONE = 3
# TensorFlow's errors for it: the last one where it is the chief, who looks after the others.
_LOST = (tf.errors.AbortedError, tf.errors.UnavailableError, tf.errors.DeadlineExceededError)
# How a client of HTTP/2, which TensorFlow's servers speak, begins: a preface, and settings (none).
# The server answers with its own. Source: RFC 7540, 3.5 and 4.1.
_HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_ENDED = (
    "%s has ended in the middle of training. Start all processes again: they go on from the latest "
    "checkpoint."
)
_SILENT = (
    "%s is there, but has not answered in the middle of training: it is stopped (SIGSTOP, a "
    "debugger), or its machine is overloaded. End it, and start all processes again: they go on "
    "from the latest checkpoint."
)


def peers_of(tf_config: str | None) -> dict[str, str]:
    """Name -> address of the other processes that train in step; none where this one does not."""
    try:
        config = json.loads(tf_config or "{}")
        task = config.get("task", {})
        of_jobs = {
            f"{job} {i}": address
            for job in ("chief", "master", "worker")
            for i, address in tasks_of(job, config.get("cluster", {}).get(job, []))
        }
    except (ValueError, AttributeError, TypeError):
        return {}  # RunConfig says what is wrong with it
    me = f"{task.get('type')} {task.get('index')}"
    return {name: to for name, to in of_jobs.items() if name != me} if me in of_jobs else {}


def answers(address: str) -> bool:
    """True if a server of TensorFlow at work listens at `host:port`.

    A process that is stopped can be reached: its kernel takes the connection. It says nothing.
    """
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_EVERY) as connection:
            connection.sendall(_HELLO)
            return bool(connection.recv(1))
    except (OSError, ValueError):
        return False


class PeerWatch:
    """Looks after the other processes, until the end of this one.

    Args:
        peers: Name -> address.
        is_there: Returns True if somebody is at an address.
        abort: Called with a message when a process has gone in the middle of a training.
        answers: Returns True if the process at an address, where somebody is, is at work.

    Attributes:
        in_training: True if the others must be there now.
    """

    def __init__(
        self,
        peers: Mapping[str, str],
        is_there: Callable[[str], bool] = can_be_reached,
        abort: Callable[[str], None] = _tf_private.abort_collectives,
        answers: Callable[[str], bool] = answers,
    ):
        self._peers, self._is_there, self._abort = dict(peers), is_there, abort
        self._answers = answers
        self._absent = dict.fromkeys(peers, 0)
        self._silent = dict.fromkeys(peers, 0)
        self._seen: set[str] = set()
        self.in_training = False

    def start(self) -> None:
        """Starts the thread."""
        threading.Thread(target=self._watch, name="peers", daemon=True).start()

    def _watch(self) -> None:
        while True:
            self.look()
            time.sleep(_EVERY)

    def look(self) -> None:
        """Looks once."""
        for name, address in self._peers.items():
            if self._is_there(address):
                self._seen.add(name)
                self._absent[name] = 0
            else:
                self._absent[name] += 1
        gone = {name for name in self._seen if self._absent[name] == _GONE}
        if gone and self.in_training:
            self._abort(_ENDED % self._named(gone))
        if self.in_training:
            self._listen()

    def _listen(self) -> None:
        """Says who has become silent. TensorFlow decides how long training waits for it."""
        for name in self._seen:
            is_silent = not self._absent[name] and not self._answers(self._peers[name])
            self._silent[name] = self._silent[name] + 1 if is_silent else 0
        if silent := {name for name, looks in self._silent.items() if looks == _GONE}:
            tf1.logging.error(_SILENT, self._named(silent))

    def ended(self) -> str:
        """The error where TensorFlow has found out that some process is not at work any more."""
        there = {name for name, address in self._peers.items() if self._is_there(address)}
        silent = {name for name in there if not self._answers(self._peers[name])}
        if silent:  # those that have ended did so because of it
            return _SILENT % self._named(silent)
        return _ENDED % (self._named(set(self._peers) - there) or "Another process")

    def _named(self, names: set[str]) -> str:
        return ", ".join(f"{name} ({self._peers[name]})" for name in sorted(names))


@contextlib.contextmanager
def needed() -> Iterator[None]:
    """Watches the other processes during the body: if one has ended, so does this, with an error.

    At most of TensorFlow's errors for it a MonitoredSession makes a new session, and then another
    one, for as long as it takes.
    """
    try:
        yield
    except _LOST as error:
        others = watch()
        if others is None:
            raise
        raise tf.errors.InternalError(None, None, others.ended()) from error


_watch: PeerWatch | None = None
_roll_call: subprocess.Popen[bytes] | None = None  # kept, for it is not waited for


def watch() -> PeerWatch | None:
    """The watch of this process, started at the first call; None if it trains alone."""
    global _watch, _roll_call
    tf_config = os.environ.get("TF_CONFIG")
    if _watch is None and tf_config and (peers := peers_of(tf_config)):
        _watch = PeerWatch(peers)
        _watch.start()
        cluster, task = (json.loads(tf_config)[field] for field in ("cluster", "task"))
        if "ps" not in cluster:  # else workers need not wait for each other
            command = [sys.executable, "-I", "-S", roll_call.__file__, json.dumps(peers)]
            with contextlib.suppress(OSError):  # where no process may be started
                _roll_call = subprocess.Popen([*command, str(os.getpid()), str(_PATIENCE)])
            mine = dict(tasks_of(task["type"], cluster[task["type"]]))
            _warn_of_port(mine[int(task["index"])])
    return _watch


def _warn_of_port(mine: str) -> None:
    """Names this process's address if somebody has it; TensorFlow says `Could not start gRPC`."""
    may_be_ours = _tf_private.has_started() or multiprocessing.parent_process() is not None
    if not may_be_ours and can_be_reached(mine):
        tf1.logging.error(
            "TF_CONFIG gives this process the address %s, and somebody listens there already. Is "
            "the job started twice? Else choose another port, in the TF_CONFIG of all processes.",
            mine,
        )
