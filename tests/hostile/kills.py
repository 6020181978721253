"""The table of kills: trainings that are killed (SIGKILL) again and again, and always resumed.

    python -m tests.hostile kills --kills=1000

Half of the kills wait until a checkpoint is being written; the others come at any moment, while the
program starts and restores, too. A training that was killed so many times goes on to its end and is
compared with one that nobody has interrupted: the loss of each step, bit for bit, and each variable
of the last checkpoint. After each kill it is noted what lay about, and whether the next start has
cleared it.
"""

from __future__ import annotations

import dataclasses
import json
import os
import random
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tests import fresh
from tests.hostile.killed_program import SAVE_EVERY
from tests.hostile.report import Report

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).parent / "killed_program.py"
KILLS = 1000
MAX_STEPS = 300
KILLS_OF_ONE = 20  # of one training; each comes within the next `_STEPS_AHEAD` steps
_STEPS_AHEAD = 9
_START_SECONDS = 1.5
_LIMIT = 300.0  # seconds that anything may take
# A checkpoint may be in the making, for as long as until the next one is due.
MOST_LOST = {"device": 2 * SAVE_EVERY, "cores": 2 * SAVE_EVERY, "processes": SAVE_EVERY}
TITLES = {
    "device": "one device",
    "cores": "two emulated cores",
    "processes": "two processes",
}
_SHARES = {"device": 0.5, "cores": 0.3, "processes": 0.2}
_LEGEND = (
    f"Trainings that save every {SAVE_EVERY} steps are killed (`SIGKILL`) and started again, up to "
    f"{KILLS_OF_ONE} times each, and then go on to their end. *While saving*: the process died "
    "while it wrote a checkpoint. *Most steps lost*: between the last step that was done and the "
    "one that the next start began with; where training goes on while a checkpoint is written, "
    "that may be one interval for the checkpoint in the making, and one for the steps since. "
    "*Checkpoints lost*: complete ones that the next start did not go on from. *Resumed "
    "otherwise*: trainings whose losses or variables are not, bit for bit, those of one nobody has "
    "interrupted. *Bytes left*: of what kills had left, after the next start; *cleared* is what "
    "that start has removed or completed. In the training of two processes all batches are the "
    "same, because only the chief's place in its input is kept."
)
# Names that may lie in a model_dir while nobody writes; checkpoints are looked at by themselves.
_EXPECTED = re.compile(
    r"checkpoint|graph\.pbtxt|events\.out\..*|input_position-\d+\.[0-9a-f]{16}|eval.*"
)
_OF_CHECKPOINT = re.compile(r"(model\.ckpt-\d+)\.(index|meta|data-\d+-of-\d+)")


class Leftover(NamedTuple):
    """A file that a kill has left; another one may have its name, but not its inode and time."""

    path: str
    identity: tuple[int, int]
    size: int

    @classmethod
    def of(cls, path: Path) -> Leftover:
        stat = path.stat()
        return cls(str(path), (stat.st_ino, stat.st_mtime_ns), stat.st_size)


@dataclasses.dataclass
class Count:
    """The outcome of the kills of one kind of training."""

    kills: int = 0
    while_saving: int = 0
    trainings: int = 0
    most_lost_steps: int = 0
    lost_checkpoints: int = 0
    unequal: int = 0
    litter: int = 0
    cleared: int = 0
    wrong: list[str] = dataclasses.field(default_factory=list)

    def add(self, other: Count) -> None:
        most = max(self.most_lost_steps, other.most_lost_steps)
        for field in dataclasses.fields(self):
            total = getattr(self, field.name) + getattr(other, field.name)
            setattr(self, field.name, total)
        self.most_lost_steps = most


class Training:
    """One training in a folder of its own, started again after each kill.

    Args:
        kind: A key of `TITLES`.
        folder: It does not exist.
    """

    def __init__(self, kind: str, folder: Path):
        self.kind = kind
        folder.mkdir()
        self.model_dir = folder / "model"
        self.losses = folder / "losses"
        self._log = folder / "log"
        self._pid_files: list[Path] = []
        self._processes: list[subprocess.Popen] = []

    def start(self) -> None:
        """Starts its process, or both of them."""
        self._pid_files, self._processes = [], []
        for number, more in enumerate(_environments(self.kind)):
            losses = Path(f"{self.losses}{number or ''}")
            pid_file = Path(f"{losses}.pid")
            pid_file.unlink(missing_ok=True)
            self._pid_files.append(pid_file)
            arguments = [self.kind, self.model_dir, losses, MAX_STEPS]
            with self._log.open("ab") as log:
                self._processes.append(
                    subprocess.Popen(
                        [fresh.python(), str(PROGRAM), *map(str, arguments)],
                        env={**os.environ, "PYTHONPATH": str(ROOT), **more},
                        stdout=log,
                        stderr=log,
                    )
                )
        for pid_file, process in zip(self._pid_files, self._processes, strict=True):
            self.wait_until(pid_file.exists, process)

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
        """True while a checkpoint is being written."""
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
            name = path.relative_to(self.model_dir).parts[0]
            match = _OF_CHECKPOINT.fullmatch(name)
            belongs = match[1] in listed | new if match else _EXPECTED.fullmatch(name)
            if not belongs:
                found.append(Leftover.of(path))
        return found

    def last_words(self) -> str:
        return self._log.read_text(errors="replace")[-1500:]


def _environments(kind: str) -> list[dict[str, str]]:
    """The variables that each process of a training has in its environment beside this one's."""
    if kind != "processes":
        return [{"E2S_EMULATE_TPU_CORES": "2"} if kind == "cores" else {}]
    sockets = [socket.create_server(("localhost", 0)) for _ in range(2)]
    chief, worker = [f"localhost:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    cluster = {"chief": [chief], "worker": [worker]}
    tasks = [{"type": job, "index": 0} for job in cluster]
    return [{"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})} for task in tasks]


class Expected(NamedTuple):
    """The lines and last variables of a training that nobody interrupts."""

    lines: frozenset[str]
    variables: dict[str, np.ndarray]


def _variables(model_dir: Path) -> dict[str, np.ndarray]:
    path = tf.train.latest_checkpoint(str(model_dir))
    return {name: tf.train.load_variable(path, name) for name, _ in tf.train.list_variables(path)}


def expected(kind: str, folder: Path) -> Expected:
    """Trains without a kill.

    Raises:
        RuntimeError: It ended otherwise than well.
    """
    training = Training(kind, folder)
    training.start()
    if not training.run_to_the_end():
        raise RuntimeError(training.last_words())
    return Expected(frozenset(training.lines()), _variables(training.model_dir))


def killed(kind: str, folder: Path, whole: Expected, moments: random.Random, kills: int) -> Count:
    """Kills one training so many times, lets it end, and compares it with the `whole` one."""
    training, count = Training(kind, folder), Count(trainings=1)
    before: list[Leftover] = []
    done, latest = 0, 0
    for number in range(kills + 1):
        lines = len(training.lines())
        training.start()
        is_killed = (
            number < kills
            and _wait_for_the_moment(training, moments, lines)
            and training.kill(moments.choice([0.0, moments.uniform(0, 0.05)]))
        )
        if is_killed:
            count.kills += 1
            count.while_saving += training.saving()
        elif not training.run_to_the_end():
            count.wrong.append(f"{kind}: not resumed: {training.last_words()}")
            return count
        new = training.lines()[lines:]
        if new:  # it has restored what the start before had saved, and has trained
            _compare_start(count, kind, int(new[0].split()[0]), done, latest)
            _compare_litter(count, kind, before)
            before = []
            done = int(new[-1].split()[0]) + _steps_a_line(kind)
        if not is_killed:
            break
        latest = max([latest, *training.listed()])
        before += training.leftovers()
    _compare_end(count, training, whole)
    return count


def _steps_a_line(kind: str) -> int:
    return 2 if kind == "cores" else 1


def _wait_for_the_moment(training: Training, moments: random.Random, lines: int) -> bool:
    """Waits until it is time to kill; False if the training has ended by itself."""
    kind = moments.random()
    if kind < 0.1:  # while it starts, records, restores
        time.sleep(moments.uniform(0, _START_SECONDS))
        return True
    ahead = lines + moments.randrange(1, _STEPS_AHEAD)
    if not training.wait_until(lambda: len(training.lines()) >= ahead, every=0.003):
        return False
    if kind < 0.4:
        time.sleep(moments.uniform(0, 0.05))
        return True
    while training.saving():  # the next one from its beginning on
        time.sleep(0.0003)
    if not training.wait_until(training.saving, every=0.0003):
        return False
    time.sleep(moments.choice([0.0, moments.uniform(0, 0.01)]))
    return True


def _compare_start(count: Count, kind: str, first: int, done: int, latest: int) -> None:
    lost = max(done - first, 0)
    count.most_lost_steps = max(count.most_lost_steps, lost)
    if first < latest:
        count.lost_checkpoints += 1
        count.wrong.append(f"{kind}: went on from {first}, where {latest} was complete")
    if lost > MOST_LOST[kind]:
        count.wrong.append(f"{kind}: {lost} steps were lost")


def _compare_litter(count: Count, kind: str, before: Sequence[Leftover]) -> None:
    for left in before:
        path = Path(left.path)
        if path.exists() and Leftover.of(path) == left and _is_litter(path):
            count.litter += left.size
            count.wrong.append(f"{kind}: {left.path} stays, {left.size} bytes")
        else:
            count.cleared += left.size


def _is_litter(path: Path) -> bool:
    """False for what was complete, and is listed by now."""
    match = _OF_CHECKPOINT.fullmatch(path.name)
    return match is None or match[1] not in (path.parent / "checkpoint").read_text()


def _compare_end(count: Count, training: Training, whole: Expected) -> None:
    lines = set(training.lines())
    if not lines <= whole.lines:
        count.unequal += 1
        count.wrong.append(f"{training.kind}: other losses: {sorted(lines - whole.lines)[:3]}")
    found = _variables(training.model_dir)
    same = found.keys() == whole.variables.keys() and all(
        np.array_equal(found[name], value) for name, value in whole.variables.items()
    )
    if not same:
        count.unequal += 1
        count.wrong.append(f"{training.kind}: other variables")
    for left in training.leftovers():
        count.litter += left.size
        count.wrong.append(f"{training.kind}: {left.path} is there in the end, {left.size} bytes")


def counts(
    kills: int,
    of_one: int = KILLS_OF_ONE,
    seed: int = 0,
    minutes: float = np.inf,
    at_once: int = 1,
) -> dict[str, Count]:
    """Kills trainings of each kind so many times in all, unless they end before.

    Args:
        of_one: The kills of one training.
        seed: Of the moments.
        minutes: No training is begun after them.
        at_once: The number of trainings at a time.
    """
    found = {kind: Count() for kind in TITLES}
    deadline, lock = time.monotonic() + 60 * minutes, threading.Lock()
    moments = random.Random(seed)
    work = [
        (kind, min(of_one, round(kills * share) - start), moments.random())
        for kind, share in _SHARES.items()
        for start in range(0, round(kills * share), of_one)
    ]
    moments.shuffle(work)  # so that all kinds have had some when time is up
    with tempfile.TemporaryDirectory(prefix="e2s_kills_") as folder:
        kinds = {kind for kind, *_ in work}
        wholes = {kind: expected(kind, Path(folder, f"whole_{kind}")) for kind in sorted(kinds)}

        def run(number: int) -> None:
            kind, its_kills, own_seed = work[number]
            if time.monotonic() > deadline:
                return
            place = Path(folder, f"{kind}_{number}")
            try:
                count = killed(kind, place, wholes[kind], random.Random(own_seed), its_kills)
            except (TimeoutError, subprocess.TimeoutExpired) as error:
                count = Count(wrong=[f"{kind}: hangs: {error}"])
            with lock:
                found[kind].add(count)
                done = sum(each.kills for each in found.values())
                wrong = sum(len(each.wrong) for each in found.values())
                print(f"{done} kills, {wrong} wrong", *count.wrong, sep="\n", flush=True)

        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(run, range(len(work))))
    return found


def run(kills: int = KILLS, minutes: float = np.inf, at_once: int = 2) -> Report:
    """Kills trainings so many times, unless that takes longer than so many minutes."""
    found = counts(kills, minutes=minutes, at_once=at_once)
    wrong = [line for count in found.values() for line in count.wrong]
    return Report("Kills", _section(found), wrong)


def _section(found: dict[str, Count]) -> list[str]:
    total = Count()
    for count in found.values():
        total.add(count)
    rows = [(TITLES[kind], count) for kind, count in found.items()] + [("**all**", total)]
    head = (
        "what trains",
        "kills",
        "while saving",
        "trainings",
        "most steps lost",
        "checkpoints lost",
        "resumed otherwise",
        "bytes left",
        "bytes cleared",
    )
    return [
        _LEGEND,
        "",
        f"| {' | '.join(head)} |",
        f"| {' | '.join(['---'] * len(head))} |",
        *(f"| {title} | {' | '.join(map(str, _numbers(count)))} |" for title, count in rows),
    ]


def _numbers(count: Count) -> Sequence[int]:
    return (
        count.kills,
        count.while_saving,
        count.trainings,
        count.most_lost_steps,
        count.lost_checkpoints,
        count.unequal,
        count.litter,
        count.cleared,
    )
