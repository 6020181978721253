"""Shows the progress of a training: step, loss, steps/s, time left, and when it compiles.

On a terminal it is one live line. Elsewhere nothing is shown, because logs look as Estimator's
always did; `e2s run`, whose user may have switched the log off, has a plain line once a minute.
"""

from __future__ import annotations

import contextlib
import logging
import math
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

_plain_every: float | None = None  # seconds


def show_plain_lines(every: float | None) -> None:
    """Prints a line every so many seconds from now on, unless stderr is a terminal; None: none."""
    global _plain_every
    _plain_every = every


class Progress(Protocol):
    """The events that a training reports."""

    def compiling(self) -> None:
        """Reports that a new program is being built, which takes a while."""

    def show(self, step: int, loss: Any) -> None:
        """Reports that `step` steps are done, and the loss of the last one."""


class LiveLine:
    """A line on a terminal that changes in place.

    Args:
        first_step: Global step at which this call of `train` starts.
        last_step: Global step at which it ends; infinite where the input decides.
    """

    def __init__(self, first_step: int, last_step: float):
        self._bar = tqdm(
            initial=first_step,
            total=None if math.isinf(last_step) else int(last_step),
            unit=" steps",
            dynamic_ncols=True,
            leave=False,
            disable=None,  # where stderr is no terminal
        )

    @property
    def is_shown(self) -> bool:
        return not self._bar.disable

    def compiling(self) -> None:
        """Says in the line that a program is being built."""
        self._bar.set_description("compiling")

    def show(self, step: int, loss: Any) -> None:
        """Shows step and loss in the line."""
        if self.is_shown:
            self._bar.set_description("training", refresh=False)
            self._bar.set_postfix_str(f"loss {float(loss):.4g}", refresh=False)
            self._bar.update(step - self._bar.n)

    def close(self) -> None:
        self._bar.close()


class PlainLines:
    """Lines for a file or a pipe.

    Args:
        first_step, last_step: As of LiveLine.
        every: Seconds between two lines.
        clock: Gives the time in seconds.
    """

    def __init__(
        self,
        first_step: int,
        last_step: float,
        every: float,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._last_step, self._every, self._clock = last_step, every, clock
        self._said = first_step, clock()

    def compiling(self) -> None:
        """Prints nothing: the program is built before the next line is due."""

    def show(self, step: int, loss: Any) -> None:
        """Prints a line if one is due."""
        before, at = self._said
        seconds = self._clock() - at
        if seconds < self._every:
            return
        self._said = step, at + seconds
        rate = (step - before) / max(seconds, 1e-9)
        of, left = "", ""
        if math.isfinite(self._last_step):
            of = f" of {int(self._last_step)}"
            left = f", {tqdm.format_interval((self._last_step - step) / max(rate, 1e-9))} left"
        sys.stderr.write(
            f"e2s: step {step}{of}, loss {float(loss):.4g}, {rate:.3g} steps/s{left}\n"
        )


@contextlib.contextmanager
def live_line(first_step: int, last_step: float) -> Iterator[Progress]:
    """The progress of a training for the time of the body; log lines appear above a live line."""
    line = LiveLine(first_step, last_step)
    try:
        if line.is_shown:
            with logging_redirect_tqdm([logging.getLogger("tensorflow")]):
                yield line
        elif _plain_every is None:
            yield line
        else:
            yield PlainLines(first_step, last_step, _plain_every)
    finally:
        line.close()
