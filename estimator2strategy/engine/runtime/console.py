"""One live line on a terminal: step, loss, steps/s, time left, and when it is compiling.

Where the output is no terminal nothing is shown: logs look as Estimator's always did.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Iterator
from typing import Any

from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm


class LiveLine:
    """Shows the progress of training.

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

    def compiling(self) -> None:
        """Shows that a new program is being built, which takes a while."""
        self._bar.set_description("compiling")

    def show(self, step: int, loss: Any) -> None:
        """Shows that `step` steps are done, and the loss of the last one."""
        if not self._bar.disable:
            self._bar.set_description("training", refresh=False)
            self._bar.set_postfix_str(f"loss {float(loss):.4g}", refresh=False)
            self._bar.update(step - self._bar.n)

    def close(self) -> None:
        self._bar.close()


@contextlib.contextmanager
def live_line(first_step: int, last_step: float) -> Iterator[LiveLine]:
    """A LiveLine for the time of the body; log lines appear above it."""
    line = LiveLine(first_step, last_step)
    try:
        if line._bar.disable:
            yield line
        else:
            with logging_redirect_tqdm([logging.getLogger("tensorflow")]):
                yield line
    finally:
        line.close()
