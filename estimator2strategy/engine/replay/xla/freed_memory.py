"""Gives memory that a compiler has freed back to the system.

A compiler frees tens of megabytes when it ends. glibc keeps them, most of them for the threads of
that compiler, and what runs next asks the system for more.
"""

from __future__ import annotations

import ctypes
import sys


def give_back_freed() -> None:
    """Gives back what the process has freed; takes some milliseconds. Only glibc can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim:
        trim(0)
