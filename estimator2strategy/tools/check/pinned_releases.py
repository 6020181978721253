"""The release of a library that a program's requirements ask for: read, never installed.

    pinned("tensorflow-hub", "/project/trainer/task.py")      # "0.15.0"

The files that are read are those of `_FILES`, in the folder of the program's file and above it; the
nearest one that names the library counts.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from estimator2strategy.engine.libraries import table

_FILES = ("requirements*.txt", "setup.py", "setup.cfg", "pyproject.toml", "environment.y*ml")
# How many folders above a file its requirements may lie.
_CLIMB = 6
_LONGEST = 200_000
_EXACT = ("===", "==", "=", "~=")
_BOUND = re.compile(r"(===?|~=|<=|>=|<|>|!=|=)\s*[\"']?[\^~]?(\d[\d.]*)")


def pinned(module: str, path: str) -> str:
    """The release of a library of the table; "" if none is asked for, or the newest will do."""
    bounds = _asked(table.known(module)[-1].distribution, path)
    return _release(module, bounds) if bounds else ""


def admits(requirement: str, library: str, path: str) -> bool:
    """True if a program gets a release that a requirement of a library admits.

    Args:
        requirement: A distribution, and the first release that is too new: "setuptools<82".
        library: The one that needs it. Where it is installed, programs are thought to run.
        path: The program's file.
    """
    distribution, _, below = requirement.partition("<")
    bounds = _asked(distribution, path)
    if bounds is not None and not below:
        return True
    if bounds:
        exact = next((bounds[one] for one in (*_EXACT, "<=") if one in bounds), "")
        if exact:
            return table.is_below(exact, below)
        return "<" in bounds and not table.is_below(below, bounds["<"])
    release = _installed(library) and _installed(distribution)
    return bool(release) and table.is_below(release, below)


def _installed(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


def _asked(distribution: str, path: str) -> dict[str, str] | None:
    """The bounds of a distribution in the nearest file that names it; None if none does."""
    for folder in list(Path(path).resolve().parents)[:_CLIMB]:
        for text in _texts(folder):
            bounds = _bounds(distribution, text)
            if bounds is not None:
                return bounds
        if (folder / ".git").exists():
            break
    return None


@functools.lru_cache(maxsize=64)
def _texts(folder: Path) -> tuple[str, ...]:
    files: Iterator[Path] = (file for name in _FILES for file in sorted(folder.glob(name)))
    return tuple(
        file.read_text(encoding="utf-8", errors="replace")
        for file in files
        if file.is_file() and file.stat().st_size < _LONGEST
    )


def _bounds(distribution: str, text: str) -> dict[str, str] | None:
    """The operators and releases that follow a distribution's name; None if it is not named."""
    name = table.any_spelling(distribution)
    found = re.search(rf"(?<![\w.-]){name}(?:\[[^]\n]*])?(?![\w-])([^#;\n]*)", text, re.IGNORECASE)
    if found is None:
        return None
    # A list of several may stand on one line, each in quotes.
    rest = re.split(r"[\"'],", found[1])[0]
    return {operator: release.rstrip(".") for operator, release in _BOUND.findall(rest)}


def _release(module: str, bounds: dict[str, str]) -> str:
    for operator in (*_EXACT, "<="):
        if operator in bounds:
            return bounds[operator]
    if "<" in bounds:
        fitting = [
            row.release for row in table.known(module) if table.is_below(row.release, bounds["<"])
        ]
        return fitting[-1] if fitting else ""
    least = bounds.get(">=", "")
    return least if least and table.find(module, least) is None else ""
