"""The processes that watch the others of a job."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from estimator2strategy.engine.runtime import host_watch

GRACE = 1.0
NAMES = ["chief 0 (a:1)", "worker 0 (b:1)", "worker 1 (c:1)"]


class Watched:
    """A process, which only sleeps, and the watch beside it."""

    def __init__(self, number, chief=None):
        self.sleeper = subprocess.Popen(["sleep", "600"])
        settings = {"names": NAMES, "number": number, "parent": self.sleeper.pid, "chief": chief}
        settings["grace"] = GRACE
        self.watch = subprocess.Popen(
            [sys.executable, "-I", "-S", host_watch.__file__, json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def says(self, word):
        self.watch.stdin.write(f"{word}\n")
        self.watch.stdin.flush()

    def dies(self):
        self.watch.stdin.close()  # as that of a process that is killed

    def hears(self):
        return self.watch.stdout.readline().strip()


@pytest.fixture
def three():
    """A chief and two workers, all of which need each other."""
    started = [Watched(0)]
    port = int(started[0].hears())
    started += [Watched(number, ["localhost", port]) for number in (1, 2)]
    for process in started:
        process.says("busy")
    time.sleep(0.5)  # the watches are connected
    yield started
    for process in started:
        process.watch.kill()
        process.sleeper.kill()
        for file in (process.watch.stdin, process.watch.stdout, process.watch.stderr):
            file.close()
        process.watch.wait()
        process.sleeper.wait()


@pytest.mark.parametrize("dead", [0, 2])
def test_all_others_hear_who_has_ended(three, dead):
    three[dead].dies()
    for number, process in enumerate(three):
        if number != dead:
            assert process.hears() == NAMES[dead]
    other = three[1]
    other.watch.kill()
    said = other.watch.stderr.read()
    assert said.startswith(f"e2s: {NAMES[dead]} has ended in the middle of the job. Start all")


def test_a_process_that_does_not_end_by_itself_is_ended(three):
    started = time.monotonic()
    three[2].dies()
    assert three[1].sleeper.wait(60) == -9
    assert time.monotonic() - started >= GRACE - 0.1


def test_who_has_ended_by_itself_is_missed_only_where_it_is_needed(three):
    chief, idle, busy = three
    idle.says("idle")
    chief.says("end")
    assert busy.hears() == NAMES[0]
    idle.says("end")
    busy.says("end")
    assert idle.watch.wait(10) == 0
    assert NAMES[0] not in idle.watch.stdout.read()
    assert os.waitpid(idle.sleeper.pid, os.WNOHANG) == (0, 0)
