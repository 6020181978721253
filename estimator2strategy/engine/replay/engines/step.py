"""The values that engines share: the definition of a step, a request, the outcome of a run.

Example:

    from estimator2strategy.engine.replay.engines import engine_for

    step = Step("train/Adam", loss="loss:0", how=How.LOOP)
    request = Request(tensors=("loss:0",), ops=("train/Adam",))
    ran = engine_for(replay, step, request).run(100, ())
    ran.steps, ran.stopped          # 37, Stopped.END_OF_INPUT
"""

from __future__ import annotations

import abc
import dataclasses
import enum
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from estimator2strategy.engine.replay.next_batch import NextBatch, NextBatches


class How(enum.Enum):
    """The ways to run steps; see the table of `engine_for`."""

    LOOP = "loop"
    ONE_BY_ONE = "one by one"
    PIPELINED = "pipelined"
    JIT = "jit"
    TOGETHER = "together"


class Stopped(enum.Enum):
    """The reason why a run ended."""

    COMPLETED = "completed"
    NAN_LOSS = "NaN loss"
    END_OF_INPUT = "end of input"


# Returns this process's next batch, if every process has one.
TakeTogether = Callable[[], list[tf.Tensor]]


@dataclasses.dataclass(frozen=True)
class Step:
    """The definition of one step of a session.

    Attributes:
        op: Name of the op that runs once a step.
        how: The way to run steps.
        loss: Name of a scalar, the loss; None: there is none.
        stops_at_nan: True if a block of steps ends early when the loss is NaN, so that hooks see
            the very step that went wrong.
        counter: VarHandleOp of the variable that is read after each block (the global step), which
            then comes with the block's results: a read of its own costs as much as a small step.
        keeps_loss: True if `loss` is kept at every step (see `Gauges`), because the input may end
            in the middle of a block.
        measures_input: True if waits for batches are added up (see `Gauges`).
        checks_compiled: True if a program that XLA compiled returns the failures that it would
            not report, and the step then fails.
        take_together: With `How.TOGETHER`, makes of a NextBatch the function that takes a batch in
            step with the other processes. None: each process takes its own.
    """

    op: str
    how: How = How.LOOP
    loss: str | None = None
    stops_at_nan: bool = True
    counter: str | None = None
    keeps_loss: bool = False
    measures_input: bool = False
    checks_compiled: bool = False
    take_together: Callable[[NextBatch | NextBatches], TakeTogether] | None = None


class Request(NamedTuple):
    """The fetches and feeds of a run, by name.

    Attributes:
        tensors: The tensors to return.
        ops: The ops to run.
        feeds: The tensors that are given a value, the same at every step.
    """

    tensors: tuple[str, ...]
    ops: tuple[str, ...] = ()
    feeds: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all tensors and ops of the request."""
        return (*self.tensors, *self.ops)


class Ran(NamedTuple):
    """The outcome of a run.

    Attributes:
        steps: The number of steps that ran.
        results: Values of the request's tensors at the last step.
        stopped: Why it ended.
        nan_since: If the loss is NaN, the step since which it is, counted from 1; one of an earlier
            run is 0, -1, ... None: it is not, or nobody watched it.
        counter: Value of the step's counter after it, if it has one.
        built: True if a program had to be built for it.
        seconds: The time that it took.
    """

    steps: int
    results: list[tf.Tensor]
    stopped: Stopped = Stopped.COMPLETED
    nan_since: int | None = None
    counter: tf.Tensor | None = None
    built: bool = False
    seconds: float = 0.0


class Engine(abc.ABC):
    """Runs one request, again and again.

    Attributes:
        functions: The ConcreteFunctions behind it, to be bound to other state.
        on_device: True if it works on the values that devices of JAX have.
    """

    on_device = False

    functions: tuple[Any, ...]

    @abc.abstractmethod
    def run(self, steps: int, feeds: Sequence[tf.Tensor]) -> Ran:
        """Runs up to `steps` steps. Must be called in the `modern_world`.

        Args:
            steps: At least 1.
            feeds: A value for each of the request's feeds.
        """

    def retire(self) -> None:  # noqa: B027  most engines keep nothing
        """Drops what was kept of the input; called when the state is freed."""


def has_nan(loss: tf.Tensor) -> bool:
    """Returns True if a computed loss is NaN; an op for that would cost more than a small step."""
    return bool(np.isnan(loss.numpy()).any())
