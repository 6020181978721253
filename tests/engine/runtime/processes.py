"""Runs tests/programs/resumable.py in processes that tests stop and kill."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests import fresh

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "tests/programs/resumable.py"


def start(*arguments: object, python: str | None = None) -> subprocess.Popen:
    """Starts the program, in a fork unless a `python` is given; its log comes through `stderr`."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return subprocess.Popen(
        [python or fresh.python(), str(PROGRAM), *map(str, arguments)],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )


def wait_until(condition: Callable[[], object], process: subprocess.Popen) -> None:
    """Waits while the process runs, for some minutes at most."""
    deadline = time.monotonic() + 300
    while not condition():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline, "It did not come to that in time."
        time.sleep(0.02)


def losses_in(path: Path) -> dict[int, str]:
    """Step -> loss (hexadecimal), as last written by the program."""
    if not path.exists():
        return {}
    lines = (line.split() for line in path.read_text().splitlines())
    return {int(step): loss for step, loss in lines}
