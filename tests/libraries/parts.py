"""Tries parts of the libraries that their programs do not use: Keras layers, and the like.

    python -m tests.libraries.parts              # all libraries
    python -m tests.libraries.parts hub lattice --original /envs/tf215/bin/python
    python -m tests.libraries.parts gan mesh --original /envs/tf115/bin/python

Each runs by `e2s run --tf2`, or by `e2s run` if it is of TensorFlow 1; parts.json keeps the error,
or "". With --original, a part that fails on that TensorFlow, too, is left out, and the metrics of
those of TensorFlow 1 are compared.
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
PROGRAMS = Path(__file__).parent / "programs"
RESULTS = Path(__file__).with_name("parts.json")
OF_TF1 = ("gan", "kfac", "mesh", "sonnet", "trfl")
OF_TF2 = ("adanet", "deepctr", "hub", "lattice", "nsl", "privacy", "probability", "ranking")
TOLERANCE = 1e-5  # relative to values above 1
Outcome = str | dict[str, float]  # the error, or the metrics


def ended(name: str, command: list[str], path: str) -> dict[str, Outcome]:
    """Part -> its error, or its metrics."""
    program = PROGRAMS / ("parts_tf1.py" if name in OF_TF1 else "parts.py")
    ran = subprocess.run(
        [*command, str(program), name],
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
    run = [sys.executable, "-m", "estimator2strategy", "run", *(["--tf2"] * (name in OF_TF2))]
    path = os.pathsep.join([str(ROOT), str(row.installed(sys.executable))])
    here = ended(name, run, path)
    if not original:
        return {part: found if isinstance(found, str) else "" for part, found in here.items()}
    there = ended(name, [original], str(row.installed(original, of_oracle=True)))
    return {
        part: found if isinstance(found, str) else differing(expected, found)
        for part, found in here.items()
        if not isinstance(expected := there[part], str)
    }


def differing(expected: dict[str, float], found: dict[str, float]) -> str:
    """The greatest difference of two parts' metrics if it is too great; "" if they are the same."""
    if expected.keys() != found.keys():
        return f"other metrics: {sorted(expected.keys() ^ found.keys())}"
    each = (abs(value - found[key]) / max(1, abs(value)) for key, value in expected.items())
    greatest = max(each, default=0.0)
    return "" if greatest <= TOLERANCE else f"differs by {greatest:.0e}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help=f"of {', '.join(OF_TF1 + OF_TF2)}")
    parser.add_argument("--original", metavar="PYTHON", help="has TensorFlow 1.15 or 2.15")
    asked = parser.parse_args()
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in asked.names or OF_TF1 + OF_TF2:
        found[name] = tried(name, asked.original)
        RESULTS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
        print(name, found[name], flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
