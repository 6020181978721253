"""Another way to run blocks of steps, tried once it pays and kept only where it is faster."""

from __future__ import annotations

import math
from collections import deque
from statistics import median
from typing import Literal, TypeAlias

Wish: TypeAlias = Literal["", "may", "must"]


class Trial:
    """Measures blocks one way, then another way, and decides.

    The program for the other way costs time to build: about twice that of the first block, which
    built the one for this way. So it is made when ten times that time is left; where the end is not
    known, as much is taken to be left as is behind. The other way may be many times as slow, and
    gets few steps at first. Then some blocks run this way and that in turns, and medians decide:
    a program becomes faster as it goes on, and others may use the machine.

    Args:
        asked: What the program asks for: that way, this way, or the faster.

    Attributes:
        on: Whether blocks run the other way now.
    """

    _PAYS_AFTER = 10
    _SETTLED_AFTER = 2.0  # seconds: tf.data finds out meanwhile how to be fast
    _FEW = 8
    _HOPELESS = 4
    _BLOCKS = 3

    def __init__(self, asked: bool | Literal["auto"]):
        self.on = False
        self.decided = asked != "auto"
        self._tried = False
        self._always = asked is True
        self._few_left = 2
        self._blocks = 0
        self._building = self._elapsed = 0.0
        # Seconds per step of blocks that built nothing, each way.
        self._this_way: deque[float] = deque(maxlen=self._BLOCKS)
        self._other_way: deque[float] = deque(maxlen=self._BLOCKS)

    def choice(self, left: float) -> Wish:
        """What a field of `Step` should be for the next block.

        Args:
            left: How many steps are left; infinite: as long as there is input.
        """
        if self._always:
            return "must"
        if not self._tried and not self.decided and self._this_way:
            seconds = self._elapsed if math.isinf(left) else left * median(self._this_way)
            settled = self._elapsed > self._SETTLED_AFTER
            self._tried = self.on = settled and seconds > self._PAYS_AFTER * self._building
        return "may" if self.on else ""

    def most(self) -> float:
        """How many steps the next block should have: few, until it is known to be fast."""
        return self._FEW if self._is_careful() else math.inf

    def ran(self, steps: int, seconds: float) -> None:
        """Takes note of a block."""
        per_step = seconds / max(steps, 1)
        self._blocks += 1
        self._elapsed += seconds
        if self._is_careful():
            self._few_left -= 1  # the first of them has built the program
            if not self._few_left and per_step > self._HOPELESS * median(self._this_way):
                self.decided, self.on = True, False
        elif self._blocks == 1:
            self._building = seconds
        elif not self.decided:
            (self._other_way if self.on else self._this_way).append(per_step)
            if self._tried:
                self._take_turns()

    def _take_turns(self) -> None:
        if len(self._other_way) < self._BLOCKS:
            self.on = not self.on
        else:
            self.decided = True
            self.on = median(self._other_way) <= median(self._this_way)

    def _is_careful(self) -> bool:
        return self.on and not self.decided and self._few_left > 0


class DeviceLoopTrial(Trial):
    """Tries a device loop (`replay.device_loop`).

    Args:
        execution: What the program asks for: "loop", "device_loop" or "auto".
    """

    def __init__(self, execution: str):
        super().__init__("auto" if execution == "auto" else execution == "device_loop")


class CompiledTrial(Trial):
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
