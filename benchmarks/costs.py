"""Prints what else estimator2strategy costs, as ratios: starting, recording, cores, checkpoints.

    python -m benchmarks.costs --legacy-python /envs/tf215/bin/python --json costs.json
    python -m benchmarks.costs --only cores --repeats 5

Each number is a median of samples (`benchmarks.samples`), each made in a process of its own; what
is compared takes turns. See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.run import ROOT, environment

LEGACY = "--contender=legacy"


@dataclasses.dataclass(frozen=True)
class Cost:
    """One table of measurements.

    Attributes:
        title: Says what is compared with what.
        sample: The name of the sample in `benchmarks.samples`.
        rows: What each row is called -> the options of its sample.
        base: Row -> the row that it is divided by, or the field of the same row.
        ratios: The fields that are divided.
        most: What the ratio should be at most; None: it is only shown.
        most_of: Field -> what its ratio should be at most, if that is another.
    """

    title: str
    sample: str
    rows: Mapping[str, Sequence[str]]
    base: Mapping[str, str]
    ratios: tuple[str, ...]
    most: float | None = None
    most_of: Mapping[str, float] = dataclasses.field(default_factory=dict)


def _start(models: Sequence[str], sample: str = "start", title: str = "") -> Cost:
    rows: dict[str, Sequence[str]] = {}
    for model in models:
        rows[f"{model}, real"] = ["--model", model, LEGACY]
        rows[model] = ["--model", model]
    return Cost(
        f"From train() until the first step is done{title}, and memory, against the real "
        "TPUEstimator",
        sample,
        rows,
        {model: f"{model}, real" for model in models},
        ("first_step_s", "above_import_mb"),
        1.0,
        {"above_import_mb": 1.1},
    )


def _numbers(model: str, numbers: Sequence[int], unit: str) -> dict[str, Sequence[str]]:
    return {f"{model}, {n} {unit}": ["--model", model, "--number", str(n)] for n in numbers}


def _rounds(models: Sequence[str]) -> Cost:
    rows: dict[str, Sequence[str]] = {}
    for model in models:
        options = ["--model", model, "--number", "12"]
        rows |= {f"{model}, real": [*options, LEGACY], model: options}
    calls = ("train", "evaluate", "predict", "round")
    return Cost(
        "Calls of one step or batch in a loop, the first round and the later ones, against the "
        "real TPUEstimator",
        "rounds",
        rows,
        {model: f"{model}, real" for model in models},
        tuple(f"{when}{call}_s" for when in ("first_", "") for call in calls),
    )


COSTS = {
    "start": _start(["dense", "conv", "bert", "resnet", "bert12"]),
    "second": _start(
        ["dense", "conv", "resnet", "bert12"], "second", " in a second process, from a checkpoint"
    ),
    "record": Cost(
        "Recording a model_fn and replaying its step, against a plain v1 graph",
        "record",
        {"bert": ["--model", "bert"], "bert12": ["--model", "bert12"]},
        {"bert": "plain_s", "bert12": "plain_s"},
        ("e2s_s",),
        1.5,
    ),
    "ops": Cost(
        "A chain of dense layers with Adam, twice and four times as long",
        "ops",
        {f"{n} layers": ["--number", str(n)] for n in (200, 400, 800)},
        {"400 layers": "200 layers", "800 layers": "200 layers"},
        ("first_step_s",),
    ),
    "cores": Cost(
        "Tracing the steps of emulated cores, against one core",
        "cores",
        {**_numbers("conv", (1, 2, 8), "cores"), **_numbers("resnet", (1, 2, 8), "cores")},
        {
            f"{model}, {n} cores": f"{model}, 1 cores"
            for model in ("conv", "resnet")
            for n in (2, 8)
        },
        ("trace_s",),
        2.0,
    ),
    "hosts": Cost(
        "Starting a training on TPU pods, eight cores a host, and tracing its steps, against one "
        "host",
        "hosts",
        _numbers("dense", (1, 4, 32), "hosts"),
        {f"dense, {n} hosts": "dense, 1 hosts" for n in (4, 32)},
        ("start_s", "trace_s"),
        8.0,
    ),
    "checkpoint": Cost(
        "How long training waits for an asynchronous checkpoint of 1 GB, against writing it",
        "checkpoint",
        {f"{n} files": ["--number", str(n)] for n in (1, 2, 4)},
        {f"{n} files": "writes_clock_s" for n in (1, 2, 4)},
        ("waits_clock_s",),
        0.1,
    ),
    "rounds": _rounds(["dense", "conv", "bert", "resnet"]),
}


def sample(python: str, name: str, options: Sequence[str]) -> dict[str, float]:
    """Makes one, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="e2s_benchmark_") as scratch:
        done = subprocess.run(
            [python, "-m", "benchmarks.samples", name, *options],
            cwd=ROOT,
            env=environment(scratch),
            capture_output=True,
            text=True,
        )
    if done.returncode:
        raise SystemExit(f"{done.args}\n{done.stderr[-4000:]}")
    return json.loads(done.stdout)


def measured(cost: Cost, repeats: int, legacy_python: str | None) -> dict[str, dict[str, float]]:
    """Row -> the medians of its fields."""
    samples: dict[str, list[dict[str, float]]] = {}
    for _ in range(repeats):
        for row, options in cost.rows.items():
            python = legacy_python if LEGACY in options else sys.executable
            if python:
                samples.setdefault(row, []).append(sample(python, cost.sample, options))
    return {
        row: {name: statistics.median(s[name] for s in of_row) for name in of_row[0]}
        for row, of_row in samples.items()
    }


def ratios(cost: Cost, rows: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Field that is divided -> row -> the ratio, where there is what it is divided by."""
    found: dict[str, dict[str, float]] = {}
    for field in cost.ratios:
        for row, base in cost.base.items():
            divisor = rows[row].get(base) or rows.get(base, {}).get(field)
            if divisor:
                found.setdefault(field, {})[row] = rows[row][field] / divisor
    return found


def table(cost: Cost, rows: Mapping[str, Mapping[str, float]]) -> str:
    """As markdown."""
    found = ratios(cost, rows)
    fields = list(next(iter(rows.values())))
    lines = [
        f"{cost.title}:",
        "",
        "| " + " | ".join(["", *fields, *(f"ratio of {name}" for name in cost.ratios)]) + " |",
    ]
    lines.append("|" + "---|" * (len(fields) + len(cost.ratios) + 1))
    for row, values in rows.items():
        cells = [
            f"{values[name]:,.3g}" if values[name] < 1000 else f"{values[name]:,.0f}"
            for name in fields
        ]
        for name in cost.ratios:
            most = cost.most_of.get(name, cost.most)
            cells.append(_verdict(found.get(name, {}).get(row), most))
        lines.append("| " + " | ".join([row, *cells]) + " |")
    return "\n".join(lines)


def _verdict(ratio: float | None, most: float | None) -> str:
    if ratio is None:
        return ""
    if most is None:
        return f"{ratio:.2f}"
    return f"{ratio:.2f} (<= {most} {'ok' if ratio <= most else 'MISSED'})"


def main(argv: list[str] | None = None) -> None:
    """Measures, prints tables, writes the file asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.costs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default=",".join(COSTS), help="default: %(default)s")
    parser.add_argument("--repeats", type=int, default=3, help="samples of each row")
    parser.add_argument("--legacy-python", help="a Python with TF 2.15, for the real TPUEstimator")
    parser.add_argument("--json", help="where to write the medians and ratios")
    args = parser.parse_args(argv)
    results = {}
    for name in args.only.split(","):
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        cost = COSTS[name]
        rows = measured(cost, args.repeats, args.legacy_python)
        results[name] = {"rows": rows, "ratios": ratios(cost, rows)}
        print(table(cost, rows), end="\n\n", flush=True)
        if args.json:
            Path(args.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
