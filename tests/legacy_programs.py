"""Programs of `tests/programs` that TF 1.15 runs too."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

from estimator2strategy.legacy import importing
from tests import fresh

FOLDER = Path(__file__).parent / "programs"


@contextlib.contextmanager
def imported(name: str) -> Iterator[ModuleType]:
    """A program as a module on the facade; forgotten at the end."""
    with mock.patch.object(sys, "path", [str(FOLDER), *sys.path]):
        yield importing.import_module(name)
    del sys.modules[name]


def printed_by(*arguments: str) -> Any:
    """The JSON that a Python with these arguments prints, in a process of its own."""
    ran = subprocess.run(
        [fresh.python(), *arguments],
        cwd=FOLDER,
        env={**os.environ, "PYTHONPATH": str(FOLDER.parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)
