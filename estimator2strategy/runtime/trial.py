"""Another way to run blocks of steps, tried once it pays and kept only where it is faster."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias


class Trial:
    """Measures blocks one way, then another way, and decides.

    The program for the other way costs time to build: about twice that of the first block, which
    built the one for this way. So it is made when ten times that time is left; where the end is not
    known, as much is taken to be left as is behind.

    Attributes:
        on: Whether blocks run the other way now.
    """

    _PAYS_AFTER = 10

    def __init__(self) -> None:
        self.on = False
        self.decided = False
        self._blocks = 0
        self._building = self._elapsed = 0.0
        self._before = math.inf

    def wanted(self, left: float) -> bool:
        """Whether the next block should run the other way.

        Args:
            left: How many steps are left; infinite: as long as there is input.
        """
        if not self.on and not self.decided and self._blocks > 1:
            seconds = self._elapsed if math.isinf(left) else left * self._before
            if seconds > self._PAYS_AFTER * self._building:
                self.on, self._blocks = True, 0
        return self.on

    def ran(self, steps: int, seconds: float) -> None:
        """Takes note of a block."""
        self._blocks += 1
        self._elapsed += seconds
        per_step = seconds / max(steps, 1)
        if self.on:
            if self._blocks > 1 and not self.decided:  # the first one has built the program
                self.decided, self.on = True, per_step <= self._before
        elif self._blocks == 1:
            self._building = seconds
        else:
            self._before = per_step

    def give_up(self) -> None:
        """Stays with the way it was."""
        self.decided, self.on = True, False


Wish: TypeAlias = Literal["", "may", "must"]


class _CarefulTrial(Trial):
    """Tries what may be many times as slow: first with a few steps.

    Args:
        asked: What the program asks for: that it is, that it is not, or the faster.
    """

    _FEW = 8
    _HOPELESS = 4

    def __init__(self, asked: bool | Literal["auto"]):
        super().__init__()
        self._always = asked is True
        self._few_left = 2
        if asked != "auto":
            self.give_up()

    def choice(self, left: float) -> Wish:
        """What a field of `Step` should be for the next block."""
        if self._always:
            return "must"
        return "may" if self.wanted(left) else ""

    def most(self) -> float:
        """How many steps the next block should have: few, until it is known to be fast."""
        return self._FEW if self._is_careful() else math.inf

    def ran(self, steps: int, seconds: float) -> None:
        if not self._is_careful():
            super().ran(steps, seconds)
            return
        self._few_left -= 1  # the first of them has built the program
        if not self._few_left and seconds / max(steps, 1) > self._HOPELESS * self._before:
            self.give_up()
        self._blocks = 1

    def _is_careful(self) -> bool:
        return self.on and not self.decided and self._few_left > 0


class DeviceLoopTrial(_CarefulTrial):
    """Tries a device loop (`replay.device_loop`).

    Args:
        execution: What the program asks for: "loop", "device_loop" or "auto".
    """

    def __init__(self, execution: str):
        super().__init__("auto" if execution == "auto" else execution == "device_loop")


class CompiledTrial(_CarefulTrial):
    """Tries steps that XLA compiles (`replay.compiled`).

    Args:
        jit_compile: What the program asks for.
    """


class Trials:
    """One trial after the other: of a device loop, and where there is none, of compiled steps."""

    def __init__(self, execution: str, jit_compile: bool | Literal["auto"]):
        self._device_loop = DeviceLoopTrial(execution)
        self._compiled = CompiledTrial(jit_compile)

    def choices(self, left: float) -> tuple[Wish, Wish]:
        """What `Step.device_loop` and `Step.compiled` should be for the next block.

        Args:
            left: How many steps are left; infinite: as long as there is input.
        """
        device_loop = self._device_loop.choice(left)
        free = self._device_loop.decided and not device_loop
        return device_loop, self._compiled.choice(left) if free else ""

    def most(self) -> float:
        """How many steps the next block should have at most."""
        return min(self._device_loop.most(), self._compiled.most())

    def ran(self, steps: int, seconds: float) -> None:
        """Takes note of a block."""
        if not self._device_loop.on:
            self._compiled.ran(steps, seconds)
        self._device_loop.ran(steps, seconds)
