"""Prints what imports cost, and commands that need none, in processor time and memory.

    python -m benchmarks.imports_cost --legacy-python /envs/tf215/bin/python --repeats 5

Each row is a process of its own, user and system time of it and of all that it started, and its
peak of resident memory. Rows take turns; each has the best of its `--repeats` processes, because
other programs on the machine only ever add to it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.run import ROOT, environment

TODAY, REAL = "`import tensorflow`", "`import tensorflow` and its Estimator, 2.15"
PROGRAM = "import tensorflow as tf\nassert tf.estimator.Estimator\n"
_E2S = ("-m", "estimator2strategy")

# Row -> the arguments of Python; PROGRAM is the path of a program that only imports.
IMPORTS: Mapping[str, Sequence[str]] = {
    TODAY: ("-c", "import tensorflow"),
    "and this package's Estimator, imported after it": (
        *("-c", "import tensorflow; from estimator2strategy import estimator; estimator.Estimator"),
    ),
    "`from estimator2strategy import estimator` alone": (
        *("-c", "from estimator2strategy import estimator; estimator.Estimator"),
    ),
    "`import estimator2strategy.tf1 as tf`": (
        *("-c", "import estimator2strategy.tf1 as tf; tf.estimator.Estimator"),
    ),
    "`e2s run` of a program that imports TensorFlow": (*_E2S, "run", "PROGRAM"),
}
COMMANDS: Mapping[str, Sequence[str]] = {
    "`e2s --help`": (*_E2S, "--help"),
    "`e2s check` of a file of 168 lines": (*_E2S, "check", "examples/mnist_tpu/mnist_tpu.py"),
    "`e2s guide`": (*_E2S, "guide"),
    "`e2s cache`": (*_E2S, "cache"),
    "`e2s doctor --no-import`": (*_E2S, "doctor", "--no-import"),
}


class Cost(NamedTuple):
    """The cost of a process: its seconds of processor time, and the MB of its peak."""

    seconds: float
    megabytes: float


def cost(command: Sequence[str]) -> Cost:
    """Runs a command, and says what it has cost.

    Raises:
        SystemExit: It did not end well.
    """
    with tempfile.TemporaryDirectory(prefix="e2s_benchmark_") as scratch:
        program = Path(scratch, "program.py")
        program.write_text(PROGRAM, encoding="utf-8")
        command = [str(program) if word == "PROGRAM" else word for word in command]
        with subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment(scratch),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stderr
            said = process.stderr.read()
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):  # 1: `e2s check` has findings
        raise SystemExit(f"{command}\n{said[-4000:]}")
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def measured(rows: Mapping[str, Sequence[str]], repeats: int) -> dict[str, Cost]:
    """Row -> the least that one of its processes has cost; they take turns."""
    samples: dict[str, list[Cost]] = {row: [] for row in rows}
    for _ in range(repeats):
        for row, command in rows.items():
            samples[row].append(cost(command))
    return {row: Cost(*map(min, zip(*costs))) for row, costs in samples.items()}


def table(costs: Mapping[str, Cost]) -> str:
    """As markdown: with ratios to TODAY and REAL where they were measured."""
    bases = [base for base in (TODAY, REAL) if base in costs]
    head = ["", "seconds", "MB", *(f"of {base}" for base in bases)]
    lines = ["| " + " | ".join(head) + " |", "| --- " * len(head) + "|"]
    for row, (seconds, megabytes) in costs.items():
        ratios = [f"{seconds / costs[base].seconds:.2f}" for base in bases]
        lines.append(
            "| " + " | ".join([row, f"{seconds:.2f}", f"{megabytes:,.0f}", *ratios]) + " |"
        )
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> None:
    """Measures, prints tables, writes the file asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.imports_cost",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--repeats", type=int, default=5, help="processes of each row")
    parser.add_argument("--legacy-python", help="a Python with TF 2.15, for the real Estimator")
    parser.add_argument("--json", help="where to write the costs")
    args = parser.parse_args(argv)
    rows = {name: [sys.executable, *rest] for name, rest in IMPORTS.items()}
    if args.legacy_python:
        rows[REAL] = [args.legacy_python, "-c", PROGRAM]
    imports = measured(rows, args.repeats)
    print(table(imports), end="\n\n", flush=True)
    rows = {name: [sys.executable, *rest] for name, rest in COMMANDS.items()}
    commands = measured(rows, args.repeats)
    print(table(commands))
    if args.json:
        text = json.dumps({"imports": imports, "commands": commands}, indent=1)
        Path(args.json).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
