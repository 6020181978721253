"""Times google-research/bert of the golden under three runtimes, in turns, in one run.

    python -m benchmarks.small_bert --rounds 3

The program is `run_classifier.py` of bert-tensorflow, as it is, from the golden's variables: 2
layers, batches of 8 times 32 tokens, without dropout. Each runtime has a process of its own, and
one works at a time. A second process of JAX's runtime starts with what the first has kept.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any
from unittest import mock

from benchmarks.contender import Channel
from benchmarks.run import Worker

RUNTIMES = ("e2s", "jit", "e2s-jax", "e2s-jax again")
STEPS = 2000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help=f"of {STEPS} steps for each")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        _work(options.worker)
        return
    with (
        tempfile.TemporaryDirectory() as cache,
        mock.patch.dict(os.environ, XDG_CACHE_HOME=cache),
    ):
        rows = _in_turns(options.rounds)
    first = rows["e2s"]
    print(
        f"{'':14} {'steps/s':>8} {'ratio':>6} {'CPU ms':>7} {'first s':>8} {'CPU s':>6} {'MB':>6}"
    )
    for name, row in rows.items():
        ratio = row["steps/s"] / first["steps/s"]
        print(
            f"{name:14} {row['steps/s']:8.1f} {ratio:6.2f} {row['CPU ms']:7.2f} "
            f"{row['first s']:8.2f} {row['first CPU s']:6.2f} {row['MB']:6.0f}"
        )


def _in_turns(rounds: int) -> dict[str, dict[str, float]]:
    """Runtime -> the medians of what its process told."""
    workers, told = {}, {}
    for name in RUNTIMES:
        workers[name] = Worker(sys.executable, "benchmarks.small_bert", "--worker", name)
        told[name] = [workers[name].ask()]
    for _ in range(rounds):
        for name, worker in workers.items():
            told[name].append(worker.ask())
    for worker in workers.values():
        worker.close()
    return {name: _medians(*answers) for name, answers in told.items()}


def _medians(first: dict[str, float], *rounds: dict[str, float]) -> dict[str, float]:
    return {
        "steps/s": 1 / median(r["seconds"] for r in rounds),
        "CPU ms": 1e3 * median(r["cpu"] for r in rounds),
        "first s": first["seconds"],
        "first CPU s": first["cpu"],
        "MB": rounds[-1]["MB"],
    }


def _work(runtime: str) -> None:
    """Trains one step, then some thousand for each line of stdin; tells what they took."""
    from benchmarks.device import export
    from estimator2strategy.estimator import Runtime, TrainingOptions

    kind = runtime.split()[0]
    options = {
        "e2s": TrainingOptions(),
        "jit": TrainingOptions(jit_compile=True),
        "e2s-jax": TrainingOptions(runtime=Runtime.JAX),
    }[kind]
    channel = Channel(sys.stdin, sys.stdout)
    with (
        tempfile.TemporaryDirectory() as scratch,
        export.bert_small(Path(scratch), options=options) as case,
    ):
        estimator = case.estimator
        channel.wait()
        channel.tell(**_timed(estimator, case.input_fn, 1))
        while True:
            channel.wait()
            short, long = (_timed(estimator, case.input_fn, n) for n in (STEPS // 10, STEPS))
            of_step = {k: (long[k] - short[k]) / (STEPS - STEPS // 10) for k in ("seconds", "cpu")}
            channel.tell(**of_step, MB=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def _timed(estimator: Any, input_fn: Any, steps: int) -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    estimator.train(input_fn, steps=steps)
    return {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


if __name__ == "__main__":
    main()
