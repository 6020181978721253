"""Runs the programs here, each with its library at a pinned release, and compares the results.

Each runs in several ways: unchanged by `e2s run`, and with its import changed to this package.

    python -m tests.libraries                               # all programs
    python -m tests.libraries lattice privacy
    python -m tests.libraries --record PYTHON_OF_TF_215     # that has the libraries, too

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

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RESULTS = HERE / "results.json"
TOLERANCE = 1e-5  # relative to values above 1; 6e-8 was measured

# Program -> the distributions that it needs beside TensorFlow.
PINNED = {
    "deepctr": ("deepctr==0.9.4",),
    "lattice": ("tensorflow-lattice==2.0.13", "sortedcontainers==2.4.0"),
    "nsl": ("neural-structured-learning==1.4.0", "attrs==25.3.0"),
    "privacy": ("tensorflow-privacy==0.9.0", "dp-accounting==0.4.4", "attrs==25.3.0"),
}

# Program -> the ways in which it runs, where they are others than these.
USUAL = ("run", "tf1")
WAYS = {"privacy": (*USUAL, "estimator")}
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


def installed(name: str) -> Path:
    """The folder with the distributions of a program."""
    folder = ROOT / "build" / "libraries" / name
    if not folder.exists():
        pip = [sys.executable, "-m", "pip", "install", "-qq", "--no-deps", "--target"]
        subprocess.run([*pip, str(folder), *PINNED[name]], check=True)
    return folder


def program(name: str) -> Path:
    """The file of a program."""
    return HERE / "programs" / f"train_{name}.py"


def result_of(name: str, command: list[str], path: str) -> dict[str, float]:
    """The metrics that a command prints in its last line."""
    ran = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": path},
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
    """Runs a program here; True if its result is that of TensorFlow 2.15."""
    path = os.pathsep.join([str(ROOT), str(installed(name))])
    try:
        found = difference(expected, result_of(name, command_of(name, way), path))
    except (RuntimeError, subprocess.CalledProcessError) as error:
        print(f"{name}, {way}: {error}")
        return False
    pinned = ", ".join(PINNED[name])
    print(f"{name}, {way}: {pinned}: greatest difference {found:.1e}", flush=True)
    return found <= TOLERANCE


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(PINNED)}")
    parser.add_argument("--record", metavar="PYTHON", help="write the results of that Python")
    asked = parser.parse_args()
    names = asked.names or sorted(PINNED)
    if asked.record:
        results = {name: result_of(name, [asked.record, str(program(name))], "") for name in names}
        RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
        return 0
    expected = json.loads(RESULTS.read_text())
    runs = [(name, way) for name in names for way in WAYS.get(name, USUAL)]
    passed = sum(compare(name, way, expected[name]) for name, way in runs)
    print(f"{passed} passed, {len(runs) - passed} failed")
    return passed < len(runs)


if __name__ == "__main__":
    sys.exit(main())
