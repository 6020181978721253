"""Memory that building a large program has left goes back to the machine."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from estimator2strategy.engine.replay import freed_memory
from tests.engine.runtime.programs import host_estimator, numbers

PAGE, MEGABYTE = 4096, 2**20


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the allocator is not glibc's"
)
def test_memory_that_was_freed_is_given_back():
    parts = [np.ones(8192, np.float64) for _ in range(2000)]  # of the heap: no part has a mapping
    last = np.ones(8192, np.float64)  # the heap does not end with what is freed
    before = resident()
    parts.clear()
    freed_memory.give_back()
    assert before - resident() > 60 * MEGABYTE
    assert last[0] == 1


@pytest.mark.parametrize(("long", "times"), [(0.0, 1), (1e9, 0)])
def test_only_a_program_that_took_long_to_build_gives_back(model_dir, monkeypatch, long, times):
    given = []
    monkeypatch.setattr(freed_memory, "LONG", long)
    monkeypatch.setattr(freed_memory, "give_back", lambda: given.append(1))
    host_estimator(model_dir).train(numbers(3))
    assert min(len(given), 1) == times


def test_another_allocator_is_left_alone(monkeypatch):
    monkeypatch.setattr(freed_memory, "_trim", lambda: None)
    freed_memory.give_back()
