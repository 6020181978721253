"""`Training`: a program in a folder of its own, which is started, killed and started again."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from estimator2strategy.engine.runtime.requested_job import RUNTIME_VARIABLE
from tests import addresses, fresh
from tests.hostile.killed_program import complete_exports

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).parent / "killed_program.py"
_MAX_STEPS = 300
_EXPORTS = 40
_LIMIT = 300.0  # seconds that anything may take
# Names that may lie in a model_dir while nobody writes; checkpoints are looked at by themselves.
_EXPECTED = re.compile(
    r"checkpoint|graph\.pbtxt|events\.out\..*|input_position-\d+\.[0-9a-f]{16}|eval.*"
)
OF_CHECKPOINT = re.compile(r"(model\.ckpt-\d+)\.(index|meta|data-\d+-of-\d+)")


class Leftover(NamedTuple):
    """A file that a kill has left; another one may have its name, but not its inode and time."""

    path: str
    identity: tuple[int, int]
    size: int

    @classmethod
    def of(cls, path: Path) -> Leftover:
        stat = path.stat()
        return cls(str(path), (stat.st_ino, stat.st_mtime_ns), stat.st_size)


class Training:
    """One training in a folder of its own, started again after each kill.

    Args:
        kind: A key of `killed_program.KINDS`.
        folder: It does not exist.

    Attributes:
        kills_itself: True if it dies while it writes its only checkpoint again.
    """

    last = _MAX_STEPS

    def __init__(self, kind: str, folder: Path):
        self.kind = kind
        folder.mkdir()
        self.model_dir = folder / "model"
        self.losses = folder / "losses"
        self._log = folder / "log"
        self._pid_files: list[Path] = []
        self._processes: list[subprocess.Popen] = []
        self._starts = 0
        self._ports = ExitStack()  # held until the next start
        self.kills_itself = False

    def start(self, to_the_end: bool = False) -> None:
        """Starts its process, or both of them; one that kills itself, if not `to_the_end`."""
        self._pid_files, self._processes = [], []
        self._starts += 1
        self.kills_itself = self.kind == "rewritten" and self._starts % 2 == 0 and not to_the_end
        fault = {"DIES_IN_REWRITE": "1"} if self.kills_itself else {}
        self._ports.close()
        held = self._ports.enter_context(addresses.held(2))
        for number, more in enumerate(_environments(self.kind, *held)):
            losses = Path(f"{self.losses}{number or ''}")
            pid_file = Path(f"{losses}.pid")
            pid_file.unlink(missing_ok=True)
            self._pid_files.append(pid_file)
            arguments = [self.kind, self.model_dir, losses, self.last]
            with self._log.open("ab") as log:
                self._processes.append(
                    subprocess.Popen(
                        [fresh.python(), str(PROGRAM), *map(str, arguments)],
                        env={**os.environ, "PYTHONPATH": str(ROOT), **more, **fault},
                        stdout=log,
                        stderr=log,
                    )
                )
        for pid_file, process in zip(self._pid_files, self._processes, strict=True):
            self.wait_until(pid_file.exists, process)

    def has_killed_itself(self) -> bool:
        """Waits for its end; False if that was another one."""
        return all(process.wait(_LIMIT) == -signal.SIGKILL for process in self._processes)

    def kill(self, between: float = 0.0) -> bool:
        """Kills its processes at once, or so many seconds apart; False if one had ended."""
        alive = all(process.poll() is None for process in self._processes)
        for number, pid_file in enumerate(self._pid_files):
            if number:
                time.sleep(between)
            try:
                os.kill(int(pid_file.read_text()), signal.SIGKILL)
            except ProcessLookupError:
                alive = False
        for process in self._processes:
            process.wait()
        return alive

    def run_to_the_end(self) -> bool:
        """True if all processes ended well."""
        return all(process.wait(_LIMIT) == 0 for process in self._processes)

    def wait_until(self, condition: Callable[[], bool], process=None, every: float = 0.01) -> bool:
        """False if a process ended before."""
        deadline = time.monotonic() + _LIMIT
        while not condition():
            if any(each.poll() is not None for each in self._processes):
                return condition()
            if time.monotonic() > deadline:
                raise TimeoutError(self.last_words())
            time.sleep(every)
        return True

    def lines(self) -> list[str]:
        """The losses so far; a line that a kill has cut short is left out."""
        if not self.losses.exists():
            return []
        *whole, _ = self.losses.read_text().split("\n")
        return [line for line in whole if len(line.split()) == 2]

    def saving(self) -> bool:
        """True while a checkpoint, or an export, is being written."""
        try:
            names = os.listdir(self.model_dir)
        except FileNotFoundError:
            return False
        return any(name.startswith(".saving.") or name.endswith("_temp") for name in names)

    def listed(self) -> list[int]:
        """The steps of the checkpoints that are complete and listed, the latest first."""
        path = self.model_dir / "checkpoint"
        return (
            [int(step) for step in re.findall(r"ckpt-(\d+)\"", path.read_text())]
            if (path.exists())
            else []
        )

    def leftovers(self) -> list[Leftover]:
        """The files in the folder that do not belong there while nobody writes."""
        if not self.model_dir.exists():
            return []
        listed = {f"model.ckpt-{step}" for step in self.listed()}
        # Those that are complete, but for the list, stay until their step is saved again.
        indices = [int(path.stem.split("-")[1]) for path in self.model_dir.glob("*-*.index")]
        new = {f"model.ckpt-{i}" for i in indices if i > max(self.listed(), default=-1)}
        found = []
        for path in self.model_dir.rglob("*"):
            name, *below = path.relative_to(self.model_dir).parts
            if below and name.endswith(".before"):
                continue  # links to files of before, whoever made them: the folder tells
            match = OF_CHECKPOINT.fullmatch(name)
            belongs = match[1] in listed | new if match else _EXPECTED.fullmatch(name)
            if not belongs:
                found.append(Leftover.of(path))
        return found

    def last_words(self) -> str:
        return self._log.read_text(errors="replace")[-1500:]


class Exports(Training):
    """A program that exports its model again and again."""

    last = _EXPORTS

    @property
    def _folder(self) -> Path:
        return self.model_dir / "export" / "served"

    def saving(self) -> bool:
        return self._folder.exists() and any(self._folder.glob("*temp-*"))

    def listed(self) -> list[int]:
        """The number of the next export, by those that are there."""
        return [len(complete_exports(self._folder))]

    def leftovers(self) -> list[Leftover]:
        """The folders of exports that are not complete."""
        if not self._folder.exists():
            return []
        whole = complete_exports(self._folder)
        return [Leftover.of(path) for path in self._folder.iterdir() if path.name not in whole]


_SETTINGS = {
    "cores": {"E2S_EMULATE_TPU_CORES": "2"},
    "jax": {RUNTIME_VARIABLE: "jax"},
    "jax_cores": {RUNTIME_VARIABLE: "jax"},
}


def _environments(kind: str, chief: str, worker: str) -> list[dict[str, str]]:
    """The variables that each process of a training has in its environment beside this one's."""
    if kind != "processes":
        return [_SETTINGS.get(kind, {})]
    cluster = {"chief": [chief], "worker": [worker]}
    tasks = [{"type": job, "index": 0} for job in cluster]
    return [{"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})} for task in tasks]


def training_of(kind: str, folder: Path) -> Training:
    """A training that does not run yet; `folder` does not exist."""
    return Exports(kind, folder) if kind == "exports" else Training(kind, folder)
