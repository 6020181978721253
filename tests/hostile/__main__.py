"""Runs all tables, and writes the page with the counts.

    python -m tests.hostile

The exit code is 1 if anything came otherwise than its table says.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from tests import conftest
from tests.hostile import wrong_usages
from tests.hostile.report import Report

PAGE = Path(__file__).parents[2] / "migration_guide" / "hostile.md"
# Each runs a table.
TABLES: tuple[Callable[[], Report], ...] = (wrong_usages.run,)
HEAD = """# What a clumsy user or a full disk brings

For those who want to know how mistakes end. `python -m tests.hostile` runs the tables in
`tests/hostile` and writes this page; a mistake that was missed is one more row.
"""


def page(reports: list[Report]) -> str:
    """The page of some reports."""
    sections = ["\n".join([f"## {r.title}", "", *r.section, ""]) for r in reports]
    return "\n".join([HEAD, *sections])


def main() -> int:
    conftest.pytest_configure()  # the devices that the rows expect
    reports = [run() for run in TABLES]
    PAGE.write_text(page(reports))
    wrong = [f"{report.title}: {line}" for report in reports for line in report.wrong]
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    sys.stdout.write(f"{len(wrong)} came otherwise than the tables say; see {PAGE}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
