"""Finds the largest batch whose step fits into a TPU's memory, with few compilations.

    fit = largest(compile_batch, start=8, first=compile_batch(8))
    fit.batch, fit.too_large        # 184 fits, 192 does not

Memory grows about linearly with the batch. So the next guess lies where the line through the last
results meets the limit. Only batches that were compiled count as the answer.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from estimator2strategy.engine.xla.tpu_compiler import Compiled, CompileStatus

# TPUs pad batches to multiples of 8.
_GRAIN = 8
# How many steps of precision there are below the answer: within 3 percent.
_PARTS = 32
_MOST = 1 << 17
_ATTEMPTS = 24


@dataclasses.dataclass(frozen=True)
class Fit:
    """The answer of a search.

    Attributes:
        batch: The largest batch of one device that was compiled and fits; 0: not even one example.
        too_large: The smallest that was compiled and does not fit; None: the search ended before.
        best: The compiler's answer for `batch`; None if there is none.
        tried: All batches that were compiled, with what the compiler said, in their order.
        failed: A compilation that ended otherwise, and the search with it.
    """

    batch: int
    too_large: int | None
    best: Compiled | None
    tried: tuple[tuple[int, Compiled], ...]
    failed: Compiled | None = None


def largest(compile_batch: Callable[[int], Compiled], start: int, first: Compiled) -> Fit:
    """Searches from `start` on.

    Args:
        compile_batch: Compiles the step for so many examples on a device.
        start: The first batch size, at least 1.
        first: The compiler's answer for `start`: it fits, or it is too large.
    """
    tried = {start: first}
    batch = _next(tried)
    while batch is not None and len(tried) < _ATTEMPTS:
        result = tried[batch] = compile_batch(batch)
        if result.status not in (CompileStatus.COMPILES, CompileStatus.TOO_LARGE):
            return _fit(tried, failed=result)
        batch = _next(tried)
    return _fit(tried)


def _fit(tried: dict[int, Compiled], failed: Compiled | None = None) -> Fit:
    fitting = [batch for batch, result in tried.items() if result.status is CompileStatus.COMPILES]
    over = [batch for batch, result in tried.items() if result.status is CompileStatus.TOO_LARGE]
    batch = max(fitting, default=0)
    return Fit(
        batch,
        min((b for b in over if b > batch), default=None),
        tried.get(batch),
        tuple(tried.items()),
        failed,
    )


def _next(tried: dict[int, Compiled]) -> int | None:
    """The next batch to compile; None when the answer is near enough."""
    below = max((b for b, result in tried.items() if result.fits), default=0)
    above = min((b for b, result in tried.items() if not result.fits), default=None)
    grain = grain_of(below)
    if above is None:
        if below >= _MOST:
            return None
        guess = max(_guess(tried, below) // grain * grain, below + grain)
        return min(guess, 16 * below, _MOST)
    if above - below <= grain:
        return None
    guess = min(max(_guess(tried, below), below + grain), above - 1)
    guess = max(guess // grain * grain, below + 1)
    # A poor guess moves one end a little each time; halving ends that.
    if len(tried) > 6:
        guess = max((below + above) // 2 // grain * grain, below + 1)
    return guess


def grain_of(batch: int) -> int:
    """The distance from the answer that is near enough, at a batch that fits."""
    if batch < _GRAIN:
        return 1
    grain = _GRAIN
    while grain * 2 * _PARTS <= batch:
        grain *= 2
    return grain


def _guess(tried: dict[int, Compiled], below: int) -> int:
    """The batch at which the line through the two results nearest to the limit meets it."""
    known = {b: result.peak_bytes for b, result in tried.items() if result.peak_bytes}
    if not known:
        return max(below * 2, 1)
    limit = next(iter(tried.values())).tpu.hbm_bytes
    nearest = sorted(known, key=lambda b: abs(known[b] - limit))[:2]
    if len(nearest) == 2 and known[nearest[0]] != known[nearest[1]]:
        one, other = nearest
    else:  # as if without a batch only what is given to the step were there
        one, other = nearest[0], 0
        known[0] = min(next(iter(tried.values())).argument_bytes, known[one] - 1)
    slope = (known[one] - known[other]) / (one - other)
    if slope <= 0:
        return max(below * 2, 1)
    return max(int(one + (limit - known[one]) / slope), 1)
