"""Watches the steps of a block for failures that XLA does not report.

    watch = Watch(recorded, failures)
    outputs = watch.without_flags(outputs)     # of a launch; does not wait for the device
    watch.tell()                               # at the end of the block

The failures are those that `swallowed` finds among the nodes of a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay.swallowed import Failure, told


class Watch:
    """The failures that steps may swallow, and the flags of launches that nobody has read yet.

    Args:
        recorded: The graph.
        failures: Those to watch for; a launch's last output has a flag for each of them. Without
            any it has no such output.
    """

    def __init__(self, recorded: RecordedGraph, failures: Sequence[Failure]):
        self.failures = tuple(failures)
        self._recorded = recorded
        self._flags: list[Any] = []

    def without_flags(self, outputs: Sequence[Any]) -> Sequence[Any]:
        """The outputs of a launch but for the flags, which are kept."""
        if not self.failures:
            return outputs
        *outputs, flags = outputs
        self._flags.append(flags)
        return outputs

    def tell(self) -> None:
        """Waits for all launches.

        Raises:
            InvalidArgumentError: A step has failed; it names the op and the user's line.
        """
        flags, self._flags = self._flags, []
        count = len(self.failures)
        if not flags:
            return
        of_steps = [np.asarray(of_launch).reshape(-1, count) for of_launch in flags]
        happened = np.concatenate(of_steps).any(axis=0)
        failures = [self.failures[number] for number in np.flatnonzero(happened)]
        if failures:
            messages = [told(self._recorded, failure) for failure in failures]
            raise tf.errors.InvalidArgumentError(None, None, "\n".join(messages))
