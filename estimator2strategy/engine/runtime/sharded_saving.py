"""Makes the Saver of checkpoints, which writes as many files as suit their size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine import _tf_private

tf1 = tf.compat.v1

# By default a checkpoint has a file for each so many bytes, up to so many files.
_BYTES_PER_SHARD = 2**28
_MOST_SHARDS = 8


def default_saver(config: Any, shards: int | None) -> tf1.train.Saver:
    """The Saver that Estimator added to a graph, except that it may write several files.

    Args:
        config: A RunConfig.
        shards: The number of files; at most one per variable. None: one for each 256 MB, at most 8.
    """
    return tf1.train.Saver(
        sharded=True,
        max_to_keep=config.keep_checkpoint_max,
        keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours,
        defer_build=True,
        save_relative_paths=True,
        builder=_ShardedBuilder(shards),
    )


class _ShardedBuilder(_tf_private.BulkSaverBuilder):
    """Puts what is on one device into several shards, which are written at the same time."""

    def __init__(self, shards: int | None):
        super().__init__()
        self._shards = shards

    def _GroupByDevices(self, saveables: Any) -> list[Any]:  # noqa: N802
        return [
            (device, shard)
            for device, on_device in super()._GroupByDevices(saveables)
            for shard in split_by_size(on_device, list(map(_size, on_device)), self._shards)
        ]


def split_by_size(
    items: Sequence[Any], sizes: Sequence[int], shards: int | None
) -> list[list[Any]]:
    """`items` in parts of about the same size, none of them empty, each in the order of `items`.

    Args:
        sizes: The bytes of each item.
        shards: As for `default_saver`.
    """
    if shards is None:
        shards = min(max(sum(sizes) // _BYTES_PER_SHARD, 1), _MOST_SHARDS)
    parts: list[list[int]] = [[] for _ in range(min(shards, len(items)))]
    filled = [(0, 0)] * len(parts)  # bytes; items, so that what has no size is spread as well
    for index in sorted(range(len(items)), key=lambda i: -sizes[i]):  # the large ones first
        part = min(range(len(parts)), key=filled.__getitem__)
        parts[part].append(index)
        filled[part] = (filled[part][0] + sizes[index], filled[part][1] + 1)
    return [[items[index] for index in sorted(part)] for part in parts]


def _size(saveable: Any) -> int:
    """The bytes of a variable; 0 where they are not known beforehand, as those of a table."""
    variable = saveable.op
    if not isinstance(variable, (tf.Variable, tf.Tensor)):
        return 0
    if not variable.shape.is_fully_defined():
        return 0
    return int(math.prod(variable.shape.as_list()) * variable.dtype.size)
