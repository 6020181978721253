"""The table of `migration_guide/differences.md` on steps that use a variable which they update.

    python -m tests.updates_table /path/to/python3.7   # one with TensorFlow 1.15

It runs `tests/programs/alternating.py` there ten times (nine Sessions and an Estimator, a process
for each kind of variables), and here once. It adds what it found to tests/goldens/alternating.json,
since a race may show in one run of fifty, and writes the table: 90 seconds of processor time.
"""

from __future__ import annotations

import collections
import datetime
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests import legacy_programs

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "goldens" / "alternating.json"
PAGE = ROOT / "migration_guide" / "differences.md"
BEGIN, END = "<!-- updates: begin -->\n", "<!-- updates: end -->\n"
_SESSIONS = 9  # of each pattern; an Estimator comes to them

Outcomes = Mapping[str, Mapping[str, Mapping[str, int]]]


def golden() -> dict[str, Any]:
    """Date, version and outcomes of TF 1.15: kind of variables -> pattern -> outcome -> runs."""
    return json.loads(GOLDEN.read_text())


def stable(kind: str) -> dict[str, str]:
    """Pattern -> the one outcome that all runs of TF 1.15 had; only those that had one."""
    cases = golden()["outcomes"][kind]
    return {case: next(iter(found)) for case, found in cases.items() if len(found) == 1}


def _recorded(python: str) -> dict[str, Any]:
    """Runs the patterns on TF 1.15; with the outcomes of earlier runs."""
    command = [python, "-W", "ignore", str(legacy_programs.FOLDER / "alternating.py")]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    started = [
        subprocess.Popen(
            [*command, str(_SESSIONS), kind], env=environment, stdout=subprocess.PIPE, text=True
        )
        for kind in ("reference", "resource")
    ]
    found: dict[str, Any] = {}
    for process in started:
        found |= json.loads(process.communicate()[0])
    earlier = golden()["outcomes"]
    counted = {
        kind: {
            case: collections.Counter(earlier[kind].get(case, {}))
            + collections.Counter(" ".join(run) for run in runs)
            for case, runs in cases.items()
        }
        for kind, cases in found.items()
    }
    today = datetime.datetime.now(datetime.timezone.utc).date()
    return {"tensorflow": "1.15.5", "date": today.isoformat(), "outcomes": counted}


def here() -> dict[str, dict[str, str]]:
    """Kind of variables -> pattern -> the outcome of this package."""
    with legacy_programs.imported("alternating") as program:
        return {
            kind: {case: " ".join(run) for case, (run,) in cases.items()}
            for kind, cases in program.outcomes(0).items()
        }


def table(recorded: Mapping[str, Any], ours: Mapping[str, Mapping[str, str]]) -> str:
    """The section between the marks of the page."""
    outcomes = recorded["outcomes"]
    lines = [
        BEGIN,
        "Made by `python -m tests.updates_table`, which ran TensorFlow "
        f"{recorded['tensorflow']} on {recorded['date']}.\n\n",
        "| pattern | reference, TF 1.15 | here | resource, TF 1.15 | here |\n",
        "| --- | --- | --- | --- | --- |\n",
    ]
    for case in outcomes["reference"]:
        cells = [
            cell
            for kind in ("reference", "resource")
            for cell in _cells(outcomes[kind][case], ours[kind][case])
        ]
        lines.append(f"| {case} | {' | '.join(cells)} |\n")
    return "".join([*lines, END])


def _cells(found: Mapping[str, int], ours: str) -> tuple[str, str]:
    runs = sum(found.values())
    most = max(found.values())
    there = "stable" if len(found) == 1 else f"races: {most} of {runs}"
    if ours not in found:
        return there, "**another**"
    if len(found) == 1:
        return there, "equal"
    return there, "the most frequent" if found[ours] == most else "another of its results"


def main(python: str) -> None:
    """Writes the golden and the table."""
    recorded = _recorded(python)
    GOLDEN.write_text(json.dumps(recorded, indent=1) + "\n")
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(before + table(recorded, here()) + after)


if __name__ == "__main__":
    main(sys.argv[1])
