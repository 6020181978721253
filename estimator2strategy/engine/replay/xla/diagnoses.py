"""Tables of messages of TensorFlow and XLA's compilers: their causes and remedies.

    diagnosis = diagnose(text)
    diagnosis.cause, diagnosis.fix

Each row of a message comes from a program that was compiled and refused
(`tests/engine/xla/test_diagnoses.py`).
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import re
from fnmatch import fnmatchcase
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """Why something was refused.

    Attributes:
        cause: The cause in our words, or in theirs where we know none.
        fix: The remedy; "" if unknown.
    """

    cause: str
    fix: str = ""


@functools.cache
def _rows() -> list[dict[str, str]]:
    """The table, `diagnoses.csv`; the first row that matches counts.

    A row has a `message` (a pattern of what it has in it), or an `op` that XLA does not have, whose
    name may begin or end in *.
    """
    with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def diagnose(text: str) -> Diagnosis:
    """The cause and the fix of a message; its first line alone where no row matches."""
    for row in _rows():
        if row["message"] and re.search(row["message"], text):
            return Diagnosis(row["cause"], row["fix"])
    return Diagnosis(first_line(text))


def first_line(text: str) -> str:
    """The first line of a message, without what TensorFlow puts around it."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "no message")
    return line.removeprefix("Failed getting HLO text: '").partition(" [[{{")[0]


def fix_of_op(op: str) -> str:
    """The remedy for an op that XLA does not have; "" if the table has none."""
    for row in _rows():
        if row["op"] and fnmatchcase(op, row["op"]):
            return row["fix"]
    return ""
