"""Gives TF 1.15's `tensorflow` to the modules of a legacy program, its processes, its tests."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["Scope", "import_module", "install"]


def __getattr__(name: str) -> Any:
    # At first use: tables of this folder are read by commands that run no program.
    if name in __all__:
        return getattr(importlib.import_module(f"{__name__}.importing"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
