"""The place of each name of TF 1.15 today, except `tf.contrib`; read without TensorFlow.

    name_table.find("tf.keras.layers.Dense").home       # "tf_keras.api._v1.keras:layers.Dense"
    name_table.find("tf.nn.dropout").home               # "tensorflow.compat.v1:nn.dropout"
    name_table.find("tf.no_such_name")                  # None

`symbols.csv` has the names that are not simply `tf.compat.v1`'s. Its homes may also be `=tf.name`
(the same as another legacy name), or several of these, tried in order.

A table is a CSV file with one row for each name; the columns are those of `Symbol`. `read` reads
another one:

    contrib = read("tf1/contrib/symbols.csv", modules="tf1/contrib/modules.txt")
    contrib.find("tf.contrib.layers.python.layers.layers.conv2d").home   # "tf_slim.layers:conv2d"
"""

from __future__ import annotations

import csv
import functools
import itertools
import json
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
        import difflib  # few names are misspelt

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


_BASE = "tensorflow.compat.v1"

# Deep modules whose files are not kept apart: programs import from whichever file had a name at
# their time. What the row of the root has not is looked up in the modules named here, in order.
# Both `run_config.py` and `tpu/tpu_config.py` had a RunConfig.
FLAT = {
    "tf.python.estimator.tpu": (
        "tf.estimator.tpu",
        "tf.estimator",
        "tf.estimator.export",
        "tf.estimator.inputs",
        "tf.estimator.experimental",
        "tf.estimator.tpu.experimental",
    ),
    "tf.python.estimator": (
        "tf.estimator",
        "tf.estimator.tpu",
        "tf.estimator.export",
        "tf.estimator.inputs",
        "tf.estimator.experimental",
    ),
}

# Private modules of TF 1.15 that had the public names of another module too, by their imports:
# `from tensorflow.python import shape`, `nn.dynamic_rnn` of `tensorflow.python.ops.nn`.
# TensorFlow 2 took those imports away.
PASSED_ON = {
    "tf.python": "tf",
    "tf.python.framework.ops": "tf",
    "tf.python.ops.nn": "tf.nn",
    "tf.python.ops.random_ops": "tf",
    "tf.python.ops.standard_ops": "tf",
    "tf.python.ops.variable_scope": "tf",
    "tf.python.ops.variables": "tf",
}


@functools.cache
def since_1_0() -> dict[str, str]:
    """Names of TensorFlow 0.x -> those since 1.0."""
    with (Path(__file__).parent / "since_1_0.csv").open(encoding="utf-8", newline="") as file:
        return {row["name"]: row["now"] for row in csv.DictReader(file)}


@functools.cache
def rows() -> dict[str, Symbol]:
    """The rows of `symbols.csv`, by name."""
    return dict(read("tf1/facade/symbols.csv").symbols)


@functools.cache
def parents() -> frozenset[str]:
    """Every prefix of a row's name: modules of which some part is not as in `tf.compat.v1`."""
    names = set()
    for name in rows():
        while "." in name:
            name = name.rpartition(".")[0]
            names.add(name)
    return frozenset(names)


@functools.cache
def names() -> dict[str, frozenset[str]]:
    """TF 1.15's public names by module: {"tf.app": {"flags", "run"}, ...}."""
    listed = json.loads((Path(__file__).parent / "names.json").read_text())
    return {module: frozenset(line.split()) for module, line in listed.items()}


def existed(name: str) -> bool:
    """True if TF 1.15 had this public name."""
    module, _, last = name.rpartition(".")
    return name in names() or last in names().get(module, ())


def canonical(name: str) -> str:
    """The name without the aliases `tf.compat.v1`, `tf.app.flags`, `tensorflow_estimator`..."""
    parts = name.split(".")
    prefixes = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    deepest = next((rows()[prefix] for prefix in prefixes if prefix in rows()), None)
    if deepest is None or not deepest.home.startswith("="):
        return name
    return canonical(deepest.home[1:] + name[len(deepest.name) :])


def find(name: str) -> Symbol | None:
    """The row of a legacy name; None if TF 1.15 had no such name."""
    name = canonical(name)
    roots = flat_roots(name)
    if roots and name not in FLAT and not existed(name):
        return _find_in_flat(roots, name)
    parts = name.split(".")
    for end in range(len(parts), 1, -1):
        row = rows().get(".".join(parts[:end]))
        if row is None:
            continue
        rest = ".".join(parts[end:])
        if not rest or row.status == "refused":
            return row
        if row.home.startswith("estimator2strategy.") and not in_its_modules(parts, end):
            return None  # what is not of TF 1.15 is not here either; libraries may have more
        joint = "." if ":" in row.home else ":"
        return Symbol(name, row.status, f"{row.home}{joint}{rest}", row.advice, row.since)
    if existed(name):
        return Symbol(name, "home", f"{_BASE}:{'.'.join(parts[1:])}")
    return None


def flat_roots(name: str) -> list[str]:
    """The roots of `FLAT` that a dotted name is in, the closest one first."""
    return [root for root in FLAT if name == root or name.startswith(f"{root}.")]


def flat_row(roots: list[str], name: str) -> Symbol | None:
    """The row for `name`, whatever file it is said to be in."""
    return next((rows()[f"{r}.{name}"] for r in roots if f"{r}.{name}" in rows()), None)


def _find_in_flat(roots: list[str], name: str) -> Symbol | None:
    """The row for `name`, of a file below `roots`: that of its shortest end that has a row."""
    parts = name.removeprefix(f"{roots[-1]}.").split(".")
    for start in reversed(range(len(parts))):
        rest = ".".join(parts[start:])
        row = flat_row(roots, rest)
        if row:
            return row
        for module in FLAT[roots[0]]:
            if existed(f"{module}.{parts[start]}"):
                return find(f"{module}.{rest}")
    return None


def in_its_modules(parts: list[str], start: int) -> bool:
    """True if each module of TF 1.15 in a dotted name, from `start` on, had what follows it."""
    prefixes = [".".join(parts[:end]) for end in range(start, len(parts) + 1)]
    return all(
        below in rows() or existed(below)
        for module, below in itertools.pairwise(prefixes)
        if module in names()
    )


def nearest(name: str) -> str | None:
    """The name since TF 1.0, or the one that looks most like `name`: in its module, else in any."""
    import difflib  # few names are misspelt

    if name in since_1_0():
        return since_1_0()[name]
    module, _, last = name.rpartition(".")
    below = [m for m, listed in names().items() if m.startswith(f"{module}.") and last in listed]
    if below and module != "tf":
        return f"{min(below, key=len)}.{last}"
    close = difflib.get_close_matches(last, names().get(module, ()), 1, cutoff=0.8)
    if close:
        return f"{module}.{close[0]}"
    close = difflib.get_close_matches(last, set().union(*names().values()), 1, cutoff=0.8)
    homes = [
        f"{m}.{n}"
        for m, listed in names().items()
        if not m.startswith("tf.python")  # what is private is not meant
        for n in close
        if n in listed
    ]
    return min(homes, key=lambda home: (home.count("."), home), default=None)


def page(name: str) -> str:
    """The page of TF 1.15's documentation that lists the module of `name`."""
    module = name.rpartition(".")[0].replace(".", "/")
    return f"https://www.tensorflow.org/versions/r1.15/api_docs/python/{module}"
