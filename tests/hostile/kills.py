"""The table of kills: trainings that are killed (SIGKILL) again and again, and always resumed.

    python -m tests.hostile kills --kills=1000
    python -m tests.hostile kills_under_jax --kills=100

Half of the kills wait until a checkpoint (or an export) is being written; the others come at any
moment, while the program starts and restores, too. A training that was killed so many times goes on
to its end and is compared with one that nobody has interrupted: the loss of each step, bit for bit,
and each variable of the last checkpoint. After each kill it is noted what lay about, and whether
the next start has cleared it.
"""

from __future__ import annotations

import dataclasses
import functools
import random
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tests.hostile.killed_program import ITERATIONS, SAVE_EVERY
from tests.hostile.killed_training import OF_CHECKPOINT, Leftover, Training, training_of
from tests.hostile.report import Report

KILLS = 1000
KILLS_OF_ONE = 20  # of one training; each comes within the next `_STEPS_AHEAD` steps
_STEPS_AHEAD = 9
_AHEAD = {"exports": 3}  # in the place of these
_START_SECONDS = 1.5
# With `async_checkpoints` one may be in the making for as long as until the next one is due.
MOST_LOST = {
    "device": SAVE_EVERY,
    "asynchronous": 2 * SAVE_EVERY - 1,
    "rewritten": SAVE_EVERY,
    "cores": SAVE_EVERY,
    "processes": SAVE_EVERY,
    "jax": SAVE_EVERY,
    "jax_cores": SAVE_EVERY,
    "exports": 0,
}
TITLES = {
    "device": "one device",
    "asynchronous": "one device, `async_checkpoints`",
    "rewritten": "one device, with one checkpoint, which is written again",
    "cores": "two emulated cores",
    "processes": "two processes",
    "exports": "exports of a model",
}
TITLES_UNDER_JAX = {"jax": "one device", "jax_cores": "two devices, as cores"}
_SHARES = {
    "device": 0.35,
    "asynchronous": 0.1,
    "rewritten": 0.1,
    "cores": 0.2,
    "processes": 0.15,
    "exports": 0.1,
}
_SHARES_UNDER_JAX = dict.fromkeys(TITLES_UNDER_JAX, 1 / len(TITLES_UNDER_JAX))
# These train as another one does.
_SAME = {"asynchronous": "device", "rewritten": "device"}
_LEGEND = f"""\
Trainings that save every {SAVE_EVERY} steps are killed (`SIGKILL`) and started again, up to
{KILLS_OF_ONE} times each. Then they go on to their end. The columns:

- *while saving*: kills while a checkpoint was being written;
- *most steps lost*: between the last step that was done and the one that the next start began
  with; at most one save interval, and with `async_checkpoints` fewer than two;
- *checkpoints lost*: complete ones that the next start did not go on from;
- *resumed otherwise*: trainings whose losses or variables are not, bit for bit, those of a training
  that nobody has interrupted;
- *bytes left*: half written files that were still there after the next start;
- *bytes cleared*: half written files that this start has removed or completed.

In the training of two processes all batches are the same, because only the chief's place in its
input is kept. The checkpoint that is written again is the only one. Every other start drops
variables of it, and is killed between the new data and the new index. For *exports*, a complete
export is what a checkpoint is to a training."""
_LEGEND_UNDER_JAX = """\
Trainings as under *Kills*, whose steps JAX runs (`E2S_RUNTIME=jax`), on CPUs. The columns are those
of that table."""


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
    training = training_of(kind, folder)
    training.start()
    if not training.run_to_the_end():
        raise RuntimeError(training.last_words())
    return Expected(frozenset(training.lines()), _variables(training.model_dir))


def killed(kind: str, folder: Path, whole: Expected, moments: random.Random, kills: int) -> Count:
    """Kills one training so many times, lets it end, and compares it with the `whole` one."""
    training, count = training_of(kind, folder), Count(trainings=1)
    before: list[Leftover] = []
    done, latest = 0, 0
    for number in range(kills + 1):
        lines = len(training.lines())
        training.start(to_the_end=number == kills)
        is_killed = (
            number < kills
            and _wait_for_the_moment(training, moments, lines)
            and (
                training.has_killed_itself()
                if training.kills_itself
                else training.kill(moments.choice([0.0, moments.uniform(0, 0.05)]))
            )
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
    return ITERATIONS if kind.endswith("cores") else 1


def _wait_for_the_moment(training: Training, moments: random.Random, lines: int) -> bool:
    """Waits until it is time to kill; False if the training has ended by itself."""
    if training.kills_itself:
        return True
    kind = moments.random()
    if kind < 0.1:  # while it starts, records, restores
        time.sleep(moments.uniform(0, _START_SECONDS))
        return True
    ahead = lines + moments.randrange(1, _AHEAD.get(training.kind, _STEPS_AHEAD))
    if not training.wait_until(lambda: len(training.lines()) >= ahead, every=0.003):
        return False
    if kind < 0.4:
        time.sleep(moments.uniform(0, 0.05))
        return True
    # The next one from its beginning on.
    training.wait_until(lambda: not training.saving(), every=0.0003)
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
    match = OF_CHECKPOINT.fullmatch(path.name)
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
    shares: Mapping[str, float] = _SHARES,
) -> dict[str, Count]:
    """Kills trainings of each kind so many times in all.

    Args:
        of_one: The kills of one training.
        seed: Of the moments.
        minutes: No training is begun after them.
        at_once: The number of trainings at a time.
        shares: Each kind's part of the kills.
    """
    found = {kind: Count() for kind in shares}
    deadline, lock = time.monotonic() + 60 * minutes, threading.Lock()
    moments = random.Random(seed)
    work = [
        (kind, min(of_one, round(kills * share) - start), moments.random())
        for kind, share in shares.items()
        for start in range(0, round(kills * share), of_one)
    ]
    moments.shuffle(work)  # so that all kinds have had some when time is up
    with tempfile.TemporaryDirectory(prefix="e2s_kills_") as folder:
        kinds = {_SAME.get(kind, kind) for kind, *_ in work}
        wholes = {kind: expected(kind, Path(folder, f"whole_{kind}")) for kind in sorted(kinds)}

        def run(number: int) -> None:
            kind, left, own_seed = work[number]
            whole, own_moments = wholes[_SAME.get(kind, kind)], random.Random(own_seed)
            while left and time.monotonic() < deadline:
                place = Path(folder, f"{kind}_{number}_{left}")
                try:
                    count = killed(kind, place, whole, own_moments, left)
                except (TimeoutError, subprocess.TimeoutExpired) as error:
                    count = Count(wrong=[f"{kind}: hangs: {error}"])
                with lock:
                    found[kind].add(count)
                    done = sum(each.kills for each in found.values())
                    wrong = sum(len(each.wrong) for each in found.values())
                    print(f"{done} kills, {wrong} wrong", *count.wrong, sep="\n", flush=True)
                # One that ended before all of its kills leaves the rest to another.
                left = left - count.kills if count.kills and not count.wrong else 0

        with ThreadPoolExecutor(at_once) as pool:
            list(pool.map(run, range(len(work))))
    return found


def run(kills: int = KILLS, minutes: float = np.inf, at_once: int = 2) -> Report:
    """Kills trainings so many times, unless that takes longer than so many minutes."""
    found = counts(kills, minutes=minutes, at_once=at_once)
    return Report("Kills", [_LEGEND, "", *_table(found, TITLES)], _wrong(found))


def run_under_jax(kills: int = KILLS, minutes: float = np.inf, at_once: int = 2) -> Report:
    """Does so where JAX runs the steps."""
    found = counts_under_jax(kills, minutes=minutes, at_once=at_once)
    table = _table(found, TITLES_UNDER_JAX)
    return Report("Kills under JAX", [_LEGEND_UNDER_JAX, "", *table], _wrong(found))


counts_under_jax = functools.partial(counts, shares=_SHARES_UNDER_JAX)


def _wrong(found: Mapping[str, Count]) -> list[str]:
    return [line for count in found.values() for line in count.wrong]


def _table(found: Mapping[str, Count], titles: Mapping[str, str]) -> list[str]:
    total = Count()
    for count in found.values():
        total.add(count)
    rows = [(titles[kind], count) for kind, count in found.items()] + [("**all**", total)]
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
