"""Compares the guesses about sixty installed packages with their imports.

    python -m tests.libraries.sixty              # all of sixty.csv; writes sixty_results.csv
    python -m tests.libraries.sixty opennmt      # one, and its row there
    python -m tests.libraries.sixty --cost       # the processor time in which each was read

Each package is installed at its pinned release, without its dependencies, into a folder of its own
below build/sixty. It is imported three times, each time in a new process that has TensorFlow: as it
is, served, and as `e2s run` does it. The guess is that of the reader, which reads the files; only
`e2s run` knows some of the libraries by name, from the table.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import importlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import tensorflow as tf

from estimator2strategy.engine.libraries import reading, served
from estimator2strategy.engine.libraries.reading import Need
from estimator2strategy.legacy import importing

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build" / "sixty"
RESULTS = HERE / "sixty_results.csv"
WORKS = "works"
WITH_KERAS_2 = "works with TF_USE_LEGACY_KERAS=1"
# Seconds that an import may take.
LONGEST = 120
GUESSES = {
    Need.RUNS: "left alone",
    Need.NEEDS_OLD: "served",
    Need.UNDECIDED: "undecided",
}


@dataclasses.dataclass(frozen=True)
class Package:
    """A row of sixty.csv.

    Attributes:
        module: The module to import: the package, or a part of it that holds its models.
        kind: "old" if it is built on Estimators or tf.contrib, "modern" otherwise.
        requirements: The package, and those of its dependencies that no other one needs.
    """

    module: str
    kind: str
    requirements: str

    @property
    def name(self) -> str:
        """The package of the module."""
        return self.module.partition(".")[0]

    @property
    def folder(self) -> Path:
        return BUILD / self.requirements.split()[0]


@dataclasses.dataclass(frozen=True)
class Result:
    """A row of sixty_results.csv: the guess, and the outcomes of the imports."""

    package: str
    module: str
    kind: str
    guess: str
    alone: str
    served: str
    e2s: str

    @property
    def is_wrong(self) -> bool:
        """True if it is served in vain or to its harm, or not served where that helps."""
        runs_alone = self.alone in (WORKS, WITH_KERAS_2)
        if self.guess == "served":
            return self.served != WORKS or (runs_alone and self.kind == "modern")
        can_work = self.alone == WORKS or (self.served == WORKS and not runs_alone)
        return self.guess == "left alone" and can_work and self.e2s != WORKS


def packages() -> list[Package]:
    """All rows of sixty.csv."""
    with (HERE / "sixty.csv").open(newline="") as file:
        return [Package(**row) for row in csv.DictReader(file)]


def install(requirements: str, folder: Path) -> None:
    """Installs distributions into a folder, unless it is there."""
    if not folder.exists():
        pip = [sys.executable, "-m", "pip", "install", "-qq", "--no-deps", "--target"]
        subprocess.run([*pip, str(folder), *requirements.split()], check=True)


def read(package: Package) -> reading.Reading:
    """The guess about an installed package."""
    path = package.folder / package.name
    return reading.read(package.name, path if path.exists() else path.with_suffix(".py"))


def outcome(package: Package, prepare: Callable[[], object]) -> str:
    """The outcome of an import in a copy of this process, which has TensorFlow."""
    source, target = os.pipe()
    child = os.fork()
    if not child:
        os.close(source)
        _import(package, prepare, target)
    os.close(target)
    with os.fdopen(source) as said:
        text = said.read()
    os.waitpid(child, 0)
    return " ".join(text.split()) or "ended the process"


def _import(package: Package, prepare: Callable[[], object], target: int) -> None:
    """Imports a package, writes the outcome, and ends this process."""
    signal.alarm(LONGEST)
    quiet = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(quiet, stream)
    sys.argv = [package.module]
    sys.path[:] = [str(package.folder), *sys.path, str(BUILD / "common")]
    try:
        prepare()
        importlib.import_module(package.module)
        text = WORKS
    except BaseException as error:
        text = re.sub(r" \(/.*", "", f"{type(error).__name__}: {error}")  # no paths
    os.write(target, text.encode()[:160])
    os._exit(0)


def measured(package: Package) -> Result:
    """Reads and imports a package."""
    install(package.requirements, package.folder)
    found = read(package)
    scope = importing.Scope(legacy=frozenset({package.name}), tf2=found.world != "1.15")
    return Result(
        package.requirements.split()[0],
        package.module,
        package.kind,
        GUESSES[found.need],
        alone(package),
        outcome(package, lambda: importing.install(scope)),
        outcome(package, served.install),
    )


def alone(package: Package) -> str:
    """The outcome of an import as it is; with Keras 2, if the package wants that."""
    text = outcome(package, lambda: None)
    if text == WORKS:
        return text
    keras_2 = outcome(package, lambda: os.environ.update(TF_USE_LEGACY_KERAS="1"))
    return WITH_KERAS_2 if keras_2 == WORKS else text


def cost(package: Package) -> float:
    """The processor time in which it is decided if a package is served, in seconds."""
    before = time.process_time()
    read(package)
    return time.process_time() - before


def print_costs(chosen: list[Package]) -> None:
    """Prints the time for each package, the longest first."""
    for package in chosen:
        install(package.requirements, package.folder)
    costs = sorted(((cost(package), package) for package in chosen), key=lambda row: -row[0])
    for seconds, package in costs:
        print(f"{seconds:.3f} s {package.requirements.split()[0]}")


def written() -> list[Result]:
    """The rows of sixty_results.csv."""
    if not RESULTS.exists():
        return []
    with RESULTS.open(newline="") as file:
        return [Result(**row) for row in csv.DictReader(file)]


def write(results: list[Result]) -> None:
    """Puts results into sixty_results.csv, in the order of sixty.csv."""
    by_module = {(r.package, r.module): r for r in (*written(), *results)}
    keys = [(p.requirements.split()[0], p.module) for p in packages()]
    with RESULTS.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(field.name for field in dataclasses.fields(Result))
        rows.writerows(dataclasses.astuple(by_module[key]) for key in keys if key in by_module)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="modules; all if none is given")
    parser.add_argument("--cost", action="store_true", help="only read, and print the time")
    asked = parser.parse_args()
    names = asked.names
    chosen = [package for package in packages() if not names or package.module in names]
    if asked.cost:
        print_costs(chosen)
        return 0
    install((HERE / "sixty_common.txt").read_text(), BUILD / "common")
    print(f"TensorFlow {tf.__version__}", flush=True)
    results = []
    for package in chosen:
        results.append(measured(package))
        print(*dataclasses.astuple(results[-1]), sep=" | ", flush=True)
    write(results)
    wrong = [result.package for result in results if result.is_wrong]
    undecided = [result.package for result in results if result.guess == "undecided"]
    print(f"{len(results)} packages; wrong: {wrong}; undecided: {undecided}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
