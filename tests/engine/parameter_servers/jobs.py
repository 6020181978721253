"""Jobs of several processes on this machine, each a task of one `TF_CONFIG` cluster."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests import addresses, fresh

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "tests" / "programs" / "server_job.py"


class Job:
    """The processes of a cluster; what they print goes to files in `folder`.

    Args:
        folder: Where the files and the model go.
        tasks: Job -> number of tasks, as `ps=1`.
    """

    def __init__(self, folder: Path, **tasks: int):
        self.folder, self.model_dir = folder, str(folder / "model")
        self._held = ExitStack()
        self.cluster = {
            job: self._held.enter_context(addresses.held(count)) for job, count in tasks.items()
        }
        self._processes: dict[str, subprocess.Popen] = {}

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *unused) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()
        self._held.close()

    def start(self, *names: str, flags: tuple[str, ...] = ()) -> None:
        """Starts tasks by their names: `chief`, `worker 1`."""
        for name in names:
            task, _, index = name.partition(" ")
            config = {"cluster": self.cluster, "task": {"type": task, "index": int(index or 0)}}
            with self.log(name).open("ab") as log:
                self._processes[name] = subprocess.Popen(
                    [fresh.python(), *self.command(flags)],
                    env={
                        **os.environ,
                        "TF_CONFIG": json.dumps(config),
                        "PYTHONPATH": str(ROOT),
                        "PYTHONUNBUFFERED": "1",
                    },
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )

    def command(self, flags: tuple[str, ...]) -> list[str]:
        """The arguments of Python in each task."""
        return ["-m", "estimator2strategy", "run", str(PROGRAM), self.model_dir, *flags]

    def log(self, name: str) -> Path:
        return self.folder / f"{name.replace(' ', '_')}.log"

    def said(self, name: str) -> list[dict]:
        """The lines of JSON that a task has printed."""
        if not self.log(name).exists():
            return []
        lines = self.log(name).read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def losses(self, name: str) -> list[float]:
        return [line["loss"] for line in self.said(name) if "loss" in line]

    def step(self, name: str) -> int:
        """The newest global step that a task has seen; 0 before the first."""
        return max([line["step"] for line in self.said(name) if "step" in line], default=0)

    def text(self, name: str) -> str:
        """All that a task has printed and logged."""
        return self.log(name).read_text()

    def wait_for_step(self, name: str, step: int) -> None:
        """Returns when a task has seen a global step."""
        self.wait_for(lambda: self.step(name) >= step)

    def wait_for(self, done: Callable[[], bool], seconds: float = 120) -> None:
        """Returns when `done()`."""
        deadline = time.monotonic() + seconds
        while not done():
            texts = (self.text(name)[-2000:] for name in self._processes)
            assert time.monotonic() < deadline, "\n".join(texts)
            time.sleep(0.1)

    def kill(self, name: str) -> None:
        self._processes[name].kill()
        self._processes[name].wait()

    def stop(self, name: str) -> None:
        self._processes[name].send_signal(signal.SIGSTOP)

    def code(self, name: str, seconds: float = 120) -> int:
        """The exit code of a task, once it has one."""
        return self._processes[name].wait(timeout=seconds)

    def ended(self, *names: str) -> None:
        """Waits until tasks have ended well."""
        for name in names:
            assert self.code(name) == 0, self.text(name)[-3000:]
