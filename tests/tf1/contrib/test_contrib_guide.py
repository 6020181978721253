"""The page of the migration guide is what the table says."""

from pathlib import Path

from estimator2strategy.tf1 import contrib
from estimator2strategy.tf1.contrib import contrib_guide

PAGE = Path(__file__).resolve().parents[3] / "migration_guide" / "contrib.md"


def test_page_is_up_to_date():
    assert PAGE.read_text() == contrib_guide.page(), (
        f"Run: python -m {contrib_guide.__name__} > {PAGE}"
    )


def test_page_has_a_line_for_each_symbol():
    lines = [line for line in contrib_guide.page().splitlines() if line.startswith("| `")]
    assert len(lines) == len(contrib.table().symbols)
    assert all(cell.strip() for line in lines for cell in line.split("|")[-2:-1])
