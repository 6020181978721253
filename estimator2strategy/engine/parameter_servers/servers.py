"""The server of this process, and the wait for those of the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.runtime.roll_call import can_be_reached

tf1 = tf.compat.v1

# Seconds between two looks after a while, and at first; and between two words about who is missing.
_EVERY, _SOON, _REMINDER = 1.0, 0.1, 20.0


def until_next_look(waited: float) -> float:
    """Seconds until somebody is looked for again, who was not there for `waited` seconds.

    A tenth of the wait. So processes started together begin together, and a name server is not
    asked ten times a second by each worker for one that does not come.
    """
    return min(_EVERY, max(_SOON, waited / 10))


class Servers:
    """The parameter servers of a cluster, as a worker sees them.

    TensorFlow waits for a server without an end. Here a wait has one, and names whom it is for.

    Args:
        addresses: Name -> `host:port`.
        start_secs: How long a server may take to come.
        back_secs: How long one that was there may be away: it may have been started again.
        is_there: Returns True if somebody listens at an address.
    """

    def __init__(
        self,
        addresses: Mapping[str, str],
        start_secs: float,
        back_secs: float = 30.0,
        is_there: Callable[[str], bool] = can_be_reached,
    ):
        self._addresses, self._is_there = dict(addresses), is_there
        self._start_secs, self._back_secs = start_secs, back_secs
        self._were_there = False

    def wait(self) -> None:
        """Returns when all are there.

        Raises:
            tf.errors.InternalError: One did not come in time. A MonitoredSession makes a new
                session at other errors, again and again.
        """
        began = time.monotonic()
        next_word = began + _REMINDER
        while missing := self._missing():
            waited = time.monotonic() - began
            if waited > (self._back_secs if self._were_there else self._start_secs):
                raise tf.errors.InternalError(None, None, self._verdict(missing, waited))
            if time.monotonic() > next_word:
                next_word += _REMINDER
                tf1.logging.warn(
                    "Waiting since %d s for parameter servers: nobody answers at %s.",
                    waited,
                    missing,
                )
            time.sleep(until_next_look(waited))
        self._were_there = True

    def close(self, close_session: Callable[[], None]) -> None:
        """Closes a session, or leaves it where a server is gone: TensorFlow would wait for it."""
        closing = threading.Thread(target=close_session, name="close", daemon=True)
        closing.start()
        closing.join(_EVERY)
        while closing.is_alive() and not self._missing():
            closing.join(_EVERY)

    def _missing(self) -> str:
        gone = [name for name, at in self._addresses.items() if not self._is_there(at)]
        return ", ".join(f"{name} ({self._addresses[name]})" for name in gone)

    def _verdict(self, missing: str, waited: float) -> str:
        if self._were_there:
            return (
                f"{missing} has ended in the middle of training, and with it the values of its "
                f"variables; nobody answered there for {waited:.0f} s. Start all processes again: "
                "they go on from the latest checkpoint."
            )
        return (
            f"{missing} of TF_CONFIG's cluster did not come: nobody answered there for "
            f"{waited:.0f} s. Is it started, with this address, and can this machine reach it?"
        )


def servers_of(config: Any) -> Servers:
    """The parameter servers of a RunConfig's cluster."""
    tasks = config.cluster_spec.as_dict()["ps"]
    addresses = {f"ps {index}": address for index, address in enumerate(tasks)}
    return Servers(addresses, start_secs=config.session_creation_timeout_secs)


# Address -> the server of this process there. A tf.distribute.Server lives as long as its object.
_started: dict[str, Any] = {}


def start_server(config: Any) -> Any:
    """The server of this task, started once in a process.

    Raises:
        OSError: Somebody has its port.

    Source: `_TrainingExecutor._start_std_server`, tensorflow_estimator 2.15 training.py.
    """
    address = config.cluster_spec.task_address(config.task_type, config.task_id)
    if address in _started:
        return _started[address]
    if can_be_reached(address):
        raise OSError(
            f"TF_CONFIG gives {config.task_type} {config.task_id} the address {address}, and "
            "somebody listens there already. Is the job started twice? Else choose another port, "
            "in the TF_CONFIG of all processes."
        )
    tf1.logging.info("Start Tensorflow server.")
    session_config = tf1.ConfigProto(log_device_placement=False)
    if config.session_config is not None:
        session_config.gpu_options.CopyFrom(config.session_config.gpu_options)
    _started[address] = tf.distribute.Server(
        config.cluster_spec,
        job_name=config.task_type,
        task_index=config.task_id,
        config=session_config,
        protocol=config.protocol,
        start=False,
    )
    _started[address].start()
    return _started[address]


def has_server(config: Any) -> bool:
    """True if a server answers at this task's address: the program may have started its own."""
    return can_be_reached(config.cluster_spec.task_address(config.task_type, config.task_id))
