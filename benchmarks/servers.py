"""A job with a parameter server, beside TF 2.15's own Estimator.

    python -m benchmarks.servers --legacy-python /envs/tf215/bin/python --rounds 5

Chief, worker, parameter server and evaluator of server_ranker.py, on this machine. Jobs of both
take turns, each a whole job; ratios are medians of the ratios inside a round. `--bytes` counts what
goes between a chief and its server instead, through a relay.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "benchmarks" / "server_ranker.py"
# The aim of each ratio of e2s to TensorFlow 2.15.
AIMS = {
    "steps/s": "aim: >= 1.0",
    "start-up": "aim: <= 1.2",
    "memory of the ps": "aim: <= 1.1",
    "CPU per step": "moves less with other load than steps/s does",
    "CPU to the first step": "moves less with other load than start-up does",
}
# Gradients of the tables -> global steps of a job, and steps between two lines of its log.
STEPS = {"sparse": (3000, 20), "dense": (60, 2)}
_WARM_UP = 3  # lines of the worker


@dataclasses.dataclass(frozen=True)
class Ran:
    """The measurements of one job.

    Attributes:
        speed: Global steps per second.
        start: Seconds until the chief's first step.
        memory: The largest resident set of the parameter server, in MB.
        cpu: Processor time of a global step, in ms: of chief, worker and parameter server.
        start_cpu: Seconds of processor time until the chief's first step: of it and of the server.
    """

    speed: float
    start: float
    memory: float
    cpu: float
    start_cpu: float

    def beside(self, other: Ran) -> dict[str, float]:
        """This job's numbers as multiples of another's."""
        numbers = zip(AIMS, dataclasses.astuple(self), dataclasses.astuple(other), strict=True)
        return {name: mine / its for name, mine, its in numbers}


class Task:
    """A process of a job, and the lines that it prints."""

    def __init__(self, command: list[str], job: str, cluster: dict[str, list[str]], log: Path):
        task = {"cluster": cluster, "task": {"type": job, "index": 0}}
        self.started, self.log, self._file = time.time(), log, log.open("w")
        self.process = subprocess.Popen(
            command,
            env={
                **os.environ,
                "TF_CONFIG": json.dumps(task),
                "PYTHONPATH": str(ROOT),
                "CUDA_VISIBLE_DEVICES": "-1",
                "TF_CPP_MIN_LOG_LEVEL": "3",
            },
            stdout=self._file,
            stderr=subprocess.STDOUT,
        )

    def seen(self) -> list[tuple[float, int]]:
        """Time and global step of each line."""
        words = [line.split() for line in self.log.read_text().splitlines()]
        return [(float(w[1]), int(w[2])) for w in words if len(w) == 3 and w[0] == "AT"]

    def wait_for_lines(self, count: int) -> None:
        while len(self.seen()) < count:
            if self.process.poll() is not None:
                sys.exit(f"{self.log} ended too early:\n{self.log.read_text()[-2000:]}")
            time.sleep(0.1)

    def cpu_seconds(self) -> float:
        """Processor time of all threads so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def peak_mb(self) -> float:
        """The largest resident set so far."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) / 1024

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self._file.close()


@contextlib.contextmanager
def job(python: list[str], folder: Path, gradients: str, steps: int, relayed: bool = False):
    """Starts tasks one by one: yields `start(job) -> Task`, and the relays of their addresses."""
    cluster = {name: [f"localhost:{free_port()}"] for name in ("chief", "worker", "ps")}
    relays = {n: Relay(a[0]) for n, a in cluster.items()} if relayed else {}
    around = {n: [relays[n].address] if relayed else a for n, a in cluster.items()}
    tasks: list[Task] = []

    def start(name: str) -> Task:
        # Its own address is the true one; it meets the others through their relays.
        own = {name: cluster[name]} if name in cluster else {}
        command = [*python, str(PROGRAM), f"--model_dir={folder / 'model'}", f"--steps={steps}"]
        command += [f"--gradients={gradients}", f"--every={STEPS[gradients][1]}"]
        tasks.append(Task(command, name, {**around, **own}, folder / f"{name}.log"))
        return tasks[-1]

    try:
        yield start, relays
    finally:
        for task in tasks:
            task.end()


def free_port() -> int:
    with socket.create_server(("localhost", 0)) as free:
        return free.getsockname()[1]


def run(python: list[str], gradients: str) -> Ran:
    """A whole job of four tasks."""
    folder, steps = Path(tempfile.mkdtemp(prefix="servers-")), STEPS[gradients][0]
    try:
        with job(python, folder, gradients, steps) as (start, _):
            server, chief, _ = start("ps"), start("chief"), start("evaluator")
            chief.wait_for_lines(1)
            start_cpu = chief.cpu_seconds() + server.cpu_seconds()
            # A worker that comes too early looks again after 30 s.
            worker = start("worker")
            worker.wait_for_lines(_WARM_UP)
            cpu = cpu_of_a_step([chief, worker, server], until=0.8 * steps)
            chief.process.wait()
            worker.process.wait()
            memory = server.peak_mb()
        start_secs = chief.seen()[0][0] - chief.started
        return Ran(speed(chief, worker), start_secs, memory, cpu, start_cpu)
    finally:
        shutil.rmtree(folder)


def cpu_of_a_step(tasks: list[Task], until: float) -> float:
    """Milliseconds of all tasks, of which the first tells the global step."""

    def now() -> tuple[int, float]:
        return tasks[0].seen()[-1][1], sum(task.cpu_seconds() for task in tasks)

    (low, before), high = now(), 0
    while high < until and tasks[0].process.poll() is None:
        time.sleep(0.1)
        high, after = now()
    return 1000 * (after - before) / (high - low)


def speed(chief: Task, worker: Task) -> float:
    """Global steps per second, while both train and after the worker's first lines."""
    seen = worker.seen()[_WARM_UP:]
    end = min(seen[-1][0], chief.seen()[-1][0])
    (first, low), (last, high) = seen[0], max(line for line in seen if line[0] <= end)
    return (high - low) / (last - first)


class Relay:
    """An address that hands all on to another, and counts the bytes of both directions."""

    def __init__(self, target: str):
        self._target, self.count = target, 0
        self._server = socket.create_server(("localhost", 0))
        self.address = f"localhost:{self._server.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        host, port = self._target.split(":")
        while True:
            near, _ = self._server.accept()
            try:
                far = socket.create_connection((host, int(port)))
            except OSError:
                near.close()
                continue
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self._copy, args=pair, daemon=True).start()

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 20):
                self.count += len(data)
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


def bytes_per_step(python: list[str], gradients: str) -> float:
    """Bytes between a chief and its server, for one of the chief's steps."""
    folder, steps = Path(tempfile.mkdtemp(prefix="servers-")), STEPS[gradients][0] // 3
    try:
        with job(python, folder, gradients, 10 * steps, relayed=True) as (start, relays):
            start("ps")
            chief = start("chief")
            marks = []
            for step in (STEPS[gradients][1], steps):
                while not (seen := chief.seen()) or seen[-1][1] < step:
                    assert chief.process.poll() is None, chief.log.read_text()[-2000:]
                    time.sleep(0.05)
                marks.append((seen[-1][1], sum(relay.count for relay in relays.values())))
        (low, before), (high, after) = marks
        return (after - before) / (high - low)
    finally:
        shutil.rmtree(folder)


def rounds(pythons: dict[str, list[str]], gradients: str, count: int) -> Iterator[dict]:
    """The ratios of each round; who goes first changes from one to the next."""
    for number in range(count):
        order = list(pythons) if number % 2 == 0 else list(pythons)[::-1]
        ran = {name: run(pythons[name], gradients) for name in order}
        print(f"round {number + 1}: {ran}", file=sys.stderr, flush=True)
        yield ran["e2s"].beside(ran["legacy"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--legacy-python", help="a Python with TensorFlow 2.15")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--gradients", choices=list(STEPS), nargs="+", default=list(STEPS))
    parser.add_argument("--bytes", action="store_true", help="count bytes of a step instead")
    args = parser.parse_args()
    e2s = [sys.executable, "-m", "estimator2strategy", "run", "--tf2"]
    for gradients in args.gradients:
        if args.bytes:
            print(f"{gradients}: {bytes_per_step(e2s, gradients):,.0f} bytes per step of a worker")
            continue
        pythons = {"e2s": e2s, "legacy": [args.legacy_python]}
        found = list(rounds(pythons, gradients, args.rounds))
        for name, aim in AIMS.items():
            ratios = sorted(ratio[name] for ratio in found)
            print(
                f"{gradients}: {name} {statistics.median(ratios):.2f} x, "
                f"{ratios[0]:.2f} to {ratios[-1]:.2f} ({aim})"
            )


if __name__ == "__main__":
    main()
