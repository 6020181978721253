"""`gc` of `tf.contrib.learn.utils`, and of Estimator's own files: which exports to keep.

    newest = largest_export_versions(3)
    for path in negation(newest)(get_paths(folder, parser)):
        tf.io.gfile.rmtree(path.path)

A filter takes a list of Paths and returns those that it selects, sorted.
"""

from __future__ import annotations

import heapq
import math
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf


class Path(NamedTuple):
    """A file or a folder, and the version that its name tells."""

    path: str
    export_version: Any


Filter = Callable[[Sequence[Path]], list[Path]]


def get_paths(base_dir: str | bytes, parser: Callable[[Path], Path | None]) -> list[Path]:
    """The Paths in a folder, sorted: those for which `parser` returns one, with its version."""
    folder = tf.compat.as_str_any(base_dir)
    # In a bucket, names of folders end in a slash.
    names = [tf.compat.as_str_any(name).rstrip("/") for name in tf.io.gfile.listdir(folder)]
    exports = [parser(Path(os.path.join(folder, name), None)) for name in names]
    return sorted(path for path in exports if path)


def largest_export_versions(n: int) -> Filter:
    """A filter that selects the `n` largest versions."""

    def keep(paths: Sequence[Path]) -> list[Path]:
        known = [(p.export_version, i) for i, p in enumerate(paths) if p.export_version is not None]
        return sorted(paths[i] for _, i in heapq.nlargest(n, known))

    return keep


def one_of_every_n_export_versions(n: int) -> Filter:
    """A filter that selects the largest version of each interval [0, n], (n, 2n], ..."""

    def keep(paths: Sequence[Path]) -> list[Path]:
        largest: dict[int, Path] = {}
        for path in paths:
            version = path.export_version
            if version is None:
                continue
            interval = math.floor((version - 1) / n) if version else 0
            if interval not in largest or largest[interval].export_version < version:
                largest[interval] = path
        return sorted(largest.values())

    return keep


def mod_export_version(n: int) -> Filter:
    """A filter that selects versions that are multiples of `n`."""
    return lambda paths: sorted(path for path in paths if path.export_version % n == 0)


def union(lf: Filter, rf: Filter) -> Filter:
    """A filter that selects what one of two selects."""
    return lambda paths: sorted({*lf(paths), *rf(paths)})


def negation(f: Filter) -> Filter:
    """A filter that selects what another does not."""
    return lambda paths: sorted({*paths} - {*f(paths)})
