"""Programs of `tests/programs` that TF 1.15 runs too."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from unittest import mock

from estimator2strategy import legacy

FOLDER = Path(__file__).parent / "programs"


@contextlib.contextmanager
def imported(name: str) -> Iterator[ModuleType]:
    """A program as a module on the facade; forgotten at the end."""
    with mock.patch.object(sys, "path", [str(FOLDER), *sys.path]):
        yield legacy.import_module(name)
    del sys.modules[name]
