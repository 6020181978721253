"""Numbers from several cores against those of one device.

Example:

    differences = compare({"loss": 0.51}, {"loss": 0.5})
    differences[0].ratio        # 1.02: as if the one were so many times the other
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

# How far apart equal computations may be, relative to the largest number of a tensor: sums in
# another order. By the precision that the numbers were made in.
_RELATIVE = {"bfloat16": 3e-2, "float16": 5e-3}
_OTHERWISE = 2e-4
_ABSOLUTE = 1e-7


@dataclasses.dataclass(frozen=True)
class TensorDifference:
    """A tensor that is another one on several cores.

    Attributes:
        name: Its name.
        relative: Largest difference, relative to the largest number.
        ratio: What to multiply one device's numbers with to get the cores'; None if no one number
            does it.
        cores, one: A number of each, to show.
    """

    name: str
    relative: float
    ratio: float | None
    cores: float
    one: float

    @property
    def words(self) -> str:
        times = f", {self.ratio:.4g} times as much" if self.ratio is not None else ""
        return (
            f"{self.name} is {self.cores:.6g} on the cores and {self.one:.6g} on one device{times}"
        )


def compare(
    cores: Mapping[str, np.ndarray], one: Mapping[str, np.ndarray], precision: str = "float32"
) -> list[TensorDifference]:
    """The tensors in both that differ, in the order of `cores`."""
    names = [name for name in cores if name in one]
    found = (difference(name, cores[name], one[name], precision) for name in names)
    return [found_one for found_one in found if found_one is not None]


def difference(
    name: str, cores: np.ndarray, one: np.ndarray, precision: str = "float32"
) -> TensorDifference | None:
    """The difference of two arrays; None if they are equal."""
    cores, one = (np.asarray(x, np.float64) for x in (cores, one))
    if cores.shape != one.shape or not cores.size:
        return None
    apart = np.abs(cores - one)
    scale = max(float(np.max(np.abs(one))), float(np.max(np.abs(cores))))
    tolerance = _RELATIVE.get(precision, _OTHERWISE)
    if np.array_equal(np.isnan(cores), np.isnan(one)) and np.isnan(cores).all():
        return None
    worst = float(np.nanmax(apart)) if not np.isnan(apart).all() else float("inf")
    if worst <= tolerance * scale + _ABSOLUTE and not np.isnan(apart).any():
        return None
    place = np.unravel_index(int(np.nanargmax(apart)) if worst < np.inf else 0, apart.shape)
    return TensorDifference(
        name, worst / max(scale, _ABSOLUTE), _ratio(cores, one, tolerance), cores[place], one[place]
    )


def _ratio(cores: np.ndarray, one: np.ndarray, tolerance: float) -> float | None:
    squared = float(np.vdot(one, one))
    if not squared:
        return None
    ratio = float(np.vdot(one, cores)) / squared
    left = np.max(np.abs(cores - ratio * one))
    scale = max(float(np.max(np.abs(cores))), abs(ratio) * float(np.max(np.abs(one))))
    return ratio if left <= 10 * tolerance * scale else None
