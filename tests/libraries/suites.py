"""Runs the tests that libraries ship for their Estimators, beside the original TensorFlow and here.

    python -m tests.libraries.suites --python 2.15=PYTHON lattice privacy
    python -m tests.libraries.suites --python 2.15=PYTHON --python 2.7=PYTHON --python 1.15=PYTHON

These Pythons have that TensorFlow, pytest, and what the libraries import. Wheels come from
PyPI, and the test files of those that ship none from the repository, by git. All is below
build/suites. The counts are written into suites.json, with the tests that pass there and not here.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "suites"
RESULTS = HERE / "suites.json"
SECONDS = 3600  # for one file of tests

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


def outcomes(
    folder: Path, file: Path, only: str, command: list[str], environment: dict[str, str]
) -> dict[str, str]:
    """The outcome of each test of a file, or of those whose names hold a word, by `Class::test`."""
    report = file.with_suffix(".xml")
    report.unlink(missing_ok=True)
    pytest = [
        "-m",
        "pytest",
        "-q",
        "--assert=plain",
        "-p",
        "no:cacheprovider",
        str(file),
        "-k",
        only,
    ]
    timeout = contextlib.suppress(subprocess.TimeoutExpired)
    with file.with_suffix(".log").open("w") as log, timeout:
        subprocess.run(
            [*command, *pytest, f"--junitxml={report}"],
            env=environment,
            cwd=folder,  # the file's own may have a `keras`, which Python would find first
            stdout=log,
            stderr=log,
            timeout=SECONDS,
            check=False,
        )
    if not report.exists():
        return {}
    return {
        f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}": (
            "failed"
            if {"failure", "error"} & {child.tag for child in case}
            else "skipped"
            if case.find("skipped") is not None
            else "passed"
        )
        for case in xml.etree.ElementTree.parse(report).iter("testcase")
    }


def run(suite: Suite, command: list[str], folder: Path, path: str = "") -> dict[str, str]:
    """The outcomes of all tests of a suite."""
    paths = os.pathsep.join(filter(None, [path, str(folder)]))
    environment = {**os.environ, "PYTHONPATH": paths, "TF_CPP_MIN_LOG_LEVEL": "3"}
    files = sorted({file for glob in suite["files"].split() for file in folder.glob(glob)})
    files = [file for file in files if suite["only"] in file.read_text(encoding="utf-8")]
    found: dict[str, str] = {}
    for file in files:
        of_file = outcomes(folder, file, suite["only"], command, environment)
        name = file.relative_to(folder).as_posix()
        print(f"  {name}: {len(of_file)} tests", flush=True)
        found |= {f"{name}::{test}": outcome for test, outcome in of_file.items()}
    return found


def compared(suite: Suite, original: str) -> dict[str, object]:
    """The counts of a suite, and the tests that pass there and not here."""
    there = run(suite, [original], installed(suite, original, "original"))
    tf2 = ["--tf2"] if suite["world"] != "1.15" else []
    command = [sys.executable, "-m", "estimator2strategy", "run", *tf2]
    command += suite["options"].split()
    here = run(suite, command, installed(suite, sys.executable, "here"), str(ROOT))
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
    asked = parser.parse_args()
    pythons = dict(each.split("=", 1) for each in asked.python or ())
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in asked.names or suites():
        suite = suites()[name]
        original = pythons.get(suite["world"])
        if not original:
            parser.error(f"{name} needs --python {suite['world']}=PYTHON")
        print(name, flush=True)
        results[name] = compared(suite, original)
        counts = {key: value for key, value in results[name].items() if key != "not here"}
        print(f"  {counts}", flush=True)
        RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
