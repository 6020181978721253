"""Writes `tensorflow.csv` of estimator2strategy/engine/names/read_off/, from what is installed.

    python tests/engine/names/tensorflow_names.py [--print]

The public names of TensorFlow 2, those of its compat.v1, and for functions that are in both the
arguments before and after, where a call that gave the old ones would fail or mean something else.
"""

from __future__ import annotations

import csv
import importlib
import inspect
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from estimator2strategy.engine.names import name_table as facade
from estimator2strategy.engine.names import tables

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = "tests/engine/names/tensorflow_names.py"
TABLE = ROOT / "estimator2strategy/engine/names/read_off/tensorflow.csv"
_LEFT_OUT = {"compat", "raw_ops"}


def table() -> Iterator[tuple[str, str, str]]:
    """The rows of the table: name, fact, value."""
    import tensorflow as tf

    v2, v1 = dict(_modules(tf, "tf")), dict(_modules(tf.compat.v1, "tf"))
    yield "tensorflow", "made by", SCRIPT
    yield "tensorflow", "release", ".".join(tf.__version__.split(".")[:2])
    yield from sorted(_facts(v1, v2))


def _facts(v1: dict[str, Any], v2: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    gone: dict[str, list[str]] = {}
    for name in sorted(filter(_is_gone, {*facade.rows(), *_of_graphs()})):
        module, _, last = name.rpartition(".")
        gone.setdefault(module, []).append(last)
    yield from ((module, "gone", " ".join(names)) for module, names in gone.items())
    for which, modules in (("v1", v1), ("v2", v2)):
        yield from ((path, which, " ".join(_names(module))) for path, module in modules.items())
    for name, (before, after) in _arguments(v1, v2):
        yield name, "before", before
        yield name, "after", after


def _of_graphs() -> Iterator[str]:
    """Names of framework/ops.py: `ops` of TF 1.15's tensorflow.python was that module, too."""
    ops = importlib.import_module("tensorflow.python.framework.ops")
    for name, value in vars(ops).items():
        if not name.startswith("_") and getattr(value, "__module__", "") == ops.__name__:
            yield f"tf.python.ops.{name}"


def _is_gone(name: str) -> bool:
    """True if a name in TensorFlow's files that the facade has a row for is not in TensorFlow."""
    if not name.startswith(tables.FILES):
        return False
    path = name.replace("tf.", "tensorflow.", 1)
    try:
        importlib.import_module(path)
    except ImportError:
        module, _, last = path.rpartition(".")
        try:
            return not hasattr(importlib.import_module(module), last)
        except ImportError:
            return True
    return False


def _modules(module: Any, path: str) -> Iterator[tuple[str, Any]]:
    yield path, module
    for name in _names(module):
        below = getattr(module, name, None)
        if name in _LEFT_OUT or not inspect.ismodule(below):
            continue
        if path == "tf" and name == "keras" and "compat" in module.__name__:
            continue
        try:
            home = below.__name__
        except AttributeError:  # what needs Keras 2
            continue
        if home.startswith(("tensorflow._api.", "tensorflow.experimental", "keras.")):
            yield from _modules(below, f"{path}.{name}")


def _names(module: Any) -> list[str]:
    try:
        return sorted(name for name in dir(module) if not name.startswith("_"))
    except (ImportError, AttributeError):  # what needs Keras 2
        return []


def _arguments(v1: dict[str, Any], v2: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    for path in v1.keys() & v2.keys():
        for name in set(_names(v1[path])) & set(_names(v2[path])):
            old, new = getattr(v1[path], name, None), getattr(v2[path], name, None)
            if old is new or inspect.ismodule(old) or not callable(old) or not callable(new):
                continue
            before, after = _parameters(old), _parameters(new)
            if before and after and before != after and "*" not in f"{before} {after}":
                yield f"{path}.{name}", [before, after]


def _parameters(value: Any) -> str | None:
    function = value.__init__ if inspect.isclass(value) else value
    marks = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    words = [marks.get(p.kind, "") + p.name for p in parameters]
    return " ".join(words[inspect.isclass(value) :])


def written() -> str:
    """The text of the table."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([("name", "fact", "value"), *table()])
    return file.getvalue()


if __name__ == "__main__":
    if sys.argv[1:] == ["--print"]:
        sys.stdout.write(written())
    else:
        TABLE.write_text(written(), encoding="utf-8")
