"""Writes estimator2strategy/tools/migrate/renames.csv, from the TensorFlow that is installed.

    python tests/tools/migrate/renames.py [--print]

A row is a function or class of TF 1.15 that TensorFlow 2 has under another name: the very same
object, which `tf.compat.v1` has under both names (but for wrappers that warn of old names).
"""

from __future__ import annotations

import csv
import inspect
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from estimator2strategy.engine.names import name_table as facade

TABLE = Path(__file__).resolve().parents[3] / "estimator2strategy" / "migrate" / "renames.csv"
# Keras is another one in each of them; the rest is no API for programs.
_LEFT_OUT = {"compat", "raw_ops", "keras", "estimator", "contrib", "layers", "losses", "metrics"}


def table() -> str:
    """The text of the table."""
    import tensorflow as tf

    v1, v2 = dict(_names(tf.compat.v1, "tf")), dict(_names(tf, "tf"))
    homes: dict[int, list[str]] = {}
    for name, value in v2.items():
        if name in v1 and _same(v1[name], value):
            homes.setdefault(id(inspect.unwrap(value)), []).append(name)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["name", "now"])
    for name, value in sorted(v1.items()):
        if (
            (name in v2 and _same(v2[name], value))
            or not facade.existed(name)
            or facade.canonical(name) != name
        ):
            continue
        names = [
            n
            for n in homes.get(id(inspect.unwrap(value)), ())
            if _is_plain(n) and facade.existed(n)
        ]
        if names and _is_plain(name):
            writer.writerow([name, min(names, key=lambda n: (n.count("."), len(n), n))])
    return out.getvalue()


def _same(one: Any, other: Any) -> bool:
    if inspect.unwrap(one) is not inspect.unwrap(other):
        return False
    return inspect.isclass(one) or inspect.signature(one) == inspect.signature(other)


def _is_plain(name: str) -> bool:
    """Whether the facade takes it from tf.compat.v1 as it is."""
    row = facade.find(name)
    return row is not None and row.home == f"tensorflow.compat.v1:{name.removeprefix('tf.')}"


def _names(module: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The public functions and classes of a module and of those below it."""
    for name in dir(module):
        if name.startswith("_") or (path == "tf" and name in _LEFT_OUT):
            continue
        try:
            value = getattr(module, name)
        except (AttributeError, ImportError):
            continue
        if inspect.ismodule(value):
            if "_api" in vars(value).get("__name__", ""):
                yield from _names(value, f"{path}.{name}")
        elif callable(value):
            yield f"{path}.{name}", value


if __name__ == "__main__":
    if "--print" in sys.argv:
        sys.stdout.write(table())
    else:
        TABLE.write_text(table(), encoding="utf-8")
        sys.stdout.write(f"{TABLE}\n")
