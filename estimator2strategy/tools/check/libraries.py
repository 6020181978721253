"""Names and arguments that the libraries around TensorFlow have dropped since TF 1.15's day.

    gone("keras.layers.CuDNNLSTM")       # ("keras.layers.CuDNNLSTM", "keras 3.15")
    refused("keras.optimizers.Adam")     # {"lr"}: arguments that it has no more
    most("sklearn.svm.SVC")              # 0: none of its arguments may stand at a position

`libraries.json` is made by tests/tools/check/library_names.py, which tries every name and call of
the old releases on the new ones.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path


@functools.cache
def table() -> dict:
    """The whole table: `releases`, `gone`, `arguments` and `most`."""
    return json.loads((Path(__file__).parent / "libraries.json").read_text(encoding="utf-8"))


@functools.cache
def _gone(module: str) -> frozenset[str]:
    return frozenset(table()["gone"].get(module, "").split())


def release(name: str) -> str:
    """The release that was tried: "keras 3.15"."""
    library = name.partition(".")[0]
    return f"{library} {table()['releases'][library]}"


@functools.cache
def gone(name: str) -> tuple[str, str] | None:
    """(the dropped name that `name` is or lies in, the release without it); None if it is there."""
    parts = name.split(".")
    for end in range(1, len(parts)):
        module = ".".join(parts[:end])
        if parts[end] in _gone(module):
            return f"{module}.{parts[end]}", release(name)
    return None


@functools.cache
def refused(name: str) -> frozenset[str]:
    """The arguments that a function or class took once, and refuses today."""
    return frozenset(table()["arguments"].get(name, "").split())


def most(name: str) -> int | None:
    """How many arguments may stand at positions, where more could once; None if all still may."""
    return table()["most"].get(name)
