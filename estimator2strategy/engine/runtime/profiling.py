"""Accounts for the time of a training: a line when it ends, and profiles for TensorBoard."""

from __future__ import annotations

import contextlib
import contextvars
import time
from collections.abc import Iterator
from typing import NamedTuple

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.replay.engines import Ran
from estimator2strategy.engine.replay.gauges import Gauges
from estimator2strategy.engine.worlds import modern_world

tf1 = tf.compat.v1

# The folder for profiles, if the program has not named one: what `e2s run --profile-dir` sets.
VARIABLE = "E2S_PROFILE_DIR"
# Blocks of steps that are profiled: after those that build programs, and not for long.
_FIRST_BLOCK = 3
_BLOCKS = 10
_SECONDS = 10.0


class Spent(NamedTuple):
    """Seconds of a training.

    Attributes:
        total: All of them.
        building: In blocks for which a program was built.
        steps: In other blocks of steps.
        waiting: Of those in blocks of steps, waiting for a batch; None: not measured.
        evaluating: In evaluations between blocks, with their exports.
    """

    total: float
    building: float
    steps: float
    waiting: float | None = None
    evaluating: float = 0.0


def verdict(spent: Spent, steps: int) -> str:
    """One line that says what bounds a training, and the share of each part of it."""
    total = max(spent.total, 1e-9)
    waiting = min(spent.waiting or 0.0, spent.steps)
    parts = {
        "computing": spent.steps - waiting,
        "input": waiting,
        "host": max(total - spent.steps - spent.building - spent.evaluating, 0.0),
        "building programs": spent.building,
    }
    if spent.evaluating:
        parts["evaluation"] = spent.evaluating
    bound = {
        "computing": "compute-bound",
        "input": "input-bound",
        "host": "host-bound",
        "building programs": "bound by its start",
        "evaluation": "bound by its evaluations",
    }[max(parts, key=lambda part: parts[part])]
    if spent.waiting is None:  # the two are one number
        bound = {"compute-bound": "bound by its steps"}.get(bound, bound)
        parts = {"steps": parts["computing"], **parts}
        del parts["computing"], parts["input"]
    shares = ", ".join(f"{part} {seconds / total:.0%}" for part, seconds in parts.items())
    more = "" if spent.waiting is not None else " (TrainingOptions(profile_dir=...) says more)"
    return f"{steps} steps in {total:.1f} s, {bound}: {shares}{more}"


# The profile of the training that goes on, for evaluations that hooks of it run.
_current: contextvars.ContextVar[Profile | None] = contextvars.ContextVar("profile", default=None)


@contextlib.contextmanager
def evaluating() -> Iterator[None]:
    """Counts the time of an evaluation, in the profile of the training that waits for it."""
    profile, started = _current.get(), time.perf_counter()
    try:
        yield
    finally:
        if profile:
            profile.evaluated(time.perf_counter() - started)


class Profile:
    """Follows a training, block by block.

    Args:
        folder: Where profiles go; None: none is made.

    Attributes:
        measures_input: True if steps are to add up how long they wait for batches; see `Gauges`.
    """

    def __init__(self, folder: str | None):
        self._folder = folder
        self._started = time.perf_counter()
        self._until: float | None = None
        self._blocks = 0
        self._building = self._in_steps = self._evaluating = 0.0
        # Where ops are deterministic no clock runs in a step: it would not give the same twice.
        self.measures_input = folder is not None and not _tf_private.ops_are_deterministic()

    @contextlib.contextmanager
    def block(self, step: int) -> Iterator[None]:
        """The context of a block of steps that begins after `step` steps."""
        self._blocks += 1
        if self._folder and self._blocks == _FIRST_BLOCK:
            tf.profiler.experimental.start(self._folder)
            self._until = time.perf_counter() + _SECONDS
        if self._until is None:
            yield
            return
        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            yield
        if self._blocks >= _FIRST_BLOCK + _BLOCKS - 1 or time.perf_counter() > self._until:
            self.stop()

    def ran(self, block: Ran) -> None:
        """Takes note of a block that is done."""
        if block.built:
            self._building += block.seconds
        else:
            self._in_steps += block.seconds

    def evaluated(self, seconds: float) -> None:
        """Takes note of an evaluation."""
        self._evaluating += seconds

    @contextlib.contextmanager
    def current(self) -> Iterator[None]:
        """Makes this the profile to which `evaluating` adds, while the body runs."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)
            self.stop()

    def stop(self) -> None:
        """Writes the profile, if one is being made."""
        if self._until is not None:
            self._until = self._folder = None
            tf.profiler.experimental.stop()

    def verdict(self, steps: int, gauges: Gauges) -> str:
        """Returns one line that says what bounded the training; see the function `verdict`."""
        total = time.perf_counter() - self._started
        with modern_world():
            waited = gauges.waited() if self.measures_input else None
        spent = Spent(total, self._building, self._in_steps, waited, self._evaluating)
        return verdict(spent, steps)
