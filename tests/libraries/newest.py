"""Tries the newest release of each library, and writes what it has dropped into newest.json.

    python -m tests.libraries.newest             # all libraries
    python -m tests.libraries.newest hub lattice

Each is installed without its dependencies into a temporary folder. The names that it lacks are
read, not imported; then the program of the pinned release runs with it, by `e2s run`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from estimator2strategy.engine.libraries import table as libraries
from tests.engine.libraries.dropped_names import names_of
from tests.libraries import table

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).with_name("newest.json")
_RUNS = "runs"


def tried(row: table.Program) -> dict[str, object]:
    """The newest release of a library, the names that it lacks, and the program's end with it."""
    pinned = row.distributions[0]
    distribution, _, release = pinned.partition("==")
    with TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "-qq", "--no-deps", "--target", folder]
        subprocess.run([*pip, distribution], check=True)
        newest = _release(Path(folder), distribution)
        if newest == release:
            return {"release": newest, "dropped": [], "program": _RUNS}
        folders = row.installed(sys.executable), Path(folder)
        before, after = (names_of(each / _module(distribution)) for each in folders)
        path = os.pathsep.join([str(ROOT), *map(str, reversed(folders))])
        dropped = sorted(before - after)
        return {"release": newest, "dropped": dropped, "program": _ended(row, path)}


def _release(folder: Path, distribution: str) -> str:
    name = distribution.lower().replace("-", "_")
    found = (path.stem.split("-") for path in folder.glob("*.dist-info"))
    return next(release for of, release in found if of.lower().replace("-", "_") == name)


def _module(distribution: str) -> str:
    known = {row.distribution: row.module for row in libraries.rows()}
    return known.get(distribution, distribution.replace("-", "_"))


def _ended(row: table.Program, path: str) -> str:
    """ "runs", or the last line of what the program's end says."""
    program = Path(__file__).parent / "programs" / f"train_{row.name}.py"
    ran = subprocess.run(
        [sys.executable, "-m", "estimator2strategy", "run", str(program)],
        env={**row.variables(), "PYTHONPATH": path},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.stderr.strip().rpartition("\n")[2] if ran.returncode else _RUNS


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help=f"of {', '.join(table.rows())}")
    asked = parser.parse_args().names or list(table.rows())
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for row in (table.rows()[name] for name in asked):
        if row.distributions:
            found[row.name] = tried(row)
            RESULTS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
            print(row.name, found[row.name], flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
