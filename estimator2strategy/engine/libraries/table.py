"""The libraries that are known, of `table.csv`, and the releases of them that are installed.

    find("tensorflow_ranking", "0.5.5").world     # "2.15"
    installed("tensorflow_ranking", folder)       # "0.5.5"

A row holds for the releases below `below`, or for all that no row before it holds for. `world` is
the TensorFlow that the library was written for; empty, where it runs on that of the program.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import re
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Library:
    """A library that was written for Estimators.

    Attributes:
        module: The name that programs import.
        distribution: The name that pip knows.
        below: The first release that the row does not hold for; "" if it holds for all.
        world: "1.15", "2.15", or "" for that of the program.
        needs: Packages that it imports, and that `pip install --no-deps` leaves out.
    """

    module: str
    distribution: str
    below: str
    world: str
    needs: tuple[str, ...]


@functools.cache
def rows() -> tuple[Library, ...]:
    """All rows, in their order."""
    with (Path(__file__).parent / "table.csv").open(encoding="utf-8", newline="") as file:
        return tuple(
            Library(**{**row, "needs": tuple(row["needs"].split())})  # type: ignore[arg-type]
            for row in csv.DictReader(file)
        )


def known(module: str) -> tuple[Library, ...]:
    """The rows of a module; none if the table does not know it."""
    return tuple(row for row in rows() if row.module == module)


def find(module: str, release: str) -> Library | None:
    """The row of a release; None if that release needs no Estimator any more."""
    return next((row for row in known(module) if _is_below(release, row.below)), None)


def _is_below(release: str, bound: str) -> bool:
    return not bound or not release or _numbers(release) < _numbers(bound)


def _numbers(release: str) -> tuple[int, ...]:
    """The leading numbers of a release: (0, 5, 5) of "0.5.5.dev1"."""
    leading = re.match(r"\d+(\.\d+)*", release)
    return tuple(map(int, leading[0].split("."))) if leading else ()


def installed(distribution: str, folder: Path) -> str:
    """The release of a distribution in a folder of sys.path; "" if pip has not installed it."""
    name = re.sub(r"[-_.]+", "[-_.]", distribution)
    pattern = re.compile(rf"{name}-(\d[^-]*)\.dist-info", re.IGNORECASE)
    found = (pattern.fullmatch(path.name) for path in folder.glob("*.dist-info"))
    return next((match[1] for match in found if match), "")
