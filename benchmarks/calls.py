"""Prints what calls of 1 to 1,000 steps or batches cost, beside the real TPUEstimator's.

    python -m benchmarks.calls --models dense,conv --legacy-python /envs/tf215/bin/python
    python -m benchmarks.calls --calls train --numbers 100,300 --before ../other

Each contender has a process of its own, and they take turns call by call. An Estimator is made for
each number: its first call records and builds, its second one may build a loop, later ones find
all there. Seconds are processor time of all threads, which moves less than the clock does where
others use the machine: of the first and second calls the best of `--repeats` Estimators, of later
ones the best of all. A call before them, which is not counted, loads what a process loads once.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.contender import Channel
from benchmarks.run import BEFORE, ROOT, Worker

CALLS = ("train", "evaluate", "predict", "examples")
NUMBERS = (1, 10, 100, 300, 1000)
OURS, REAL = "e2s", "legacy"
TIMES = ("first", "second", "later")

Seconds = dict[str, float]


def program_of(contender: str, model: str) -> Any:
    """The TPUEstimator of `benchmarks.run`, with its configuration."""
    from benchmarks import estimators, models

    make = estimators.e2s if contender == OURS else estimators.legacy
    return make(models.MODELS[model])


def call_of(contender: str, model: str, call: str, number: int) -> Callable[[], Any]:
    """A call of a new Estimator, with a checkpoint to run on."""
    program = program_of(contender, model)
    estimator, input_fn = program.estimator, program.model.input_fn
    if call != "train":
        estimator.train(input_fn, steps=1)

    def predict(single: bool) -> None:
        predictions = estimator.predict(input_fn, yield_single_examples=single)
        count = number * program.model.batch_size if single else number
        for _ in itertools.islice(predictions, count):
            pass
        predictions.close()

    return {
        "train": lambda: estimator.train(input_fn, steps=number),
        "evaluate": lambda: estimator.evaluate(input_fn, steps=number),
        "predict": lambda: predict(single=False),
        "examples": lambda: predict(single=True),
    }[call]


def turns(args: argparse.Namespace) -> Iterator[tuple[str, int]]:
    """The calls and numbers in the order in which all contenders measure them."""
    yield from itertools.product(args.calls.split(","), map(int, args.numbers.split(",")))


def work(args: argparse.Namespace, channel: Channel) -> None:
    """Makes all calls of a contender, each in its turn."""
    for call, number in turns(args):
        channel.wait()
        call_of(args.contender, args.models, call, 1)()
        channel.tell()
        for _ in range(args.repeats):
            channel.wait()
            run = call_of(args.contender, args.models, call, number)
            channel.tell()
            for _ in range(2 + args.later):
                channel.wait()
                clock, cpu = time.perf_counter(), time.process_time()
                run()
                channel.tell(cpu=time.process_time() - cpu, clock=time.perf_counter() - clock)


def best(of_estimators: Sequence[Sequence[float]]) -> Seconds:
    """The least disturbed first, second and later call of several Estimators."""
    firsts, seconds, *later = zip(*of_estimators, strict=True)
    found = {"first": min(firsts), "second": min(seconds)}
    return found | ({"later": min(itertools.chain(*later))} if later else {})


def measure(
    args: argparse.Namespace, model: str, pythons: Mapping[str, str]
) -> Iterator[tuple[str, dict[str, Seconds]]]:
    """Yields (call and number, contender -> its seconds), while the contenders take turns."""
    workers = {
        contender: Worker(
            python,
            "benchmarks.calls",
            *("--contender", OURS if contender == BEFORE else contender, "--models", model),
            *("--calls", args.calls, "--numbers", args.numbers),
            *("--repeats", str(args.repeats), "--later", str(args.later)),
            root=Path(args.before).resolve() if contender == BEFORE else ROOT,
        )
        for contender, python in pythons.items()
    }
    try:
        for call, number in turns(args):
            found: dict[str, list[list[float]]] = {name: [] for name in workers}
            _ask(workers)
            for _ in range(args.repeats):
                _ask(workers)
                rounds = [_ask(workers) for _ in range(2 + args.later)]
                for name, of_one in found.items():
                    of_one.append([answers[name]["cpu"] for answers in rounds])
            yield f"{call} {number}", {name: best(of_one) for name, of_one in found.items()}
    finally:
        for worker in workers.values():
            worker.close()


def _ask(workers: Mapping[str, Worker]) -> dict[str, dict[str, Any]]:
    return {name: worker.ask() for name, worker in workers.items()}


def row(name: str, seconds: Mapping[str, Seconds]) -> str:
    """A line of the table: our seconds, and what they are times those of each other contender."""
    ours = seconds[OURS]
    cells = [name, *(f"{ours[when]:.3f}" for when in ours)]
    for contender, theirs in seconds.items():
        if contender != OURS:
            cells += [f"{ours[when] / theirs[when]:.2f}" for when in ours]
    return "| " + " | ".join(cells) + " |"


def head(contenders: Sequence[str], has_later: bool) -> str:
    """The first two lines of the table."""
    times = TIMES if has_later else TIMES[:2]
    names = {REAL: "of the real one", BEFORE: "of the build before"}
    cells = ["", *(f"{when}, s" for when in times)]
    cells += [f"{when}, {names[c]}" for c in contenders if c != OURS for when in times]
    return "\n".join(["| " + " | ".join(cells) + " |", "| --- " * len(cells) + "|"])


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.calls",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--models", default="dense", help="default: %(default)s")
    parser.add_argument("--calls", default="train,evaluate,predict", help=", ".join(CALLS))
    parser.add_argument("--numbers", default=",".join(map(str, NUMBERS)), help="of steps, batches")
    parser.add_argument("--repeats", type=int, default=2, help="Estimators of each number")
    parser.add_argument("--later", type=int, default=2, help="calls after the second one")
    parser.add_argument("--legacy-python", help="a Python with TF 2.15, for the real TPUEstimator")
    parser.add_argument("--before", help="another checkout of this project, as a contender")
    parser.add_argument("--json", help="where to write the seconds")
    parser.add_argument("--contender", help=argparse.SUPPRESS)  # of a process that is asked
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> None:
    """Measures, prints a table for each model, writes the file asked for."""
    args = parse_args(argv)
    if args.contender:
        answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)  # whatever TensorFlow prints
        work(args, Channel(sys.stdin, answers))
        return
    pythons = {OURS: sys.executable}
    if args.before:
        pythons[BEFORE] = sys.executable
    if args.legacy_python:
        pythons[REAL] = args.legacy_python
    results: dict[str, dict[str, dict[str, Seconds]]] = {}
    for model in args.models.split(","):
        print(f"\n{model}:\n\n{head(list(pythons), args.later > 0)}", flush=True)
        of_model = results.setdefault(model, {})
        for name, seconds in measure(args, model, pythons):
            of_model[name] = seconds
            print(row(name, seconds), flush=True)
            if args.json:
                Path(args.json).write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
