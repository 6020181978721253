"""Keeps what a call makes young to Python's garbage collector, which then frees it at little cost.

A graph is hundreds of thousands of objects in cycles, and none of them is garbage before its call
ends. Python looks through objects that have survived twice only together with all others of the
process, when they have grown by a quarter: 0.3 s beside TensorFlow.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import time
import weakref
from collections.abc import Generator, Iterator
from typing import Any, TypeVar

import tensorflow as tf

from estimator2strategy.engine import patches

T = TypeVar("T")

# As many collections of younger objects come before one of older; a call has not so many.
_NEVER = 1_000_000_000

_LONG = 5.0  # seconds

# How many nodes graphs that are left may have until a collection frees those that were kept young,
# and until one of all objects frees the others. Twenty thousand nodes are some 60 MB.
_MOST_NODES = {1: 5_000, 2: 20_000}


@contextlib.contextmanager
def kept_young(long: float = _LONG) -> Iterator[None]:
    """Puts off all collections but those of the youngest objects while the body runs.

    If it runs long, collections happen again, because it leaves garbage of its own. Until it ends
    they leave out what existed by then. After it all settings are as before, except for thresholds
    that the program itself has set meanwhile.

    Args:
        long: The seconds after which it runs long.
    """
    before = gc.get_threshold()
    during = (before[0], _NEVER, _NEVER)
    is_ours = not gc.get_freeze_count()  # else the program has its own way with it
    end, is_long, frozen = time.monotonic() + long, False, False
    patches.noted("collections")
    gc.set_threshold(*during)

    def thaw_thresholds() -> None:
        if gc.get_threshold() == during:
            gc.set_threshold(*before)

    def look_at_clock(phase: str, info: Any) -> None:
        nonlocal is_long, frozen
        if is_long or phase != "stop" or time.monotonic() < end:
            return
        is_long = True
        thaw_thresholds()
        if is_ours:
            gc.freeze()
            frozen = True

    gc.callbacks.append(look_at_clock)
    try:
        yield
    finally:
        gc.callbacks.remove(look_at_clock)
        if gc.isenabled():
            gc.collect(0)  # the next collection then comes when the graph is not used any more
        thaw_thresholds()
        if frozen:
            gc.unfreeze()


def young_until_first(values: Generator[T, None, None]) -> Generator[T, None, None]:
    """Yields `values`, of which the first is made in `kept_young`."""
    with contextlib.closing(values):
        with kept_young():
            first = list(itertools.islice(values, 1))
        yield from first
        yield from values


# The graphs of calls that are over, unless they have been freed.
_left: weakref.WeakSet[tf.Graph] = weakref.WeakSet()


def note_left(graph: tf.Graph) -> None:
    """Notes that the call that has used `graph` is over."""
    _left.add(graph)


def free_left_graphs() -> None:
    """Frees the graphs of earlier calls, if they are many. Must be called before one is made.

    One that is there would be taken for old, and could only be freed with all others.
    """
    for generation, most in _MOST_NODES.items():
        if not gc.isenabled() or sum(graph.version for graph in _left) <= most:
            return
        gc.collect(generation)
    _left.clear()  # somebody holds those that are still there
