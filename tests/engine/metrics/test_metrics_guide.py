"""The page of the migration guide is what the table says."""

from __future__ import annotations

from pathlib import Path

from estimator2strategy.engine.metrics import metrics_guide, rows

PAGE = Path(__file__).resolve().parents[3] / "migration_guide" / "metrics.md"


def test_page_is_up_to_date():
    assert PAGE.read_text() == metrics_guide.page(), (
        f"Run: python -m {metrics_guide.__name__} > {PAGE}"
    )


def test_page_has_a_row_with_all_cells_for_each_function():
    lines = [line for line in metrics_guide.page().splitlines() if line.startswith("| `")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [first.strip("`") for first, *_ in cells] == [row.function for row in rows()]
    assert all(len(line) == 5 and all(line) for line in cells)
