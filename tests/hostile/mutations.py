"""Mutations: tools read mutants of programs, goldens and checkpoints for a given time.

    python -m tests.hostile.mutations --seconds 3600
    python -m tests.hostile.mutations --tool verify --seed 17      # one mutant again

Mutants are read in forks of a process that has imported the tools, so that one that kills its
process, or never ends, is a row like any other.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.hostile.report import Report

HOUR = 3600
_GIGABYTES = 12 << 30  # a mutant that asks for more has made a bomb go off


def main(argv: Sequence[str]) -> int:
    from tests.hostile import mutated_tools

    names = [tool.name for tool in mutated_tools.TOOLS]
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.mutations")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--tool", action="append", choices=names)
    parser.add_argument("--seed", type=int, help="this mutant alone, of one tool")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    tools = [t for t in mutated_tools.TOOLS if t.name in (options.tool or names)]
    counts: dict[str, collections.Counter[str]] = {t.name: collections.Counter() for t in tools}
    wrong = []
    with tempfile.TemporaryDirectory(prefix="e2s_mutants_") as scratch:
        mutated_tools.prepare([tool.name for tool in tools], scratch)
        if options.seed is not None:
            return _one(tools[0], options.seed, scratch)
        start = time.monotonic()
        for found in _found(tools, options.seconds, options.first, scratch):
            counts[found["tool"]][found["outcome"]] += 1
            if found["outcome"] not in _RIGHT:
                wrong.append(found)
                sys.stderr.write(f"{json.dumps(found)}\n")
                sys.stderr.flush()
    result = {"seconds": round(time.monotonic() - start), "counts": counts, "wrong": wrong}
    sys.stdout.write(json.dumps(result) + "\n" if options.json else _text(result))
    return int(bool(wrong))


_RIGHT = ("taken", "sentence")


def _text(result: dict[str, Any]) -> str:
    lines = [f"{name}: {dict(found)}" for name, found in result["counts"].items()]
    return "\n".join([f"{result['seconds']} s", *lines, f"{len(result['wrong'])} wrong", ""])


def _found(
    tools: Sequence[Any], seconds: float, first: int, scratch: str
) -> Iterator[dict[str, Any]]:
    """The outcome of each mutant, until the time is over; tools take turns by their shares."""
    end = time.monotonic() + seconds
    spent = dict.fromkeys(tools, 0.0)
    seeds = dict.fromkeys(tools, first)
    while time.monotonic() < end:
        tool = min(tools, key=lambda tool: spent[tool] / tool.share)
        start = time.monotonic()
        last = seeds[tool] + tool.at_once
        while seeds[tool] < last:  # a mutant that kills the process has others after it
            for found in _in_a_fork(tool, range(seeds[tool], last), scratch):
                seeds[tool] = found["seed"] + 1
                yield found
        spent[tool] += time.monotonic() - start


def _in_a_fork(tool: Any, seeds: range, scratch: str) -> Iterator[dict[str, Any]]:
    """The outcomes of some mutants, up to the first that does not let the process go on."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        _read_mutants(tool, seeds, scratch, write)
    os.close(write)
    seed = seeds[0]
    with os.fdopen(read) as lines:
        while seed in seeds:
            line = lines.readline() if select.select([lines], [], [], tool.seconds)[0] else None
            if line:
                seed += 1
                yield json.loads(line)
                continue
            how = "died" if line == "" else "hangs"
            os.kill(child, signal.SIGKILL if how == "hangs" else 0)
            _, status = os.waitpid(child, 0)
            yield {"tool": tool.name, "seed": seed, "outcome": how, "said": f"status {status}"}
            return
    os.waitpid(child, 0)


def _read_mutants(tool: Any, seeds: range, scratch: str, write: int) -> None:
    """The child: reads mutants, and writes a line for each. Never returns."""
    try:
        os.setpgrp()
        resource.setrlimit(resource.RLIMIT_AS, (_GIGABYTES, _GIGABYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
            os.dup2(nowhere.fileno(), 1)
        for seed in seeds:
            line = json.dumps(_of_one(tool, seed, scratch)) + "\n"
            os.write(write, line.encode())
    except BaseException:
        os.write(write, b"")
        os._exit(3)
    os._exit(0)


def _of_one(tool: Any, seed: int, scratch: str) -> dict[str, Any]:
    from tests.hostile import mutated_tools

    folder = tempfile.mkdtemp(dir=scratch, prefix=f"{tool.name}_{seed}_")
    try:
        arguments = tool.case(random.Random(f"{tool.name} {seed}"), folder)
        code, wrong = mutated_tools.ended(tool, arguments)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    outcome = "raw" if wrong else "sentence" if code == 2 else "taken"
    return {"tool": tool.name, "seed": seed, "outcome": outcome, "said": wrong[-1500:]}


def _one(tool: Any, seed: int, scratch: str) -> int:
    """Runs one mutant here, for a debugger; it stays."""
    folder = tempfile.mkdtemp(prefix=f"{tool.name}_{seed}_")
    arguments = tool.case(random.Random(f"{tool.name} {seed}"), folder)
    sys.stderr.write(f"e2s {tool.name} {' '.join(arguments)!r}\n")
    import importlib

    try:
        code: int = importlib.import_module(tool.module).main(arguments)
    except Exception:
        traceback.print_exc()
        return 1
    return code


def run(seconds: float = HOUR) -> Report:
    """Runs the command in a process of its own, whose TensorFlow has not started."""
    command = [sys.executable, "-m", "tests.hostile.mutations", "--json", "--seconds", str(seconds)]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, check=False)
    result = json.loads(done.stdout)
    wrong = [f"{w['tool']} {w['seed']}: {w['outcome']}: {w['said']}" for w in result["wrong"]]
    return Report("Mutations", _section(result), wrong)


def _section(result: dict[str, Any]) -> list[str]:
    kinds = ("taken", "sentence", "raw", "died", "hangs")
    rows = {name: [found.get(k, 0) for k in kinds] for name, found in result["counts"].items()}
    every = [sum(column) for column in zip(*rows.values(), strict=True)]
    return [
        "A mutant is a program, a golden or a checkpoint of the tests in which bytes, words, lines",
        "and values were exchanged, cut out or put in by chance. A tool reads each mutant.",
        "",
        "- *taken*: it did its work (exit code 0 or 1);",
        "- *sentence*: it said why it cannot (exit code 2);",
        "- *raw*: a traceback, or a line that a log takes for an instruction;",
        "- *died*: the process ended otherwise; *hangs*: it did not end.",
        "",
        "The last three columns are failures of this package, and must be 0.",
        "",
        f"In {result['seconds']:,} s:",
        "",
        "| tool | mutants | taken | sentence | raw | died | hangs |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(_row(f"`e2s {name}`", cells) for name, cells in rows.items()),
        _row("**all**", every),
    ]


def _row(name: str, cells: Sequence[int]) -> str:
    return f"| {name} | {sum(cells):,} | {' | '.join(f'{cell:,}' for cell in cells)} |"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
