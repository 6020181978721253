"""Steps/s of tensorflow-ranking and deepctr here, beside the same program on TensorFlow 2.15.

    python -m tests.libraries.speed --original /envs/tf215/bin/python
    python -m tests.libraries.speed ranking --turns 15 --original /envs/tf215/bin/python

Both processes train at the same time and take turns, so that a busy machine is as busy for each.
The ratios are medians of the ratios of neighbouring turns; above 1 is faster here.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.libraries import table

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROGRAMS = ("deepctr", "ranking")
Turn = tuple[float, float]  # seconds, and seconds of processor time, of a step


class Training:
    """A program that trains while it has its turn, and waits otherwise."""

    def __init__(self, command: list[str], path: str):
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        self.turn(starts=False)  # to warm up

    def turn(self, *, starts: bool = True) -> Turn:
        """Trains until the next line of global_step/sec."""
        assert self._process.stdin
        assert self._process.stdout
        if starts:
            self._process.send_signal(signal.SIGCONT)
            self._process.stdin.write("\n")
            self._process.stdin.flush()
        for line in self._process.stdout:
            if line.startswith("TURN "):
                self._process.send_signal(signal.SIGSTOP)  # its input would work ahead
                seconds, processor = json.loads(line.removeprefix("TURN "))
                return seconds, processor
        self._errors.seek(0)
        raise RuntimeError(f"the training ended:\n{self._errors.read()[-2000:]}")

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


def measured(name: str, original: str, turns: int) -> list[tuple[Turn, Turn]]:
    """The turns of one program on the original TensorFlow, and here."""
    program, row = str(HERE / "programs" / f"speed_{name}.py"), table.rows()[name]
    here = os.pathsep.join([str(ROOT), str(row.installed(sys.executable))])
    run = [sys.executable, "-m", "estimator2strategy", "run", "--tf2"]
    there = Training(
        [original, program, str(turns + 2)], str(row.installed(original, of_oracle=True))
    )
    ours = Training([*run, program, str(turns + 2)], here)
    try:
        return [(there.turn(), ours.turn()) for _ in range(turns)]
    finally:
        there.end()
        ours.end()


def report(name: str, turns: list[tuple[Turn, Turn]]) -> str:
    """The row of a program: steps/s, processor time of a step in ms, and their ratios."""
    there, here = zip(*turns, strict=True)
    speeds = [1 / statistics.median(seconds for seconds, _ in side) for side in (there, here)]
    costs = [1000 * statistics.median(cost for _, cost in side) for side in (there, here)]
    faster = statistics.median(one[0] / other[0] for one, other in turns)
    cheaper = statistics.median(one[1] / other[1] for one, other in turns)
    cells = [name, *(f"{v:.1f}" for v in speeds), f"{faster:.2f}"]
    return f"| {' | '.join([*cells, *(f'{v:.2f}' for v in (*costs, cheaper))])} |"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help=f"of {', '.join(PROGRAMS)}")
    parser.add_argument("--original", metavar="PYTHON", required=True, help="has TensorFlow 2.15")
    parser.add_argument("--turns", type=int, default=15)
    asked = parser.parse_args()
    print("| program | steps/s there | here | ratio | ms of processor there | here | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in asked.names or PROGRAMS:
        print(report(name, measured(name, asked.original, asked.turns)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
