"""Gives memory that was freed back to the machine.

To build the program of a step, TensorFlow makes and frees several copies of its graph; so do XLA's
compilers, in threads of their own. glibc keeps what was freed for the process: 100 MB after the
first step of a BERT of 12 layers, while what runs next asks the system for more.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

# A program that took so long to build (seconds) has left much. To give it back takes 10 ms.
LONG = 2.0


def give_back() -> None:
    """Gives back what the allocator keeps; nothing happens where it is not glibc's."""
    trim = _trim()
    if trim:
        trim(0)


@functools.cache
def _trim() -> Callable[[int], int] | None:
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (OSError, TypeError, AttributeError):  # musl, macOS, Windows
        return None
    return trim
