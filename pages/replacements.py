"""The made part of the page on codemods that compares Keras with TF 1.15, number by number."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pages
from benchmarks import replacement_rows
from benchmarks.replacement_rows import MEASURED, Replacement

ALL_DIGITS = 6
# From so many equal digits on, the page calls a row equal: the last of a float32 are rounding.
EQUAL_DIGITS = 5


def measured() -> list[dict[str, Any]]:
    """The cells of each row, in the order of `replacement_rows.rows()`."""
    return json.loads(MEASURED.read_text(encoding="utf-8"))["rows"]


def differing(cells: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The situations in which a row is not equal."""
    return [situation for situation, cell in cells.items() if cell["digits"] < EQUAL_DIGITS]


def parts() -> dict[str, str]:
    """The versions that were compared, and for each kind of row its table."""
    versions = json.loads(MEASURED.read_text(encoding="utf-8"))
    rows = list(zip(replacement_rows.rows(), measured(), strict=True))
    kinds = dict.fromkeys(row.kind for row, _ in rows)
    return {
        "versions": (
            "Made by `python -m benchmarks.replacements`, with TensorFlow {tensorflow}, Keras "
            "{keras} and the\nnumbers of TensorFlow 1.15.5 that "
            "`tests/goldens/replacements/record.py` recorded."
        ).format(**versions),
        **{kind: _table([pair for pair in rows if pair[0].kind == kind]) for kind in kinds},
    }


def _table(rows: list[tuple[Replacement, dict[str, Any]]]) -> str:
    situations = list(next(cells for _, found in rows for cells in _columns(found)))
    has_model_fn = any(row.keras2 for row, _ in rows)
    lines = []
    for row, found in rows:
        cells = found.get("keras3", {})
        lines.append(
            [
                _code(row.legacy),
                _with_values(row, row.keras3) if row.keras3 else "none",
                *(_shown(cells[situation]) if cells else "" for situation in situations),
                *[_of_tf_keras(found)] * has_model_fn,
                _equal(row, found),
            ]
        )
    head = ["TF 1.15", "Keras 3", *situations, *["tf-keras"] * has_model_fn, "equal"]
    return pages.table(head, lines)


def _columns(found: dict[str, Any]) -> list[Mapping[str, Any]]:
    return [found[column] for column in ("keras3", "written") if column in found]


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _with_values(row: Replacement, text: str) -> str:
    return _code(f"{text}.update_state({row.values})" if row.values else text)


def _shown(cell: Mapping[str, Any]) -> str:
    if cell["digits"] == ALL_DIGITS:
        return "="
    if cell["digits"] >= EQUAL_DIGITS:
        return str(cell["digits"])
    return f"{cell['keras']}, {cell['legacy']}"


def _of_tf_keras(found: dict[str, Any]) -> str:
    if "keras2" not in found:
        return ""
    others = differing(found["keras2"])
    return f"not: {', '.join(others)}" if others else "="


def _equal(row: Replacement, found: dict[str, Any]) -> str:
    """The expression that is equal in all situations."""
    if row.keras3 and not differing(found["keras3"]):
        return "it is"
    if row.written and not differing(found["written"]):
        return _with_values(row, row.written)
    return ""
