"""Where each seeded random op of a session is in its stream of numbers.

A Session kept the generator of an op as long as it lived, whatever was fetched. Here an op is part
of several functions, so its place in the stream is kept beside the variables, and every function
that draws goes on from there. A place can be saved, and training gone on with in another process.

Ops inside functions (branches, loop bodies, the functions of a dataset) are not among them: each
function that they become part of begins their stream anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy import _tf_private
from estimator2strategy.plan.random_ops import STRIDE, Drawn

_PHILOX = 1


class RandomStreams:
    """The streams of the ops that one replica imports.

    Args:
        device: Where the places are kept.
    """

    def __init__(self, device: str):
        self._first: dict[str, int] = {}
        self._device = device
        # Ops that were first imported together share a variable with a row `[place, seed2]` each,
        # so that a step with many of them reads and writes it once.
        self._rows: dict[str, tuple[tf.Variable, int]] = {}

    def places(self) -> dict[str, int]:
        """Name of each op -> its place."""
        places = dict(self._first)
        for block, names in self._by_block(self._rows):
            column = block.numpy()[:, 0]
            places.update((name, int(column[self._rows[name][1]])) for name in names)
        return places

    def move(self, places: Mapping[str, int]) -> None:
        """Makes ops go on from `places`, those that are not imported yet too."""
        self._first.update((n, place) for n, place in places.items() if n not in self._rows)
        for block, names in self._by_block(name for name in places if name in self._rows):
            rows = block.numpy()
            for name in names:
                rows[self._rows[name][1], 0] = places[name]
            block.assign(rows)

    def rewind(self) -> None:
        """Makes all ops begin anew."""
        self._first.clear()
        self.move(dict.fromkeys(self._rows, 0))

    def supplied(self, drawn: Mapping[str, Drawn]) -> dict[str, tf.Tensor]:
        """Called where ops are imported: what each is given, by the edges of its `Drawn`.

        Args:
            drawn: Name of each op -> what it asks for.
        """
        self._make_rows({name: of_op for name, of_op in drawn.items() if name not in self._rows})
        values: dict[str, tf.Tensor] = {}
        for block, names in self._by_block(drawn):
            counters = tf.unstack(tf.bitcast(block.read_value(), tf.uint64))
            values.update((drawn[name].counter, counters[self._rows[name][1]]) for name in names)
        for key, seed in {of_op.key: of_op.seed for of_op in drawn.values()}.items():
            values[key] = tf.constant([seed % 2**64], tf.uint64)
        algorithm = tf.constant(_PHILOX)
        values.update((of_op.algorithm, algorithm) for of_op in drawn.values())
        return values

    def advance(self, results: Mapping[str, tf.Tensor]) -> None:
        """Called after that: moves on by what was drawn.

        Args:
            results: Name of each op -> what it returned.
        """
        for block, names in self._by_block(results):
            counts: list[Any] = [np.int64(0)] * block.shape[0]
            for name in names:
                size = results[name].shape.num_elements()
                counts[self._rows[name][1]] = (
                    tf.size(results[name], tf.int64) if size is None else np.int64(size)
                )
            static = not any(isinstance(count, tf.Tensor) for count in counts)
            column = np.stack(counts)[:, None] if static else tf.stack(counts)[:, None]
            block.assign_add(column * np.array([[STRIDE, 0]]), read_value=False)

    def _make_rows(self, drawn: Mapping[str, Drawn]) -> None:
        if not drawn:
            return
        rows = [[self._first.pop(name, 0), of_op.seed2] for name, of_op in drawn.items()]
        with tf.init_scope(), tf.device(self._device):
            block = _tf_private.UninitializedVariable(
                shape=[len(rows), 2], dtype=tf.int64, name="random_streams"
            )
            block.assign(rows)
        self._rows.update((name, (block, i)) for i, name in enumerate(drawn))

    def _by_block(self, names: Iterable[str]) -> list[tuple[tf.Variable, list[str]]]:
        blocks: dict[int, tuple[tf.Variable, list[str]]] = {}
        for name in names:
            block, _ = self._rows[name]
            blocks.setdefault(id(block), (block, []))[1].append(name)
        return list(blocks.values())
