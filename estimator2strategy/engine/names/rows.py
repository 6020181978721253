"""The fate of a name since TF 1.15's day, whatever library it is of.

    find("scipy.integrate.simps")    # Row(name="scipy.integrate.simps", gone="1.16", ...)
    find("sklearn.grid_search.x")    # of "sklearn.grid_search", which is gone
    find("keras.optimizers.Adam")    # refused={"lr"}: arguments that it has no more
    find("pandas.Series().ix")       # an attribute that objects of a class have lost
    find("itertools.izip")           # gone="3": no Python 3 has it
    find("tf.argmax")                # before, after: its arguments in TF 1.15 and in TensorFlow 2

The tables lie in `read_off/`, one for each library, and all have the columns name, fact, value. The
first rows of each say which script made it, and which release of the library it read. The other
facts:

    gone         the names in a module, or of the objects of a class, that are gone; in Python's
                 table with the release that dropped each, if one that is supported had it
    refused      the arguments that a function took once, and refuses
    most         how many arguments may stand at positions, where more could once
    further      the names of those that stood behind them; "-" for one that is gone
    before       the arguments of a function in TF 1.15
    after        the same in TensorFlow 2
    v1, v2       the public names of TensorFlow's modules, in compat.v1 and in TensorFlow 2

`today.csv` has the same columns, and is written by hand: what has the place of a name or argument.
"""

from __future__ import annotations

import csv
import functools
from pathlib import Path
from typing import NamedTuple

_FOLDER = Path(__file__).parent
# Python's own library, whose modules have a table together.
PYTHON = "Python"
TENSORFLOW = "tensorflow"


class Row(NamedTuple):
    """A name that is not what it was.

    Attributes:
        name: The name; or the one that is gone in which it lies.
        library: The library that it is of: "numpy", "Python", "tensorflow".
        release: The release that was read: "2.3".
        gone: The release that does not have it; "" if it is there.
        refused: The arguments that it took once, and refuses.
        most: How many arguments may stand at positions, where more could; None if all still may.
        further: The names of those that stood behind them; "-" for one that is gone.
        before, after: The names of its arguments in TF 1.15 and in TensorFlow 2.
    """

    name: str
    library: str
    release: str
    gone: str = ""
    refused: frozenset[str] = frozenset()
    most: int | None = None
    further: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    @property
    def today(self) -> str | None:
        """The text that says what to write in its place; None if the table has none."""
        return by_hand("today").get(self.name)


@functools.lru_cache(maxsize=4096)
def find(name: str) -> Row | None:
    """The row of a name; None if it is what it was, as far as tables know."""
    library = library_of(name)
    known = facts(library)
    lost, gone = _lost(name, library)
    if not lost and not any(name in known.get(fact, ()) for fact in ("refused", "most", "before")):
        return None
    refused, further, before, after = (
        known.get(fact, {}).get(name, "").split()
        for fact in ("refused", "further", "before", "after")
    )
    most = known.get("most", {}).get(name)
    return Row(
        lost or name,
        library,
        release(library),
        gone,
        frozenset(refused),
        None if most is None else int(most),
        tuple(further),
        tuple(before),
        tuple(after),
    )


def refused(name: str) -> frozenset[str]:
    """The arguments that a function or class took once, and refuses today."""
    row = find(name)
    return row.refused if row else frozenset()


def _lost(name: str, library: str) -> tuple[str, str]:
    """The dropped name that `name` is or lies in, and the release without it; or nothing twice."""
    parts = name.split(".")
    if parts[0] == "distutils":
        return "", ""  # setuptools brings it back
    for end, last in enumerate(parts):
        since = _gone(library).get(".".join(parts[:end]), {}).get(last)
        if since is not None:
            others = "3" if library == PYTHON else release(library)
            return ".".join(parts[: end + 1]), since or others
    return "", ""


@functools.cache
def _gone(library: str) -> dict[str, dict[str, str]]:
    """Module -> dropped name -> the release that dropped it, "" if the table's own tells."""
    return {
        module: dict(entry.partition(":")[::2] for entry in names.split())
        for module, names in facts(library).get("gone", {}).items()
    }


def library_of(name: str) -> str:
    """The library whose table may have a name."""
    top = name.partition(".")[0]
    if top == "tf":
        return TENSORFLOW
    return top if top in libraries() else PYTHON


@functools.cache
def libraries() -> frozenset[str]:
    """The libraries that have a table of their own, beside TensorFlow and Python's."""
    every = {file.stem for file in (_FOLDER / "read_off").glob("*.csv")}
    return frozenset(every - {PYTHON, TENSORFLOW})


def release(library: str) -> str:
    """The release of a library that was read: "3.15"."""
    return facts(library)["release"][library]


def read_off(name: str) -> str:
    """The library of a name, and the release that was read: "keras 3.15"."""
    library = library_of(name)
    return f"{library} {release(library)}"


@functools.cache
def facts(library: str) -> dict[str, dict[str, str]]:
    """Fact -> name -> value: a library's table."""
    return _read(_FOLDER / "read_off" / f"{library}.csv")


@functools.cache
def _today() -> dict[str, dict[str, str]]:
    return _read(_FOLDER / "today.csv")


def by_hand(fact: str) -> dict[str, str]:
    """Name -> value, for a fact of the table that is written by hand.

    `today` has the place of a dropped name, and `argument` that of a refused argument: of
    "pandas.sheetname" in all of pandas. `dropped` has names that are gone with all that is below
    them, whatever release is installed. `old` has the releases of TF 1.15's day that the names were
    read off. `of Estimators` and `of contrib` have what does the work in TensorFlow 2, by the last
    part of a name.
    """
    return _today()[fact]


def _read(path: Path) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for name, fact, value in csv.reader(file):
            found.setdefault(fact, {})[name] = value
    return found


@functools.cache
def of_objects() -> frozenset[str]:
    """The attributes of objects that are gone, or whose arguments are other ones."""
    found: set[str] = set()
    for known in map(facts, libraries()):
        for of, names in known.get("gone", {}).items():
            if of.endswith("()"):
                found.update(names.split())
        for fact in ("refused", "most"):
            found.update(name.partition("().")[2] for name in known.get(fact, ()))
    return frozenset(found) - {""}
