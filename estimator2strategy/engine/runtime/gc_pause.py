"""Pauses Python's garbage collector while a training starts."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator

# As many collections of younger objects come before one of all; a start has not so many.
_NEVER = 1_000_000_000


@contextlib.contextmanager
def few_full_collections() -> Iterator[Callable[[], None]]:
    """Until the function that is given is called, and then without what there is by then.

    A graph is hundreds of thousands of objects, and none of them is garbage before training ends:
    a collection of all of them takes 0.2 s for a small BERT, and finds nothing. All is as it was
    when the body is done, but for thresholds that the program itself has set meanwhile.
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
