"""The programs here, and the distributions that each needs: `table.csv`, one row each.

rows()["hub"].world     # "1.15": the TensorFlow whose results are the expected ones
"""

from __future__ import annotations

import csv
import dataclasses
import functools
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclasses.dataclass(frozen=True)
class Program:
    """A program that uses a library.

    Attributes:
        name: That of `programs/train_NAME.py`.
        distributions: The pinned distributions that it needs beside today's TensorFlow; none if
            it follows a library's pattern alone.
        of_oracle: Those that it needs beside the original TensorFlow.
        world: The original TensorFlow, "1.15" or "2.15".
        ci: False for those that take too long for CI.
        environment: Variables that the library needs beside today's TensorFlow.
    """

    name: str
    distributions: tuple[str, ...]
    of_oracle: tuple[str, ...]
    world: str
    ci: bool
    environment: dict[str, str]

    def installed(self, python: str, *, of_oracle: bool = False) -> Path:
        """The folder with the distributions, installed by this Python without dependencies."""
        folder = ROOT / "build" / "libraries" / (f"{self.name}-oracle" * of_oracle or self.name)
        wanted = self.of_oracle if of_oracle else self.distributions
        if wanted and not folder.exists():
            pip = [python, "-m", "pip", "install", "-qq", "--no-deps", "--target", str(folder)]
            subprocess.run([*pip, *wanted], check=True)
        return folder

    def variables(self) -> dict[str, str]:
        """The environment of a process that runs the program."""
        return {**os.environ, **self.environment}


@functools.cache
def rows() -> dict[str, Program]:
    """All programs by name."""
    with Path(__file__).with_name("table.csv").open(encoding="utf-8", newline="") as file:
        return {row["program"]: _program(row) for row in csv.DictReader(file)}


def _program(row: dict[str, str]) -> Program:
    distributions = tuple(row["distributions"].split())
    return Program(
        name=row["program"],
        distributions=distributions,
        of_oracle=tuple(row["of_oracle"].split()) or distributions,
        world=row["world"],
        ci=row["ci"] == "yes",
        environment=dict(each.split("=", 1) for each in row["environment"].split()),
    )
