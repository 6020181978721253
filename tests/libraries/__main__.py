"""Runs the programs here, each with its library at a pinned release, and compares the results.

Each runs in several ways: unchanged by `e2s run`, and with its import changed to this package.

    python -m tests.libraries                               # all programs
    python -m tests.libraries lattice privacy
    python -m tests.libraries --ci                          # those that CI has time for
    python -m tests.libraries --record PYTHON_OF_TF_215     # those whose oracle is TF 2.15
    python -m tests.libraries --write                       # writes the guide's table, too

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

from tests.libraries import page, table

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RESULTS = HERE / "results.json"
TOLERANCE = 1e-5  # relative to values above 1; 6e-8 was measured

# Program -> the ways in which it runs, where they are others than these, of a program of TF 1.
USUAL = ("run", "tf1")
_OF_TF2 = ("run", "run --tf2", "tf1", "estimator")
_OF_TF2_WITH_KERAS = ("run", "run --tf2", "tf1", "estimator, Keras 2")
WAYS = {
    "adanet": ("run", "run --tf2"),
    "data_validation": ("run --tf2",),
    "datasets": ("run --tf2",),
    "deepctr": _OF_TF2,
    "hub": (*USUAL, "estimator, compat.v1"),
    "lattice": _OF_TF2_WITH_KERAS,
    "model_analysis": ("run --tf2", "estimator, Keras 2"),
    "nsl": _OF_TF2,
    "opennmt": ("run",),
    "privacy": _OF_TF2,
    "probability": _OF_TF2_WITH_KERAS,
    "ranking": _OF_TF2_WITH_KERAS,
    "t2t": ("run",),  # 45 s of processor time each
    "t5": ("run",),  # 35 s
    "tfx": ("run --tf2",),
    "transform": ("run --tf2",),
    "wandb": ("run --tf2",),
}
# Way -> the options of `e2s run`.
RUN = {"run": (), "run --tf2": ("--tf2",)}
_ESTIMATOR = "from estimator2strategy import estimator as of_today"
_OF_ESTIMATOR = (
    (r"tf\.compat\.v2\.estimator\.(\w+)", r"of_today.\1V2"),
    (r"tf\.estimator\.", "of_today."),
)
# Programs of TensorFlow 2 say `tf.estimator.DNNClassifier` for the class of TensorFlow 2.
_CANNED = r"((?:Baseline|DNN|DNNLinearCombined|Linear)(?:Classifier|Estimator|Regressor))\b"
_OF_ESTIMATOR_2 = ((rf"tf\.estimator\.{_CANNED}", r"of_today.\1V2"), *_OF_ESTIMATOR)
# Way -> the import that the program gets in its first lines, and the texts that are replaced.
CHANGED = {
    "tf1": ("import estimator2strategy.tf1 as tf", ("import tensorflow as tf\n", "")),
    "estimator": (_ESTIMATOR, *_OF_ESTIMATOR_2),
    # TensorFlow's own variable gives the program's tf.keras and tf.compat.v1.layers Keras 2.
    "estimator, Keras 2": (_ESTIMATOR, *_OF_ESTIMATOR_2),
    # A program of TensorFlow 1 on the names that today's still has.
    "estimator, compat.v1": (
        _ESTIMATOR,
        *_OF_ESTIMATOR,
        ("import tensorflow as tf\n", "import tensorflow.compat.v1 as tf\n"),
    ),
}
VARIABLES = {"estimator, Keras 2": {"TF_USE_LEGACY_KERAS": "1"}}


def program(name: str) -> Path:
    """The file of a program."""
    return HERE / "programs" / f"train_{name}.py"


def ways_of(name: str, *, every: bool = True) -> tuple[str, ...]:
    """The ways in which a program runs; `run --tf2` tells little more than `run`."""
    ways = WAYS.get(name, USUAL)
    return tuple(way for way in ways if every or way != "run --tf2" or "run" not in ways)


def result_of(name: str, command: list[str], **variables: str) -> dict[str, float]:
    """The metrics that a command prints in its last line."""
    ran = subprocess.run(
        command,
        env={**table.rows()[name].variables(), **variables},
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
    imported, *replaced = CHANGED[way]
    source = program(name).read_text()
    for old, new in replaced:
        source = re.sub(old, new, source)
    changed = ROOT / "build" / "libraries" / "changed" / way / f"train_{name}.py"
    changed.parent.mkdir(parents=True, exist_ok=True)
    changed.write_text(f"{imported}\n{source}")
    return [sys.executable, str(changed)]


def result_here(name: str, way: str) -> dict[str, float]:
    """The result of a program in one of the ways."""
    path = os.pathsep.join([str(ROOT), str(table.rows()[name].installed(sys.executable))])
    return result_of(name, command_of(name, way), PYTHONPATH=path, **VARIABLES.get(way, {}))


def difference(expected: dict[str, float], got: dict[str, float]) -> float:
    """The greatest difference of two results, relative to numbers above 1."""
    if expected.keys() != got.keys():
        raise RuntimeError(f"other metrics: {sorted(expected.keys() ^ got.keys())}")
    return max(abs(value - got[key]) / max(1, abs(value)) for key, value in expected.items())


def compare(name: str, way: str, expected: dict[str, float]) -> float | None:
    """Runs a program here; returns its difference to its oracle, None if it fails."""
    try:
        found = difference(expected, result_here(name, way))
    except (RuntimeError, subprocess.CalledProcessError) as error:
        print(f"{name}, {way}: {error}")
        return None
    pinned = ", ".join(table.rows()[name].distributions)
    print(f"{name}, {way}: {pinned}: greatest difference {found:.1e}", flush=True)
    return found


def recorded(names: list[str], python: str) -> dict[str, dict[str, float]]:
    """The results of the programs whose original TensorFlow is that of a Python."""
    ask = [python, "-c", "import tensorflow; print(tensorflow.__version__)"]
    release = subprocess.run(ask, check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = [row for row in map(table.rows().get, names) if row and release.startswith(row.world)]
    return {
        row.name: result_of(
            row.name,
            [python, str(program(row.name))],
            PYTHONPATH=str(row.installed(python, of_oracle=True)),
        )
        for row in rows
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(table.rows())}")
    parser.add_argument("--record", metavar="PYTHON", help="write the results of that Python")
    parser.add_argument("--ci", action="store_true", help="leave out those that take long")
    parser.add_argument("--write", action="store_true", help="write the table of the guide, too")
    parser.add_argument("--page", action="store_true", help="only write it, run nothing")
    asked = parser.parse_args()
    if asked.page:
        page.write()
        return 0
    names = asked.names or [n for n, row in table.rows().items() if row.ci or not asked.ci]
    expected = json.loads(RESULTS.read_text())
    if asked.record:
        results = expected | recorded(names, asked.record)
        RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
        return 0
    runs = [(name, way) for name in names for way in ways_of(name, every=not asked.ci)]
    measured = {run: compare(*run, expected[run[0]]) for run in runs}
    if asked.write:
        page.keep(measured)
        page.write()
    passed = sum(found is not None and found <= TOLERANCE for found in measured.values())
    print(f"{passed} passed, {len(runs) - passed} failed")
    return passed < len(runs)


if __name__ == "__main__":
    sys.exit(main())
