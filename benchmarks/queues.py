"""Steps/s of inputs that read from queues, beside TensorFlow 1.15.

    python -m benchmarks.queues --legacy-python /envs/tf115/bin/python --rounds 3

Both take turns, each a whole program (queue_program.py); ratios are medians of the ratios inside a
round.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("queue_program.py")
KINDS = ("lines", "records", "arrays", "dataset")


def _speed(command: list[str], kind: str) -> float:
    done = subprocess.run([*command, str(PROGRAM), kind], capture_output=True, text=True)
    found = re.search(r"steps/s: ([\d.]+)", done.stdout)
    if found is None:
        sys.exit(done.stderr[-2000:])
    return float(found[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--legacy-python", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    ours = [sys.executable, "-m", "estimator2strategy", "run"]
    print("| input | TF 1.15 | here | ratio |\n| --- | --- | --- | --- |")
    for kind in KINDS:
        rounds = [
            (_speed([options.legacy_python], kind), _speed(ours, kind))
            for _ in range(options.rounds)
        ]
        real, here = (statistics.median(speeds) for speeds in zip(*rounds, strict=True))
        ratio = statistics.median(b / a for a, b in rounds)
        print(f"| {kind} | {real:.0f} | {here:.0f} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
