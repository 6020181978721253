"""What a level measured or counted: numbers, tables, bars and curves, and their text.

lines_of(Number("compiled", 2.5, "seconds"))    # ["compiled: 2.5 seconds"]
"""

from __future__ import annotations

import dataclasses
import enum
from typing import TypeAlias

from estimator2strategy.tools.check.check_report import Evidence, Finding

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


class Outcome(enum.Enum):
    """The answer of a verdict."""

    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "cannot tell"


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The answer of a level of evidence to one question.

    Attributes:
        question: In a few words, with the mode: "train: records", "train: fits a v3-8".
        outcome: The answer.
        message: The reason; "" where the answer says it all.
    """

    question: str
    outcome: Outcome
    message: str = ""


@dataclasses.dataclass(frozen=True)
class LevelReport:
    """The report of one level of evidence on one model.

    Attributes:
        level: The evidence that all of this rests on.
        subject: The model, as the user named it.
        verdicts: Its answers; a finding or a problem says more about a `failed` one.
        findings: Its findings, each with `evidence=level`.
        facts: The things that it measured or counted.
        not_checked: The parts that it could not see.
        problems: The reasons why it could not do its job, if it could not.
        seconds: Wall time.
    """

    level: Evidence
    subject: str
    verdicts: tuple[Verdict, ...] = ()
    findings: tuple[Finding, ...] = ()
    facts: tuple[Fact, ...] = ()
    not_checked: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def said(self) -> list[str]:
        """Each verdict, and what was not checked, in a line that names the level."""
        lines = []
        for verdict in self.verdicts:
            why = f" ({verdict.message})" if verdict.message else ""
            lines.append(f"{self.level.option}: {verdict.question}: {verdict.outcome.value}{why}")
        return lines + [f"{self.level.option}: not checked: {what}" for what in self.not_checked]


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
