"""Facts that a level measured or counted: numbers, tables, bars and curves, and their text.

    lines_of(Number("compiled", 2.5, "seconds"))    # ["compiled: 2.5 seconds"]

Levels alone load it: a check of source has no such facts.
"""

from __future__ import annotations

import dataclasses
from typing import TypeAlias

# How many rows of a table are listed.
_LISTED = 10

Cell: TypeAlias = str | int | float


@dataclasses.dataclass(frozen=True)
class Number:
    """One number, or a word; `unit` is "bytes", "examples", "seconds" or any other."""

    name: str
    value: Cell
    unit: str = ""


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows under columns. A column that is called "bytes" is shown in MiB and the like."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclasses.dataclass(frozen=True)
class Bar:
    """The used part of a limit, in the unit of its Bars; `limit` is None if there is none."""

    label: str
    used: float
    limit: float | None = None
    note: str = ""


@dataclasses.dataclass(frozen=True)
class Bars:
    """Quantities to compare with one another and with their limits."""

    title: str
    unit: str
    bars: tuple[Bar, ...]


@dataclasses.dataclass(frozen=True)
class Curve:
    """A line through points; `x` and `y` are equally long."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclasses.dataclass(frozen=True)
class Curves:
    """Lines in one plot."""

    title: str
    x_label: str
    curves: tuple[Curve, ...]


Fact: TypeAlias = Number | Table | Bars | Curves


def quantity(value: Cell, unit: str = "") -> str:
    """A value for people: thousands apart, bytes in KiB, MiB, GiB."""
    if isinstance(value, str):
        return f"{value} {unit}".strip()
    if unit == "bytes":
        return _bytes(value)
    if isinstance(value, float) and not value.is_integer():
        text = f"{value:.4g}"
    else:
        text = f"{int(value):,}" if abs(value) < 1e9 else f"{value:.3e}"
    return f"{text} {unit}".strip()


def _bytes(value: float) -> str:
    amount = float(value)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if abs(amount) < 1024 or unit == "TiB":
            break
        amount /= 1024
    return f"{amount:.0f} bytes" if unit == "bytes" else f"{amount:,.2f} {unit}"


def lines_of(fact: Fact) -> list[str]:
    """A fact as lines of text; long tables are cut."""
    if isinstance(fact, Number):
        return [f"{fact.name}: {quantity(fact.value, fact.unit)}"]
    if isinstance(fact, Bars):
        return [f"{fact.title}:", *(f"  {_bar(bar, fact.unit)}" for bar in fact.bars)]
    if isinstance(fact, Curves):
        ends = (f"  {c.label}: {c.y[0]:.6g} ... {c.y[-1]:.6g}" for c in fact.curves if c.y)
        return [f"{fact.title} (first ... last):", *ends]
    rows = [fact.columns, *(_cells(fact, row) for row in fact.rows[:_LISTED])]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    more = len(fact.rows) - _LISTED
    return [f"{fact.title}:", *lines, *([f"  and {more} more"] if more > 0 else [])]


def _cells(table: Table, row: tuple[Cell, ...]) -> list[str]:
    units = ["bytes" if column == "bytes" else "" for column in table.columns]
    return [quantity(cell, unit) for cell, unit in zip(row, units, strict=True)]


def _bar(bar: Bar, unit: str) -> str:
    of = f" of {quantity(bar.limit, unit)}" if bar.limit is not None else ""
    note = f" ({bar.note})" if bar.note else ""
    return f"{bar.label}: {quantity(bar.used, unit)}{of}{note}"
