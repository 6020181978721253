"""Runs the tests that libraries ship for their Estimators, beside the original TensorFlow and here.

    python -m tests.libraries.suites --python 2.15=PYTHON lattice privacy
    python -m tests.libraries.suites --python 2.15=PYTHON --python 2.7=PYTHON --python 1.15=PYTHON

These Pythons have that TensorFlow, pytest, and what the libraries import. Wheels come from
PyPI, and the test files of those that ship none from the repository, by git. All is below
build/suites. The counts are written into suites.json, with the tests that pass there and not here.
A file that takes longer than --limit is stopped, and those of its tests that have ended count.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "suites"
RESULTS = HERE / "suites.json"
# A line of pytest -v, such as `a_test.py::ATest::test_it PASSED [ 10%]`.
_ENDED = re.compile(r"^\S+?\.py::(.+?) (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b", re.MULTILINE)

_OPTIONS = "-v --assert=plain -p no:cacheprovider"

Suite = dict[str, str]


def suites() -> dict[str, Suite]:
    """The suites by name."""
    with (HERE / "suites.csv").open(encoding="utf-8", newline="") as file:
        return {row["suite"]: row for row in csv.DictReader(file)}


def installed(suite: Suite, python: str, kind: str) -> Path:
    """A folder with the library and its tests, installed by a Python, without dependencies."""
    folder = BUILD / f"{suite['suite']}-{kind}"
    if not folder.exists():
        pip = [python, "-m", "pip", "install", "-qq", "--no-deps", "--target", str(folder)]
        subprocess.run([*pip, *suite["distributions"].split()], check=True)
        if suite["repository"]:
            shutil.copytree(source(suite), folder, dirs_exist_ok=True, copy_function=copy_missing)
    return folder


def source(suite: Suite) -> Path:
    """A checkout of the library's repository."""
    folder = BUILD / f"{suite['suite']}-source"
    if not folder.exists():
        subprocess.run(["git", "clone", "-q", suite["repository"], str(folder)], check=True)
        subprocess.run(["git", "-C", str(folder), "checkout", "-q", suite["tag"]], check=True)
        shutil.rmtree(folder / ".git")
    return folder


def copy_missing(old: str, new: str) -> None:
    """Copies a file of the repository that the wheel does not have."""
    if not os.path.exists(new):
        shutil.copy2(old, new)


class Side(NamedTuple):
    """A TensorFlow beside which a suite runs."""

    command: list[str]
    folder: Path
    path: str = ""


def run_both(suite: Suite, original: str, seconds: int) -> None:
    """Runs a suite beside the original TensorFlow, and the tests that pass there here."""
    there = Side([original], installed(suite, original, "original"))
    tf2 = ["--tf2"] if suite["world"] != "1.15" else []
    command = [sys.executable, "-m", "estimator2strategy", "run", *tf2, *suite["options"].split()]
    here = Side(command, installed(suite, sys.executable, "here"), str(ROOT))
    for file in files(suite, there.folder):
        run(suite, there, file, seconds)
    for file in files(suite, here.folder):
        ended = outcomes(there.folder / file.relative_to(here.folder))
        passed = [test for test, outcome in ended.items() if outcome == "passed"]
        if passed:
            run(suite, here, file, seconds, passed)


def run(suite: Suite, side: Side, file: Path, seconds: int, tests: Sequence[str] = ()) -> None:
    """Runs all tests of a file, or some; their outcomes are in a log beside it."""
    paths = os.pathsep.join(filter(None, [side.path, str(side.folder)]))
    environment = {**os.environ, "PYTHONPATH": paths, "TF_CPP_MIN_LOG_LEVEL": "3"}
    # Not on the command line: absl's flags, which many tests parse, have a -v of their own.
    environment["PYTEST_ADDOPTS"] = f"{_OPTIONS} -k '{suite['only']}'"
    chosen = [f"{file}::{test}" for test in tests] or [str(file)]
    timeout = contextlib.suppress(subprocess.TimeoutExpired)
    with file.with_suffix(".log").open("w") as log, timeout:
        subprocess.run(
            [*side.command, "-m", "pytest", *chosen],
            env=environment,
            cwd=side.folder,  # the file's own may have a `keras`, which Python would find first
            stdout=log,
            stderr=log,
            timeout=seconds,
            check=False,
        )
    print(f"  {file.relative_to(side.folder)}: {len(outcomes(file))} tests", flush=True)


def files(suite: Suite, folder: Path) -> list[Path]:
    """The files of a suite that have tests to count."""
    found = sorted({file for glob in suite["files"].split() for file in folder.glob(glob)})
    return [file for file in found if suite["only"] in file.read_text(encoding="utf-8")]


def outcomes(file: Path) -> dict[str, str]:
    """The outcome of each test of a file that has ended, by `Class::test`."""
    log = file.with_suffix(".log")
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    return {test: outcome.lower() for test, outcome in _ENDED.findall(text)}


def of_suite(suite: Suite, folder: Path) -> dict[str, str]:
    """The outcomes of all tests of a suite that have ended."""
    return {
        f"{file.relative_to(folder).as_posix()}::{test}": outcome
        for file in files(suite, folder)
        for test, outcome in outcomes(file).items()
    }


def compared(suite: Suite) -> dict[str, object]:
    """The counts of a suite, and the tests that pass there and not here."""
    there, here = (of_suite(suite, BUILD / f"{suite['suite']}-{k}") for k in ("original", "here"))
    passed = [test for test, outcome in there.items() if outcome == "passed"]
    return {
        "tests": len(there),
        "pass there": len(passed),
        "pass here": sum(here.get(test) == "passed" for test in passed),
        "not here": {t: here.get(t, "missing") for t in passed if here.get(t) != "passed"},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(suites())}")
    parser.add_argument(
        "--python", metavar="WORLD=PYTHON", action="append", help="a Python with that TensorFlow"
    )
    parser.add_argument("--limit", metavar="SECONDS", type=int, default=3600, help="for a file")
    parser.add_argument("--count", action="store_true", help="count what has ended, run nothing")
    asked = parser.parse_args()
    pythons = dict(each.split("=", 1) for each in asked.python or ())
    for name in asked.names or suites():
        suite = suites()[name]
        print(name, flush=True)
        if not asked.count:
            if suite["world"] not in pythons:
                parser.error(f"{name} needs --python {suite['world']}=PYTHON")
            run_both(suite, pythons[suite["world"]], asked.limit)
        counts = compared(suite)
        said = {key: value for key, value in counts.items() if key != "not here"}
        print(f"  {said}", flush=True)
        results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        RESULTS.write_text(json.dumps(results | {name: counts}, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
