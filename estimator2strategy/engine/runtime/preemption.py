"""A TPU that is lost while a session uses it: started again, and how often.

TensorFlow's MonitoredSession makes a new session where a run ends with Aborted or Unavailable. For
a TPUEstimator that meant: the TPU is started again, the latest checkpoint is restored, training
goes on. So it is here, but not for ever.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.replay.tpu_variables import is_tpu
from estimator2strategy.engine.runtime import tpu_system
from estimator2strategy.errors import DeviceError

# Source: `_PREEMPTION_ERRORS`, tensorflow/python/training/monitored_session.py.
LOST = (tf.errors.AbortedError, tf.errors.UnavailableError)

# Restarts in a row of evaluations and predictions, and by default of trainings.
MAX_RESTARTS = 10

_LONGEST_PAUSE = 60.0


class Recovery:
    """Prepares the devices for a session in place of one that was lost.

    Args:
        strategy: The strategy whose replicas the sessions use; None: they use the host.
        most: How many sessions in a row may be lost before one gets further than all before it.

    Attributes:
        error: The one with which the last session was lost.
    """

    def __init__(self, strategy: tf.distribute.Strategy | None, most: int = MAX_RESTARTS):
        self._strategy, self._most = strategy, most
        self._in_a_row = 0
        self._furthest = -1
        self.error: BaseException | None = None

    def got_to(self, place: int) -> None:
        """Notes how far a session got: a global step, a number of batches."""
        if place > self._furthest:
            self._furthest, self._in_a_row = place, 0

    def start_again(self) -> None:
        """Starts the TPU again, if there is one.

        Raises:
            DeviceError: Too many sessions were lost in a row.
        """
        pause = 1.0
        while True:
            self._in_a_row += 1
            if self._in_a_row > self._most:
                raise DeviceError(self._given_up()) from self.error
            try:
                if is_tpu(self._strategy):
                    tpu_system.start_again(self._strategy)
                return
            except LOST as error:
                self.error = error
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)

    def log(self, checkpoint: str | None) -> None:
        """Says that there is a new session, restored from `checkpoint`."""
        tf.compat.v1.logging.warn(
            "%s (%s). Going on from %s; restart %d of at most %d in a row.",
            "The TPU was lost, and started again" if is_tpu(self._strategy) else "A run failed",
            _first_line(self.error),
            checkpoint or "the initial values, for lack of a checkpoint",
            self._in_a_row,
            self._most,
        )

    @contextlib.contextmanager
    def explaining_the_end(self, what_is_left: Callable[[int], str]) -> Iterator[None]:
        """Around a MonitoredSession: it makes no new session for the `end` of its hooks.

        Args:
            what_is_left: Given how far the sessions got, says what is there all the same, and what
                to do.

        Raises:
            DeviceError: The TPU was lost after the last step.
        """
        try:
            yield
        except LOST as error:
            if not is_tpu(self._strategy):
                raise
            raise DeviceError(
                f"The TPU was lost after the last step: {_first_line(error)}\n"
                f"  {what_is_left(self._furthest)}"
            ) from error

    def _given_up(self) -> str:
        lost = "The TPU was lost" if is_tpu(self._strategy) else "Runs failed"
        return (
            f"{lost} {self._in_a_row} times in a row without getting any further: "
            f"{_first_line(self.error)}\n"
            f"  No more than {self._most} restarts are made in a row.\n"
            "  Training goes on from the latest checkpoint when the program is run again; "
            "TrainingOptions(max_restarts=...) has it try for longer."
        )


def _first_line(error: Any) -> str:
    if error is None:  # a hook's own
        return "Unavailable or Aborted"
    message = getattr(error, "message", None) or str(error)
    return f"{type(error).__name__}: {message.strip().splitlines()[0]}" if message else repr(error)
