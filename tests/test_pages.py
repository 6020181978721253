"""The pages of the guide that are made from the code are those that the code makes now."""

from __future__ import annotations

import pytest

import pages
from estimator2strategy.engine.metrics import rows
from estimator2strategy.tf1 import contrib
from pages.made import made

MADE = made()


@pytest.mark.parametrize("name", MADE)
def test_page_is_up_to_date(name):
    assert (pages.GUIDE / name).read_text(encoding="utf-8") == MADE[name], "Run: python -m pages"


def test_each_page_about_rules_is_made():
    found = {f"rules/{path.name}" for path in (pages.GUIDE / "rules").iterdir()}
    assert found == {name for name in MADE if name.startswith("rules/")}


def _rows(name):
    lines = [line for line in MADE[name].splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_page_about_metrics_has_a_row_with_all_cells_for_each_function():
    cells = _rows("metrics.md")
    assert [first.strip("`") for first, *_ in cells] == [row.function for row in rows()]
    assert all(len(line) == 5 and all(line) for line in cells)


def test_page_about_contrib_has_a_line_with_a_way_out_for_each_symbol():
    cells = _rows("contrib.md")
    assert len(cells) == len(contrib.table().symbols)
    assert all(line[-1] for line in cells)


def test_only_what_stands_between_the_marks_is_made_anew():
    text = "a\n<!-- made: x -->\n\nold\n\n<!-- end -->\n\nb\n"
    assert pages.filled(text, {"x": "new"}) == text.replace("old", "new")
    assert pages.filled(text, {"x": "old"}) == text


def test_table_has_a_line_below_its_head():
    assert pages.table(("a", "b"), [("1", "2")]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"
