"""Tables of the names of TF 1.15 and their places today; read without TensorFlow.

    contrib = symbols.read("tf1/contrib/symbols.csv", modules="tf1/contrib/modules.txt")
    contrib.find("tf.contrib.layers.python.layers.layers.conv2d").home   # "tf_slim.layers:conv2d"

A table is a CSV file with one row for each name; the columns are those of `Symbol`.
"""

from __future__ import annotations

import csv
import difflib
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

_PACKAGE = Path(__file__).parents[2]

# The releases before TF 1.15 whose public names were compared with its own.
EARLIER = ("1.4", "1.6", "1.8", "1.10", "1.12", "1.13", "1.14")


class Symbol(NamedTuple):
    """One name of TF 1.15, and what stands for it now.

    Attributes:
        name: As programs write it: `tf.contrib.data.map_and_batch`. A refused module stands for all
            names in it.
        status: `works`, where it is written anew in this package; `home`, where it lives on in an
            installed library; `refused`, where it imports and its use is an error.
        home: Its place, as `module:attribute`; a module alone is itself the value. `=tf.name` is
            another legacy module, whose names are those of this one.
        advice: The name for a migrated program; for a refused name also the reason.
        since: The version of this package from which on this is so.
        newest: The newest of `EARLIER` that had the name; "" if TF 1.15 had it.
    """

    name: str
    status: str
    home: str = ""
    advice: str = ""
    since: str = ""
    newest: str = ""

    @property
    def left(self) -> str:
        """ "TF 1.6 had it, and TF 1.8 no more"; "" for a name of TF 1.15."""
        if not self.newest:
            return ""
        following = (*EARLIER, "1.15")[EARLIER.index(self.newest) + 1]
        return f"TF {self.newest} had it, and TF {following} no more"


class SymbolTable:
    """The rows of a table, by name, and the modules of TF 1.15 that they are in.

    Attributes:
        symbols: The rows.
        modules: Names of modules, those that have no row included.
        parents: Names of what a row is directly in.
    """

    def __init__(self, symbols: Mapping[str, Symbol], modules: frozenset[str] = frozenset()):
        self.symbols = symbols
        self.modules = modules

    @functools.cached_property
    def parents(self) -> frozenset[str]:
        return frozenset(name.rpartition(".")[0] for name in self.symbols)

    def find(self, name: str) -> Symbol | None:
        """The row that decides about `name`.

        That is its own; that of the public name behind a deep one (`m.python.a.b.file.name` is
        `m.b.file.name`, `m.file.name` or `m.name`, or else `m.python.name`, which none of these
        has); or else that of the class or the refused module that it is in.
        """
        for spelling in _spellings(name):
            row = self.symbols.get(spelling)
            # A deep module may be the one that the public name is an alias of.
            if row and (spelling == name or not row.home.startswith("=")):
                return row
        parent, _, last = name.rpartition(".")
        if not parent:
            return None
        row = self.find(parent)
        if row and row.home.startswith("=tf.contrib."):
            return self.find(f"{row.home[1:]}.{last}")
        if row and ":" in row.home and last.startswith("_") and parent.rpartition(".")[2].islower():
            return None  # of a file that has the name of a function
        inherited = row and (row.status == "refused" or parent not in self.modules)
        return row if inherited else None

    def nearest(self, name: str) -> str | None:
        """The name or module whose last part looks most like that of `name`, if one does."""
        by_last: dict[str, list[str]] = {}
        for symbol in (*self.symbols, *self.modules):
            by_last.setdefault(symbol.rpartition(".")[2], []).append(symbol)
        last = difflib.get_close_matches(name.rpartition(".")[2], by_last, 1, cutoff=0.8)
        return difflib.get_close_matches(name, by_last[last[0]], 1, cutoff=0)[0] if last else None


def read(path: str, modules: str | None = None) -> SymbolTable:
    """Reads a table, and the list of modules beside it; paths start at this package."""
    with open(_PACKAGE / path, newline="", encoding="utf-8") as file:
        lines = csv.reader(file)
        assert tuple(next(lines)) == Symbol._fields
        rows = {row[0]: Symbol(*row) for row in lines}
    names = (_PACKAGE / modules).read_text().splitlines() if modules else []
    return SymbolTable(rows, frozenset(names))


def _spellings(name: str) -> list[str]:
    """`name`, and for tf.contrib.m.python.folder.file.attribute what else it may be listed as."""
    parts = name.split(".")
    if len(parts) < 5 or parts[3] != "python":
        return [name]
    module, below, last = parts[:3], parts[4:], parts[-1]
    ends = [below[1:], below[-2:], [last]]
    # A package has the names of the files in it.
    ends += [["python", *below[:end], last] for end in reversed(range(len(below) - 1))]
    return [name, *(".".join([*module, *end]) for end in ends if end)]
