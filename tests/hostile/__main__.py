"""Runs the tables, and writes the page with the counts.

    python -m tests.hostile                                # all of them, which takes an hour or two
    python -m tests.hostile wrong_usages                   # one; the page keeps the others' counts
    python -m tests.hostile kills --kills=100 --minutes=9
    python -m tests.hostile kills_under_jax --kills=100

The exit code is 1 if anything came otherwise than its table says.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tests import conftest
from tests.hostile import kills, mutations, trees, wrong_usages
from tests.hostile.report import Report

PAGE = Path(__file__).parents[2] / "migration_guide" / "hostile.md"
# Each runs a table.
TABLES: Mapping[str, Callable[[argparse.Namespace], Report]] = {
    "wrong_usages": lambda options: wrong_usages.run(),
    "kills": lambda options: kills.run(options.kills, options.minutes, options.at_once),
    "kills_under_jax": lambda options: kills.run_under_jax(
        options.kills, options.minutes, options.at_once
    ),
    "trees": lambda options: trees.run(),
    "mutations": lambda options: mutations.run(options.seconds),
}
HEAD = """# After a mistake, a full disk, a kill or a damaged file

For you if you want to know how mistakes and accidents end: a wrong argument, a kill in the middle
of a checkpoint, a damaged or hostile file. The tables count what was tried, and how it ended.

`python -m tests.hostile` runs the tables of `tests/hostile` and writes this page. If a case is
missing, add a row.
"""


def page(before: str, reports: list[Report]) -> str:
    """The page `before`, with the sections of some reports in the place of what they were."""
    found = re.split(r"^## (.+)\n", before, flags=re.MULTILINE)[1:]
    sections = dict(zip(found[::2], (text.strip("\n") for text in found[1::2]), strict=True))
    sections |= {report.title: "\n".join(report.section) for report in reports}
    return "\n".join([HEAD, *(f"## {title}\n\n{text}\n" for title, text in sections.items())])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile")
    parser.add_argument("tables", nargs="*", choices=[*TABLES, []], help="default: all")
    parser.add_argument("--kills", type=int, default=kills.KILLS)
    parser.add_argument("--minutes", type=float, default=math.inf, help="for kills")
    parser.add_argument("--at-once", type=int, default=2, help="trainings that are killed")
    parser.add_argument("--seconds", type=float, default=mutations.HOUR, help="for mutations")
    return parser.parse_args()


def main() -> int:
    options = _options()
    conftest.pytest_configure()  # the devices that the rows expect
    reports = [TABLES[name](options) for name in options.tables or TABLES]
    PAGE.write_text(page(PAGE.read_text(), reports))
    wrong = [f"{report.title}: {line}" for report in reports for line in report.wrong]
    sys.stdout.write("".join(f"{line}\n" for line in wrong))
    sys.stdout.write(f"{len(wrong)} came otherwise than the tables say; see {PAGE}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
