"""Tries parts of the libraries that their programs do not use: Keras layers, and the like.

    python -m tests.libraries.parts              # all libraries
    python -m tests.libraries.parts hub lattice --original /envs/tf215/bin/python

Each runs by `e2s run --tf2`; parts.json keeps the error, or "". With --original, a part that fails
on TensorFlow 2.15, too, is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from tests.libraries import table

ROOT = Path(__file__).parents[2]
PROGRAM = str(Path(__file__).parent / "programs" / "parts.py")
RESULTS = Path(__file__).with_name("parts.json")
LIBRARIES = ("adanet", "deepctr", "hub", "lattice", "nsl", "privacy", "probability", "ranking")


def ended(name: str, command: list[str], path: str) -> dict[str, str]:
    """Part -> its error, or ""."""
    ran = subprocess.run(
        [*command, PROGRAM, name],
        env={**table.rows()[name].variables(), "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    last = ran.stdout.strip().rpartition("\n")[2]
    if not last.startswith("RESULT "):
        raise RuntimeError(f"{name} failed:\n{ran.stderr[-3000:]}")
    return dict(json.loads(last.removeprefix("RESULT ")))


def tried(name: str, original: str | None) -> dict[str, str]:
    """The parts of a library here, without those that fail on the original, too."""
    row = table.rows()[name]
    run = [sys.executable, "-m", "estimator2strategy", "run", "--tf2"]
    path = os.pathsep.join([str(ROOT), str(row.installed(sys.executable))])
    here = ended(name, run, path)
    if not original or not any(here.values()):
        return here
    there = ended(name, [original], str(row.installed(original, of_oracle=True)))
    return {part: error for part, error in here.items() if not there[part]}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help=f"of {', '.join(LIBRARIES)}")
    parser.add_argument("--original", metavar="PYTHON", help="has TensorFlow 2.15")
    asked = parser.parse_args()
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in asked.names or LIBRARIES:
        found[name] = tried(name, asked.original)
        RESULTS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
        print(name, found[name], flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
