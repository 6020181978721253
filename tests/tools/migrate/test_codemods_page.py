"""The page about the codemods is the one that the codemods make."""

from __future__ import annotations

from pathlib import Path

from estimator2strategy.tools.migrate.codemods_guide import page

PAGE = Path(__file__).resolve().parents[3] / "migration_guide" / "codemods.md"


def test_page_is_current():
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "run: python -m estimator2strategy.tools.migrate.codemods_guide"
    )
