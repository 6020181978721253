"""Runs the programs here, each with its library at a pinned release, and compares the results.

Each runs in several ways: unchanged by `e2s run`, and with its import changed to this package.

    python -m tests.libraries                               # all programs
    python -m tests.libraries lattice privacy
    python -m tests.libraries --ci                          # those that CI has time for
    python -m tests.libraries --record PYTHON_OF_TF_215     # those whose oracle is TF 2.15

Each library is installed without its dependencies, into a folder below build/libraries.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from tests.libraries import table

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RESULTS = HERE / "results.json"
TOLERANCE = 1e-5  # relative to values above 1; 6e-8 was measured

# Program -> the ways in which it runs, where they are others than these.
USUAL = ("run", "tf1")
WAYS = {
    "adanet": ("run --tf2",),
    "datasets": ("run --tf2",),
    "gan": ("run",),
    "hub": ("run",),
    "kfac": ("run",),
    "mesh": ("run",),
    "opennmt": ("run",),
    "privacy": (*USUAL, "estimator"),
    "probability": ("run --tf2",),
    "ranking": ("run --tf2",),
    "sonnet": ("run",),
    "tfx": ("run --tf2",),
    "transform": ("run --tf2",),
    "trfl": ("run",),
    "wandb": ("run --tf2",),
}
# Way -> the options of `e2s run`.
RUN = {"run": (), "run --tf2": ("--tf2",)}
# Way -> the import that the program gets in its first lines, and the text it replaces.
CHANGED = {
    "tf1": ("import estimator2strategy.tf1 as tf", "import tensorflow as tf", ""),
    "estimator": (
        "from estimator2strategy import estimator as of_today",
        r"tf\.estimator\.",
        "of_today.",
    ),
}


def program(name: str) -> Path:
    """The file of a program."""
    return HERE / "programs" / f"train_{name}.py"


def result_of(name: str, command: list[str], path: str) -> dict[str, float]:
    """The metrics that a command prints in its last line."""
    ran = subprocess.run(
        command,
        env={**table.rows()[name].variables(), "PYTHONPATH": path},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    last = ran.stdout.strip().rpartition("\n")[2]
    if ran.returncode or not last.startswith("RESULT "):
        raise RuntimeError(f"{name} failed:\n{ran.stderr[-3000:]}")
    return json.loads(last.removeprefix("RESULT "))


def command_of(name: str, way: str) -> list[str]:
    """The command that runs a program in one of the ways."""
    if way in RUN:
        run = [sys.executable, "-m", "estimator2strategy", "run", *RUN[way]]
        return [*run, str(program(name))]
    imported, old, new = CHANGED[way]
    folder = ROOT / "build" / "libraries" / "changed" / way
    folder.mkdir(parents=True, exist_ok=True)
    changed = folder / f"train_{name}.py"
    changed.write_text(f"{imported}\n{re.sub(old, new, program(name).read_text())}")
    return [sys.executable, str(changed)]


def difference(expected: dict[str, float], got: dict[str, float]) -> float:
    """The greatest difference of two results, relative to numbers above 1."""
    if expected.keys() != got.keys():
        raise RuntimeError(f"other metrics: {sorted(expected.keys() ^ got.keys())}")
    return max(abs(value - got[key]) / max(1, abs(value)) for key, value in expected.items())


def compare(name: str, way: str, expected: dict[str, float]) -> bool:
    """Runs a program here; True if its result is that of its oracle."""
    path = os.pathsep.join([str(ROOT), str(table.rows()[name].installed(sys.executable))])
    try:
        found = difference(expected, result_of(name, command_of(name, way), path))
    except (RuntimeError, subprocess.CalledProcessError) as error:
        print(f"{name}, {way}: {error}")
        return False
    pinned = ", ".join(table.rows()[name].distributions)
    print(f"{name}, {way}: {pinned}: greatest difference {found:.1e}", flush=True)
    return found <= TOLERANCE


def recorded(names: list[str], python: str) -> dict[str, dict[str, float]]:
    """The results of the programs whose original TensorFlow is that of a Python."""
    ask = [python, "-c", "import tensorflow; print(tensorflow.__version__)"]
    release = subprocess.run(ask, check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = [row for row in map(table.rows().get, names) if row and release.startswith(row.world)]
    return {
        row.name: result_of(
            row.name,
            [python, str(program(row.name))],
            str(row.installed(python, of_oracle=True)),
        )
        for row in rows
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(table.rows())}")
    parser.add_argument("--record", metavar="PYTHON", help="write the results of that Python")
    parser.add_argument("--ci", action="store_true", help="leave out those that take long")
    asked = parser.parse_args()
    names = asked.names or [n for n, row in table.rows().items() if row.ci or not asked.ci]
    expected = json.loads(RESULTS.read_text())
    if asked.record:
        results = expected | recorded(names, asked.record)
        RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
        return 0
    runs = [(name, way) for name in names for way in WAYS.get(name, USUAL)]
    passed = sum(compare(name, way, expected[name]) for name, way in runs)
    print(f"{passed} passed, {len(runs) - passed} failed")
    return passed < len(runs)


if __name__ == "__main__":
    sys.exit(main())
