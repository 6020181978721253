"""Runs the quick tests on other TensorFlows and Pythons, and writes their table into the guide.

    python -m tests.versions                          # every release, each in its Python
    python -m tests.versions 2.17:3.12 nightly:3.12   # some
    python -m tests.versions 2.21:3.11 --with PYTHON  # in an environment that is there
    python -m tests.versions --page                   # only the page, from the results kept

Each TensorFlow is installed as a user would do it, into build/versions, which is removed again:
three GB and about ten minutes of two cores. The results are kept in results.json beside this file.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.versions import versions_page

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RESULTS = HERE / "results.json"
BUILD = ROOT / "build" / "versions"

NIGHTLY = "nightly"
# Release of TensorFlow -> the Pythons that have wheels of it.
PYTHONS = {
    **dict.fromkeys(("2.16", "2.17", "2.18", "2.19"), ("3.10", "3.11", "3.12")),
    **dict.fromkeys(("2.20", "2.21"), ("3.10", "3.11", "3.12", "3.13")),
    NIGHTLY: ("3.11", "3.12", "3.13"),
}
_OF_NIGHTLY = ("tf-nightly", "tf_keras-nightly", "keras-nightly")
# Imported by the quick tests, beside the package and its requirements.
_FOR_TESTS = (
    *("pytest", "pytest-xdist", "pytest-rerunfailures", "hypothesis", "pandas", "scikit-learn"),
    *("matplotlib", "argcomplete", "tensorboard", "gin-config"),
)
_WITH_JAX = ("jax>=0.10", "flatbuffers")
_WITHOUT_JAX = ("2.16", "2.17")  # they need an older ml_dtypes; Python 3.10 has no JAX either
# The distributions that pip chooses for a TensorFlow, and that change what a program sees.
_CHOSEN = ("tensorflow", "tf-nightly", "keras", "keras-nightly", "tf_keras", "tf_keras-nightly")
_CHOSEN += ("numpy", "protobuf", "ml_dtypes", "h5py")
_COUNTED = re.compile(r"(\d+) (passed|failed|errors?|skipped)")
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


def main() -> int:
    arguments = _parser().parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for release, python in [] if arguments.page else _asked(arguments.versions):
        results[f"{release}:{python}"] = found = _tried(release, python, arguments)
        RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
        counts = f"{found.get('passed', '-')} passed, {found.get('failed', '-')} failed"
        said = found.get("error", counts)
        print(f"{release}, Python {python}: {said}", flush=True)
    versions_page.write(results)
    return any(found.get("failed") or "error" in found for found in results.values())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "versions", nargs="*", metavar="RELEASE[:PYTHON]", help=f"of {', '.join(PYTHONS)}"
    )
    parser.add_argument("--page", action="store_true", help="write the page, run nothing")
    parser.add_argument("--with", dest="python", metavar="PYTHON", help="install nothing")
    parser.add_argument("--bits", action="store_true", help="run the ops, and no tests")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="of pytest; default 2")
    parser.add_argument(
        "--tests",
        nargs=argparse.REMAINDER,  # "*" would refuse those that begin with a dash
        default=["-m", "quick"],
        help="arguments of pytest, all that follow; default: -m quick",
    )
    return parser


def _asked(versions: list[str]) -> Iterator[tuple[str, str]]:
    for asked in versions or PYTHONS:
        release, _, python = asked.partition(":")
        if release not in PYTHONS or (python and python not in PYTHONS[release]):
            sys.exit(f"{asked}: there are {PYTHONS}")
        for chosen in (python,) if python else PYTHONS[release]:
            yield release, chosen


def _tried(release: str, python: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """The results of one TensorFlow in one Python."""
    folder = BUILD / f"{release}-{python}"
    shutil.rmtree(folder, ignore_errors=True)
    found: dict[str, Any] = {"date": datetime.date.today().isoformat()}
    try:
        executable = arguments.python or _installed(folder, release, python)
        found["chosen"] = _chosen(executable)
        found["bits"] = _bits(executable)
        return found if arguments.bits else found | _tested(executable, arguments)
    except subprocess.CalledProcessError as error:
        return found | {"error": f"{error.cmd[0]} {error.cmd[1:4]}: {(error.stderr or '')[-400:]}"}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _installed(folder: Path, release: str, python: str) -> str:
    _run(f"python{python}", "-m", "venv", str(folder))
    executable = str(folder / "bin" / "python")
    pip = (executable, "-m", "pip", "install", "-qq")
    has_jax = python != "3.10" and release not in _WITHOUT_JAX
    tests = (*_FOR_TESTS, *_WITH_JAX) if has_jax else _FOR_TESTS
    if release == NIGHTLY:
        _run(*pip, "--pre", *_OF_NIGHTLY)
        _run(*pip, "tf-slim==1.1.0", "tqdm", "rich", *tests)
        _run(*pip, "--no-deps", "-e", str(ROOT))
    else:
        _run(*pip, f"tensorflow=={release}.*", "-e", str(ROOT), *tests)
    return executable


def _chosen(executable: str) -> dict[str, str]:
    listed = json.loads(_run(executable, "-m", "pip", "list", "--format", "json"))
    names = {name.lower().replace("_", "-"): name for name in _CHOSEN}
    found = ((names.get(d["name"].lower().replace("_", "-")), d["version"]) for d in listed)
    return {name: version for name, version in found if name}


def _bits(executable: str) -> dict[str, str]:
    """Op -> digest; of two runs, so that an op whose bits vary by themselves is told apart."""
    once, again = (
        json.loads(_run(executable, str(HERE / "last_bits.py")).splitlines()[-1]) for _ in range(2)
    )
    return {op: digest if again[op] == digest else "varies" for op, digest in once.items()}


def _tested(executable: str, arguments: argparse.Namespace) -> dict[str, Any]:
    workers = ["-n", str(arguments.workers)] if arguments.workers else []
    command = [executable, "-m", "pytest", "-q", *workers, "-r", "fE", "--tb=line"]
    command += ["-o", "addopts=", "-p", "no:cacheprovider", "--reruns", "1", *arguments.tests]
    ran = subprocess.run(
        command, cwd=ROOT, env=_environment(), capture_output=True, text=True, check=False
    )
    last = ran.stdout.strip().rpartition("\n")[2]
    counts = {word.rstrip("s"): int(number) for number, word in _COUNTED.findall(last)}
    if not counts:
        return {"error": f"pytest ended with {ran.returncode}: {(ran.stdout + ran.stderr)[-400:]}"}
    return {
        "passed": counts.get("passed", 0),
        "failed": counts.get("failed", 0) + counts.get("error", 0),
        "failures": sorted(set(_FAILED.findall(ran.stdout))),
    }


def _environment() -> dict[str, str]:
    return {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}


def _run(*command: str) -> str:
    ran = subprocess.run(
        command,
        cwd=BUILD.parent.parent,
        env=_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return ran.stdout


if __name__ == "__main__":
    sys.exit(main())
