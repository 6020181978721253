"""migration_guide/contract.md is complete, and each of its rows is held by tests that exist."""

from __future__ import annotations

import ast
import functools
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from estimator2strategy import estimator

TESTS = Path(__file__).resolve().parent
GUIDE = TESTS.parent / "migration_guide" / "contract.md"
STATUS = re.compile(r"works|(works differently|refused): \S.*")

# Made or called by this package, not by programs.
NOT_CALLED_BY_PROGRAMS = {
    "tpu.TPUContext",
    "export.wrap_and_check_input_tensors",
    "tpu.ExportSavedModelApiVersion",
    "Precision",
    "Runtime",
    "Estimator.e2s_copy",
}

# Bases that hold a part of the methods of the class that is derived from them.
SPLIT_OFF = {"Exporting"}


class Row(NamedTuple):
    line: int
    symbol: str
    arguments: list[str]
    status: str
    tests: list[str]


def split(cell: str) -> list[str]:
    return [part.strip() for part in cell.split(",")]


def rows() -> list[Row]:
    found = []
    for number, line in enumerate(GUIDE.read_text().splitlines(), start=1):
        if line.startswith("|") and not line.startswith(("| symbol |", "| --- |")):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            assert len(cells) == 4, f"line {number} has {len(cells)} columns"
            symbol, arguments, status, tests = cells
            found.append(Row(number, symbol, split(arguments), status, split(tests)))
    return found


ROWS = rows()
each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: f"line-{row.line}")


@functools.cache
def names_in(path: Path) -> frozenset[str]:
    """Test functions and classes of a file: `test_f`, `TestC` and `TestC::test_f`."""

    def walk(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
        for node in body:
            if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
                yield node.name
                yield from walk(node.body, f"{node.name}::")
            elif isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                yield f"{prefix}{node.name}"
                yield node.name

    return frozenset(walk(ast.parse(path.read_text()).body))


@each_row
def test_status_is_one_of_three(row):
    assert STATUS.fullmatch(row.status), row.status
    assert "ignored" not in row.status


@each_row
def test_row_names_tests_that_exist(row):
    assert row.symbol
    for test in row.tests:
        file, _, name = test.partition("::")
        assert file, "no test is named"
        path = TESTS / file
        assert path.is_file(), file
        assert not name or name in names_in(path), test


def parameters(function: object) -> set[str]:
    return set(inspect.signature(function).parameters) - {"self"}  # type: ignore[arg-type]


def public_signatures() -> dict[str, set[str]]:
    """Arguments of each public class, method and function that programs call."""
    found: dict[str, set[str]] = {}
    modules = {
        "": estimator,
        "tpu.": estimator.tpu,
        "export.": estimator.export,
        "experimental.": estimator.experimental,
        "inputs.": estimator.inputs,
    }
    for prefix, module in modules.items():
        for name in getattr(module, "__all__", vars(module)):
            value = getattr(module, name)
            symbol = f"{prefix}{name}"
            ours = getattr(value, "__module__", "").startswith("estimator2strategy.")
            if not ours or name.startswith("_") or symbol in NOT_CALLED_BY_PROGRAMS:
                continue
            found[symbol] = parameters(value)
            if inspect.isclass(value):
                for method, function in own_methods(value):
                    of_class = f"{symbol}.{method}"
                    if of_class in NOT_CALLED_BY_PROGRAMS or method.startswith("_"):
                        continue
                    if inspect.isfunction(function):
                        found[f"{symbol}.{method}"] = parameters(function) - {"kwargs"}
    return found


def own_methods(cls: type) -> Iterator[tuple[str, object]]:
    """Those of `cls` and of the bases that it was split into, which programs do not know."""
    for part in (cls, *cls.__bases__):
        if part is cls or part.__name__ in SPLIT_OFF:
            yield from vars(part).items()


@pytest.mark.parametrize(("symbol", "arguments"), public_signatures().items())
def test_every_argument_has_a_row(symbol, arguments):
    documented = {name for row in ROWS if row.symbol == symbol for name in row.arguments}
    assert arguments <= documented
