"""Tables of what TensorFlow 2 and Keras call things: the files of `tables/`.

    for row in rows("optimizers"):
        print(row["name"], pairs(row["arguments"]))

A codemod makes rows of its own type of them when it is imported.
"""

from __future__ import annotations

import csv
from pathlib import Path


def rows(table: str) -> list[dict[str, str]]:
    """The rows of a table, each by the names of its columns."""
    path = Path(__file__).with_name("tables") / f"{table}.csv"
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def words(text: str) -> tuple[str, ...]:
    """The words of a cell; "-" is an empty one."""
    return tuple("" if word == "-" else word for word in text.split())


def pairs(text: str) -> tuple[tuple[str, str], ...]:
    """The pairs of a cell: `beta1=beta_1 name use_locking=`; a word alone is a pair of itself."""
    parts = (word.partition("=") for word in text.split())
    return tuple((name, value if equal else name) for name, equal, value in parts)
