"""Prints what training with estimator2strategy costs or gains, as ratios measured in one run.

    python -m benchmarks.run --models dense,conv --repeats 5 \\
        --legacy-python /envs/tf215/bin/python --json out.json --plot out.png

Contenders: `e2s` (TPUEstimator of this package), `jit` (the same with jit_compile=True) and
`e2s-jax` (the same under JAX; both if asked for), `loop` (a hand-written tf.function loop), `keras`
(fit with steps_per_execution=50), `orbit` (if asked for), with --legacy-python `legacy` (the real
TPUEstimator of TF 2.15), and with --before `before` (`e2s` in another checkout). Each lives in a
process of its own and they take turns, one chunk of steps each, so nothing runs at the same time.
See benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.contender import STEPS_PER_EXECUTION
from benchmarks.report import Result

ROOT = Path(__file__).resolve().parent.parent
MODELS = ("dense", "conv", "bert", "resnet", "bert12", "ranker", "input")
CONTENDERS = ("e2s", "loop", "keras")
BEFORE = "before"
# The ratios of a whole run, which `--quick` puts its own beside.
COMMITTED = ROOT / "benchmarks/results.json"
QUICK = {
    "models": "dense",
    "contenders": "e2s,loop,keras",
    "repeats": 5,
    "evaluations": 1,
    "shorter": 5,
}
# By how much the steps of a chunk may differ from the steps asked for, where a worker can tell.
TOLERANCE = 0.02


class WorkerError(RuntimeError):
    """A contender's process ended before its work was done."""


def environment(scratch: str, root: Path = ROOT) -> dict[str, str]:
    """Of a process that is measured; `scratch`: a folder for its checkpoints."""
    return {
        **os.environ,
        "PYTHONPATH": str(root),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TMPDIR": scratch,
    }


class Worker:
    """A contender's process, asked for one piece of work at a time."""

    def __init__(self, python: str, module: str, *args: str, root: Path = ROOT) -> None:
        self._stderr = tempfile.TemporaryFile("w+")  # noqa: SIM115
        # For its checkpoints; a run of all models leaves gigabytes.
        self._scratch = tempfile.TemporaryDirectory(prefix="e2s_benchmark_")
        self._process = subprocess.Popen(
            [python, "-m", module, *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            cwd=root,
            env=environment(self._scratch.name, root),
            text=True,
        )

    def ask(self) -> dict[str, Any]:
        """Lets the process do its next piece of work, and waits for the answer."""
        assert self._process.stdin
        assert self._process.stdout
        try:
            self._process.stdin.write("go\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass
        line = self._process.stdout.readline()
        if not line:
            self._stderr.seek(0)
            raise WorkerError(f"{self._process.args}\n{self._stderr.read()[-4000:]}")
        return json.loads(line)

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin
        self._process.stdin.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._stderr.close()
        self._scratch.cleanup()


def rate(answer: dict[str, Any], steps: int) -> float:
    """Steps per second of a chunk that should have had `steps` steps."""
    ran = answer.get("steps")
    if ran is not None and abs(ran - steps) > TOLERANCE * steps:
        raise WorkerError(f"A chunk had {ran} steps instead of {steps}.")
    return steps / answer["seconds"]


class Turns:
    """All contenders on one model, taking turns."""

    def __init__(self, model: str, pythons: dict[str, str], args: argparse.Namespace) -> None:
        self._repeats, self._evaluations = args.repeats, args.evaluations
        self.results = [Result(model, contender) for contender in pythons]
        options = ["--model", model, "--shorter", str(args.shorter)]
        options += ["--chunks", str(args.repeats), "--evaluations", str(args.evaluations)]
        self._workers = [
            self._worker(contender, python, options, args.before)
            for contender, python in pythons.items()
        ]

    @staticmethod
    def _worker(contender: str, python: str, options: list[str], before: str | None) -> Worker:
        other = contender == BEFORE and before
        options = ["--contender", report.OURS if other else contender, *options]
        root = Path(other).resolve() if other else ROOT
        return Worker(python, "benchmarks.worker", *options, root=root)

    def round(self) -> list[tuple[Result, dict[str, Any]]]:
        """One piece of work of every contender, one contender at a time."""
        return [(result, worker.ask()) for result, worker in zip(self.results, self._workers)]

    def run(self) -> list[Result]:
        """All pieces of work."""
        for result, answer in self.round():
            result.tensorflow, result.import_s = answer["tensorflow"], answer["seconds"]
        for result, answer in self.round():
            result.first_s, result.record_s = answer["seconds"], answer.get("record_s")
            train_chunk, eval_chunk = answer["train_chunk"], answer["eval_chunk"]
        self.round()  # The warm-up.
        for _ in range(self._repeats):
            for result, answer in self.round():
                result.train_rates.append(rate(answer, train_chunk))
                result.cpu_ms.append(1e3 * answer["cpu_seconds"] / train_chunk)
        for phase in ("eval_rate", "predict_rate") if self._evaluations else ():
            rounds = [self.round() for _ in range(self._evaluations)]
            for result, *answers in zip(self.results, *rounds, strict=True):
                times = [answer for _, answer in answers]
                setattr(result, phase, report.slope_rate(eval_chunk, times))
        for result, answer in self.round():
            for name, value in answer.items():
                setattr(result, name, value)
        return self.results

    def close(self) -> None:
        """Ends all processes."""
        for worker in self._workers:
            worker.close()


def measure(args: argparse.Namespace, model: str) -> list[Result]:
    """Runs all contenders on one model."""
    pythons = dict.fromkeys(args.contenders.split(","), sys.executable)
    if args.legacy_python:
        pythons["legacy"] = args.legacy_python
    if args.legacy115_python:
        pythons["legacy115"] = args.legacy115_python
    if args.before:
        pythons[BEFORE] = sys.executable
    turns = Turns(model, pythons, args)
    try:
        return turns.run()
    finally:
        turns.close()


def machine() -> dict[str, Any]:
    """Returns facts about this machine."""
    return {
        "cpus": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
    }


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--models", default=",".join(MODELS), help="default: %(default)s")
    parser.add_argument("--repeats", type=int, default=5, help="timed train chunks of each")
    parser.add_argument(
        "--evaluations", type=int, default=3, help="timed evaluate and predict; 0: none"
    )
    parser.add_argument("--legacy-python", help="a Python with TF 2.15, for the real TPUEstimator")
    parser.add_argument("--legacy115-python", help="a Python with TF 1.15, likewise")
    parser.add_argument("--before", help="another checkout of this project, as a contender")
    parser.add_argument("--contenders", default=",".join(CONTENDERS), help="default: %(default)s")
    parser.add_argument(
        "--shorter", type=int, default=1, help="how many times shorter the chunks of steps are"
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a minute of the smallest model, beside the ratios of results.json",
    )
    parser.add_argument("--json", help="where to write every sample")
    parser.add_argument("--plot", help="where to write the bars of ratios (needs matplotlib)")
    args = parser.parse_args(argv)
    if args.quick:
        vars(args).update(QUICK)
    return args


def save(args: argparse.Namespace, results: list[Result]) -> None:
    """Writes the files asked for; called after every model, so that a broken run loses little."""
    if args.json:
        content = {
            "machine": machine(),
            "results": [dataclasses.asdict(result) for result in results],
            "ratios": report.ratios(results),
            "evaluate_ratios": report.rate_ratios(results, "eval_rate"),
            "predict_ratios": report.rate_ratios(results, "predict_rate"),
        }
        Path(args.json).write_text(json.dumps(content, indent=1))
    if args.plot and results:
        report.plot(results, args.plot)


def main(argv: list[str] | None = None) -> None:
    """Measures, prints the table, writes the files asked for."""
    args = parse_args(argv)
    results: list[Result] = []
    for model in filter(None, args.models.split(",")):
        print(f"measuring {model} ...", file=sys.stderr, flush=True)
        results += measure(args, model)
        save(args, results)
    if results:
        print(report.table(results, STEPS_PER_EXECUTION), flush=True)
    if args.quick:
        print(report.beside(report.ratios(results), json.loads(COMMITTED.read_text())["ratios"]))


if __name__ == "__main__":
    main()
