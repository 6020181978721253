"""Filters of paths that choose exports to delete: `tensorflow.python.estimator.gc` of TF 1.

    delete = negation(largest_export_versions(3))
    for path in delete(get_paths(folder, parser)): ...

Copies of `BestExporter` and `LatestExporter` in programs use them.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf


class Path(NamedTuple):
    """A folder, and the number that a parser found in its name."""

    path: str
    export_version: int | None


Filter = Callable[[Sequence[Path]], list[Path]]


def largest_export_versions(n: int) -> Filter:
    """Keeps the `n` paths with the largest numbers."""

    def keep(paths: Sequence[Path]) -> list[Path]:
        return sorted(path for _, path in heapq.nlargest(n, _numbered(paths)))

    return keep


def one_of_every_n_export_versions(n: int) -> Filter:
    """Keeps the path with the largest number of each interval [0, n], (n, 2n], (2n, 3n]..."""

    def keep(paths: Sequence[Path]) -> list[Path]:
        kept = {}
        for version, path in sorted(_numbered(paths)):
            kept[(version - 1) // n if version else 0] = path
        return sorted(kept.values())

    return keep


def mod_export_version(n: int) -> Filter:
    """Keeps the paths whose number is a multiple of `n`."""
    return lambda paths: sorted(path for version, path in _numbered(paths) if version % n == 0)


def _numbered(paths: Sequence[Path]) -> list[tuple[int, Path]]:
    """The paths that have a number, with it."""
    return [(path.export_version, path) for path in paths if path.export_version is not None]


def union(one: Filter, other: Filter) -> Filter:
    """Keeps what either of two filters keeps."""
    return lambda paths: sorted({*one(paths), *other(paths)})


def negation(of: Filter) -> Filter:
    """Keeps what a filter does not."""
    return lambda paths: sorted({*paths} - {*of(paths)})


def get_paths(base_dir: str, parser: Callable[[Path], Path | None]) -> list[Path]:
    """The folders in `base_dir`, each as `parser` returns it; without those it returns None for."""
    folder = tf.compat.as_str_any(base_dir)
    names = [tf.compat.as_str_any(name).rstrip("/") for name in tf.io.gfile.listdir(folder)]
    parsed = (parser(Path(os.path.join(folder, name), None)) for name in names)
    return sorted(path for path in parsed if path)
