"""The libraries that are known, of `table.csv`, and the releases of them that are installed.

    find("tensorflow_ranking", "0.5.5").world     # "2.15"
    installed("tensorflow_ranking", folder)       # "0.5.5"
    lost("tensorflow_hub.Module", "0.16.1")       # the row of 0.15, whose releases have the name

A row holds for the releases below `below`, or for all that no row before it holds for. `world` is
the TensorFlow that the library was written for; empty, where it runs on that of the program.
`dropped.csv` has the names that the releases from `below` on lack. Libraries of world "today" run
on the TensorFlow that is installed: they are left alone, and only what they need is known.
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import re
from pathlib import Path

TODAY = "today"


@dataclasses.dataclass(frozen=True)
class Library:
    """A library that was written for Estimators.

    Attributes:
        module: The name that programs import.
        distribution: The name that pip knows.
        below: The first release that the row does not hold for; "" if it holds for all.
        world: "1.15", "2.15", "" for that of the program, or TODAY.
        release: The newest one that the row holds for.
        beside: Distributions that have to be installed with it, without their dependencies.
        needs: Others that it imports, and that neither TensorFlow nor this package brings along.
    """

    module: str
    distribution: str
    below: str
    world: str
    release: str
    beside: tuple[str, ...]
    needs: tuple[str, ...]

    @property
    def install(self) -> str:
        """The command that installs it beside today's TensorFlow, which its own pins refuse."""
        alone = " ".join([f"{self.distribution}=={self.release}", *self.beside])
        command = f"pip install --no-deps {alone}"
        return f"{command} && {pip_install(*self.needs)}" if self.needs else command


def pip_install(*requirements: str) -> str:
    """The command that installs requirements: `pip install "setuptools<82"`."""
    return " ".join(["pip install", *(f'"{r}"' if "<" in r else r for r in requirements)])


@functools.cache
def rows() -> tuple[Library, ...]:
    """All rows, in their order."""
    return tuple(
        Library(
            **{**row, "beside": tuple(row["beside"].split()), "needs": tuple(row["needs"].split())}  # type: ignore[arg-type]
        )
        for row in _read("table.csv")
    )


def _read(name: str) -> list[dict[str, str]]:
    with (Path(__file__).parent / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@functools.cache
def dropped() -> dict[str, frozenset[str]]:
    """Module -> the names in it that its releases of today lack."""
    return {row["module"]: frozenset(row["names"].split()) for row in _read("dropped.csv")}


def lost(name: str, release: str) -> Library | None:
    """The row whose releases have a name that this one lacks; None if it has it, or none had.

    Args:
        name: A module of the table, and a name in it: "tensorflow_hub.Module".
        release: The release in question; "" stands for the newest.
    """
    module, _, rest = name.partition(".")
    if rest.partition(".")[0] not in lost_names(module, release):
        return None
    return next(row for row in reversed(known(module)) if row.below)


def lost_names(module: str, release: str) -> frozenset[str]:
    """The names that a release of a library lacks; "" stands for the newest."""
    has_all = release and find(module, release)
    return frozenset() if has_all else dropped().get(module, frozenset())


def known(module: str) -> tuple[Library, ...]:
    """The rows of a module; none if the table does not know it."""
    return tuple(row for row in rows() if row.module == module)


def find(module: str, release: str) -> Library | None:
    """The row of a release; None if that release runs on the TensorFlow that is installed."""
    old = (row for row in known(module) if row.world != TODAY)
    return next((row for row in old if is_below(release, row.below)), None)


def is_below(release: str, bound: str) -> bool:
    """True if a release comes before another; also if one of them is not known."""
    return not bound or not release or _numbers(release) < _numbers(bound)


def _numbers(release: str) -> tuple[int, ...]:
    """The leading numbers of a release: (0, 5, 5) of "0.5.5.dev1"."""
    leading = re.match(r"\d+(\.\d+)*", release)
    return tuple(map(int, leading[0].split("."))) if leading else ()


def any_spelling(distribution: str) -> str:
    """The regular expression of a distribution's name, with any of the signs that pip takes."""
    return re.sub(r"[-_.]+", "[-_.]", distribution)


def installed(distribution: str, folder: Path) -> str:
    """The release of a distribution in a folder of sys.path; "" if pip has not installed it."""
    pattern = re.compile(rf"{any_spelling(distribution)}-(\d[^-]*)\.dist-info", re.IGNORECASE)
    matches = (pattern.fullmatch(path.name) for path in folder.glob("*.dist-info"))
    return next((match[1] for match in matches if match), "")
