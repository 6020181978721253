"""Makes SIGTERM and Ctrl-C stop a training as a hook would: it saves, then the process ends.

Example:

    with Interruption() as interruption:
        while not interruption.requested:
            ...                        # one execution after the other
        ...                            # save
    # here KeyboardInterrupt or SystemExit(143) was raised, if there was a signal
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from types import FrameType
from typing import Any

import tensorflow as tf

from estimator2strategy.engine import patches

tf1 = tf.compat.v1

# The signals, each with the handler that says that the program left the signal to Python.
_UNTOUCHED = {signal.SIGTERM: signal.SIG_DFL, signal.SIGINT: signal.default_int_handler}


# How long Python may take to act on the second signal before the process is ended.
_PATIENCE = 1.0


class Interruption:
    """While it is open, the first SIGTERM or SIGINT is noted, and acts when it is closed.

    A second one acts at once, as it would have without this class. If TensorFlow is at work in the
    main thread then, so that Python cannot act, the process ends without more ado.

    Where the program has a handler of its own for a signal (or ignores the signal) that one stays,
    and this class does nothing about it. It does nothing either in other threads than the main one,
    where Python allows no handlers.

    Args:
        same_seconds: A signal that comes again so soon is the same: sent to a process, and to its
            group.

    Raises:
        KeyboardInterrupt: On closing, after a SIGINT.
        SystemExit: On closing, after a SIGTERM; the code is 143, which shells give such an end.
    """

    def __init__(self, same_seconds: float = 0.5) -> None:
        self._same_seconds = same_seconds
        self._received: signal.Signals | None = None
        self._when = 0.0
        self._before: dict[signal.Signals, Any] = {}
        self._acted = threading.Event()
        self._wakeup: socket.socket | None = None

    @property
    def requested(self) -> bool:
        """True if the training should stop."""
        return self._received is not None

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            patches.noted("signals")
            for number, untouched in _UNTOUCHED.items():
                if signal.getsignal(number) == untouched:
                    self._before[number] = signal.signal(number, self._note)
            if self._before:
                self._watch()
        return self

    def _watch(self) -> None:
        """Starts a thread that hears of signals: Python's handlers wait for the main thread."""
        reading, writing = socket.socketpair()
        writing.setblocking(False)
        before = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
        if before != -1:  # the program watches by itself
            signal.set_wakeup_fd(before)
            reading.close()
            writing.close()
            return
        self._wakeup = writing
        watched = frozenset(self._before)
        threading.Thread(target=self._end_if_stuck, args=(reading, watched), daemon=True).start()

    def _end_if_stuck(self, reading: socket.socket, watched: frozenset[int]) -> None:
        first = None
        with reading:
            while number := reading.recv(1):
                now = time.monotonic()
                if number[0] not in watched:
                    continue
                if first is None:
                    first = now
                elif now - first > self._same_seconds and not self._acted.wait(_PATIENCE):
                    os._exit(128 + number[0])

    def _note(self, number: int, frame: FrameType | None) -> None:
        # No logging here: it is not safe wherever the signal may have struck.
        del frame
        now = time.monotonic()
        if self._received is None:
            self._received, self._when = signal.Signals(number), now
        elif now - self._when > self._same_seconds:
            self._put_back()
            signal.raise_signal(number)

    def _put_back(self) -> None:
        self._acted.set()
        for number, handler in self._before.items():
            if signal.getsignal(number) == self._note:  # else the program has set one meanwhile
                signal.signal(number, handler)
        self._before.clear()
        if self._wakeup is not None:
            signal.set_wakeup_fd(-1)
            self._wakeup.close()
            self._wakeup = None

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        self._put_back()
        if self._received is None:
            return
        if error is not None:
            tf1.logging.error("After %s training failed: %r", self._received.name, error)
        if self._received == signal.SIGINT:
            raise KeyboardInterrupt from error
        raise SystemExit(128 + self._received) from error

    def explain(self, model_dir: str) -> None:
        """Logs the interruption, once all is saved in `model_dir`."""
        if self._received is not None:
            latest = tf.train.latest_checkpoint(model_dir)
            saved = f"The latest checkpoint is {latest}." if latest else "There is no checkpoint."
            tf1.logging.warn("Training stopped by %s. %s", self._received.name, saved)
