"""The ledger of all that this package changes in modules, classes and processes of others.

A change has a row in `patches.csv`, and is made by `put`, `scope` or, where it is no attribute,
beside a call of `noted`. `tests/engine/test_patches.py` reads the source of the package, and
refuses a change elsewhere, and one without a row. `e2s doctor --patches` prints the rows.
"""

from __future__ import annotations

import contextlib
import csv
import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple


class Patch(NamedTuple):
    """One change.

    Attributes:
        target: What is changed.
        why: The reason, and why nothing smaller does.
        when: Since when a process has it.
        spares: What goes on as before.
        undone: When it ends; "" for never.
        test: The file of tests, in `tests/`, that holds it.
    """

    target: str
    why: str
    when: str
    spares: str
    undone: str
    test: str


@functools.cache
def ledger() -> Mapping[str, Patch]:
    """The rows by name, from `patches.csv`."""
    with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        return {row.pop("name"): Patch(**row) for row in csv.DictReader(file)}


_in_force: dict[str, None] = {}


def put(patch: str, owner: Any, name: str, value: Any) -> None:
    """Sets an attribute of a foreign module or class.

    Args:
        patch: The row of the ledger.
        owner: The module or class.
        name: Of the attribute.
        value: Its new value.
    """
    noted(patch)
    setattr(owner, name, value)


@contextlib.contextmanager
def scope(patch: str, owner: Any, name: str, value: Any) -> Iterator[None]:
    """As `put`, while the body runs."""
    before = getattr(owner, name)
    put(patch, owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def noted(patch: str) -> None:
    """Says that this process has the change of this row from now on, or has had it."""
    _in_force[patch] = None


def in_force() -> list[str]:
    """The rows whose change this process has made, in that order."""
    return list(_in_force)
