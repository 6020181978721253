"""Pauses Python's garbage collector while a training starts, and makes up for it afterwards."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator

import tensorflow as tf

# As many collections of younger objects come before one of all; a start has not so many.
_NEVER = 1_000_000_000

# The graphs that are left hold some 60 MB by then. A full collection takes 0.3 to 0.5 s beside
# TensorFlow, a twentieth of the time in which so many nodes are made and run.
_MANY_NODES = 20_000


@contextlib.contextmanager
def few_full_collections() -> Iterator[Callable[[], None]]:
    """Puts off full collections while the body runs.

    Yields a function. Once it is called, full collections happen again, but leave out the objects
    that exist by then.

    A graph is hundreds of thousands of objects, and none of them is garbage before training ends:
    a collection of all of them takes 0.2 s for a small BERT, and finds nothing. After the body all
    settings are as before, except for thresholds that the program itself has set meanwhile.
    """
    before = gc.get_threshold()
    during = (*before[:2], _NEVER)
    is_ours = not gc.get_freeze_count()  # else the program has its own way with it
    frozen = False
    gc.set_threshold(*during)

    def thaw_threshold() -> None:
        if gc.get_threshold() == during:
            gc.set_threshold(*before)

    def started() -> None:
        nonlocal frozen
        if is_ours and not frozen:
            gc.freeze()
            frozen = True
        thaw_threshold()

    try:
        yield started
    finally:
        thaw_threshold()
        if frozen:
            gc.unfreeze()


class _LeftGraphs:
    """Counts the nodes of graphs that calls have left since the last full collection."""

    def __init__(self) -> None:
        self._nodes = 0
        self._collections = 0

    def add(self, graph: tf.Graph) -> None:
        """Adds the nodes of a graph that no call uses any more."""
        collections = gc.get_stats()[-1]["collections"]
        if collections != self._collections:
            self._nodes, self._collections = 0, collections
        self._nodes += graph.version

    def collect(self) -> None:
        """Frees them, if there are many."""
        if self._nodes > _MANY_NODES and gc.isenabled():
            gc.collect()
            self._nodes = 0


_left = _LeftGraphs()


@contextlib.contextmanager
def collected(graph: tf.Graph) -> Iterator[None]:
    """Frees the graphs of earlier calls, if they are many, before a call uses `graph`.

    Graphs are full of cycles, which only a full collection frees. Python makes one when the objects
    of a process have grown by a quarter. Beside TensorFlow those are the graphs of a hundred calls,
    and pauses start the count anew.
    """
    _left.collect()
    try:
        yield
    finally:
        _left.add(graph)
