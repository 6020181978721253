"""Facts that a level of evidence measured or counted, in forms that every format can show.

Example:

    Number("FLOPs of a step", 3.08e12, "FLOPs per core")
    Table("variables", ("name", "shape", "bytes"), (("dense/kernel", "784x10", 31360),))
    Bars("memory per core", "bytes", (Bar("v3-8", used=4.6e9, limit=1.6e10),))
    Curves("loss", "step", (Curve("then", (0, 1), (2.3, 2.1)), Curve("now", (0, 1), (2.3, 2.1))))
"""

from __future__ import annotations

import dataclasses
from typing import TypeAlias

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
