"""The interface of a contender, and the gate that lets contenders take turns.

class Loop(Contender):
    def train(self, chunks, gate):
        for _ in range(chunks + 1):  # one to warm up
            self.run(self.model.train_chunk)
            gate()
"""

from __future__ import annotations

import abc
import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from benchmarks.models import Model

STEPS_PER_EXECUTION = 50


class Channel:
    """The conversation with the parent: it writes a line, we do a piece of work and answer."""

    def __init__(self, commands: TextIO, answers: TextIO) -> None:
        self._commands, self._answers = commands, answers

    def wait(self) -> None:
        """Blocks until it is this process's turn."""
        if not self._commands.readline():
            raise SystemExit("The parent process is gone.")

    def tell(self, **answer: Any) -> None:
        """Answers with one line of JSON."""
        self._answers.write(json.dumps(answer) + "\n")
        self._answers.flush()


class Gate:
    """Called by a running training loop after every chunk: reports it, then waits for its turn.

    The first call ends the warm-up; `chunks` more calls follow, each `seconds` after its release.
    The last one does not wait.
    """

    def __init__(self, channel: Channel, chunks: int) -> None:
        self._channel, self._left = channel, chunks
        self._released: tuple[float, float] | None = None

    def __call__(self, steps: int | None = None) -> None:
        """Reports the time since the release; `steps` is what the loop says it ran."""
        seconds, cpu = time.perf_counter(), time.process_time()
        if self._left < 0:
            return
        if self._released is None:
            self._channel.tell()
        else:
            started, cpu_started = self._released
            cpu -= cpu_started
            self._channel.tell(seconds=seconds - started, cpu_seconds=cpu, steps=steps)
        self._left -= 1
        if self._left >= 0:
            self._channel.wait()
        self._released = time.perf_counter(), time.process_time()

    def check(self) -> None:
        """Raises if training ended before all chunks were reported."""
        if self._left >= 0:
            raise RuntimeError(f"Training ended {self._left + 1} chunks early.")


class Contender(abc.ABC):
    """One way to train a model; lives in a process of its own."""

    model: Model

    @abc.abstractmethod
    def start(self) -> dict[str, float]:
        """Builds everything and runs the first 50 steps; returns further timings in seconds."""

    @abc.abstractmethod
    def train(self, chunks: int, gate: Gate) -> None:
        """Trains for `chunks + 1` chunks without leaving the loop; calls `gate` after each."""

    @abc.abstractmethod
    def prepare_evaluation(self) -> None:
        """Whatever must be done once before `evaluate`."""

    @abc.abstractmethod
    def evaluate(self, steps: int) -> None:
        """Evaluates `steps` batches: mean loss and accuracy."""

    @abc.abstractmethod
    def predict(self, steps: int) -> None:
        """Brings the probabilities of `steps` batches to the host."""

    def extras(self) -> dict[str, Callable[[], Any]]:
        """Further work to time: what it is called in the results -> the work."""
        return {}
