"""The place of each seeded random op of a session in its stream of numbers.

A Session kept the generator of an op as long as it lived, whatever was fetched. Here an op is part
of several functions, so its place in the stream is kept beside the variables, and every function
that draws goes on from there. A place can be saved, and training gone on with in another process.

Ops inside functions (branches, loop bodies, the functions of a dataset) are among them only in
programs that XLA compiles; see `plan/draws_inside.py`. Elsewhere each function that they become
part of begins their stream anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.plan import random_ops
from estimator2strategy.engine.plan.random_ops import Drawn

_PHILOX = 1


class _Row(NamedTuple):
    """The row, and the variable, in which `[place, seed2]` of an op is kept."""

    block: tf.Variable
    number: int
    seed2: int


class RandomStreams:
    """The streams of the ops that one replica imports.

    Args:
        device: Where the places are kept.
        first: The streams of the first replica, whose blocks these are laid out like; None: these
            are the first replica's.
        shift: By how much seeds differ from those of `first`.
    """

    def __init__(self, device: str, first: RandomStreams | None = None, shift: int = 0):
        self._first_places: dict[str, int] = {}
        self._device = device
        self._source = first
        self._shift = shift
        # Ops that were first imported together share a variable, a block, with a row each, so that
        # a step with many of them reads and writes it once.
        self._rows: dict[str, _Row] = {}
        self._twins: dict[int, tf.Variable] = {}

    def places(self) -> dict[str, int]:
        """Name of each op -> its place."""
        places = dict(self._first_places)
        for block, names in self._by_block(self._rows):
            column = block.numpy()[:, 0]
            places.update((name, int(column[self._rows[name].number])) for name in names)
        return places

    def move(self, places: Mapping[str, int]) -> None:
        """Makes ops go on from `places`, also those that are not imported yet."""
        self._first_places.update((n, place) for n, place in places.items() if n not in self._rows)
        for block, names in self._by_block(name for name in places if name in self._rows):
            rows = block.numpy()
            for name in names:
                rows[self._rows[name].number, 0] = places[name]
            block.assign(rows)

    def blocks(self) -> list[tf.Variable]:
        """The variables that hold the places: int64, `[place, seed2]` in a row for each op."""
        return [block for block, _ in self._by_block(self._rows)]

    def layout(self, block: tf.Variable) -> dict[str, int]:
        """Name of each op of a block -> its `seed2`, in the order of the block's rows."""
        return {name: row.seed2 for name, row in self._rows.items() if row.block is block}

    def laid_out(self, layouts: Sequence[Mapping[str, int]]) -> list[tf.Variable] | None:
        """The blocks of these layouts, made where their ops have none yet.

        Args:
            layouts: As for `layout`; the seeds are for blocks that are made.

        Returns:
            None if ops stand in other blocks already.
        """
        blocks = []
        for seeds in layouts:
            known = {id(row.block): row.block for n in seeds if (row := self._rows.get(n))}
            if not known:
                blocks.append(self._make_block(seeds))
            elif len(known) == 1 and list(self.layout(*known.values())) == list(seeds):
                blocks.extend(known.values())
            else:
                return None
        return blocks

    def block(self, seeds: Mapping[str, int]) -> tf.Variable:
        """The block of ops that are always drawn for together, made if they have none.

        Args:
            seeds: Name of each op -> its `seed2`, in the order of the block's rows.
        """
        self._make_rows(seeds)
        return self._rows[next(iter(seeds))].block

    def rewind(self) -> None:
        """Makes all ops begin anew."""
        self._first_places.clear()
        self.move(dict.fromkeys(self._rows, 0))

    def supplied(self, drawn: Mapping[str, Drawn]) -> dict[str, tf.Tensor]:
        """The inputs of ops that are imported now, by the edges of their `Drawn`.

        Args:
            drawn: Name of each op -> what it asks for.
        """
        counters = self.counters({name: of_op.seed2 for name, of_op in drawn.items()})
        values = {of_op.counter: counters[name] for name, of_op in drawn.items()}
        return values | _constants(drawn)

    def counters(self, seeds: Mapping[str, int]) -> dict[str, tf.Tensor]:
        """Reads where ops are in their streams.

        Args:
            seeds: Name of each op -> its `seed2`.

        Returns:
            Name of each op -> `[place, seed2]` (uint64), in the order of `seeds`.
        """
        self._make_rows(seeds)
        values: dict[str, tf.Tensor] = {}
        for block, names in self._by_block(seeds):
            rows = tf.unstack(tf.bitcast(block.read_value(), tf.uint64))
            values.update((name, rows[self._rows[name].number]) for name in names)
        return {name: values[name] for name in seeds}

    def advance(self, drawn: Mapping[str, Drawn], results: Mapping[str, tf.Tensor]) -> None:
        """Moves the places on by the numbers that were drawn; called after `supplied`.

        Args:
            drawn: Name of each op -> what it asked for.
            results: Name of each op -> what it returned.
        """
        self.move_on({name: _moved(drawn[name], result) for name, result in results.items()})

    def move_on(self, moved: Mapping[str, Any]) -> None:
        """Moves the places on.

        Args:
            moved: Name of each op -> an integer, or an int64 scalar.
        """
        for block, names in self._by_block(moved):
            counts: list[Any] = [np.int64(0)] * block.shape[0]
            for name in names:
                counts[self._rows[name].number] = moved[name]
            static = not any(isinstance(count, tf.Tensor) for count in counts)
            column = np.stack(counts)[:, None] if static else tf.stack(counts)[:, None]
            block.assign_add(column * np.array([[1, 0]]), read_value=False)

    def counterparts(self, captured: Iterable[tf.Tensor]) -> dict[int, tf.Tensor]:
        """Finds this replica's handles for those in `captured` of the first replica.

        Returns:
            Handles of blocks, by the id of the first replica's.
        """
        assert self._source
        ids = set(map(id, captured))
        return {
            id(block.handle): self._twin(block).handle
            for block in self._source.blocks()
            if id(block.handle) in ids
        }

    def _make_rows(self, seeds: Mapping[str, int]) -> None:
        """Makes the rows of ops that have none yet.

        Args:
            seeds: Name of each op -> its `seed2`.
        """
        new = {name: seed2 for name, seed2 in seeds.items() if name not in self._rows}
        if not new:
            return
        if self._source is None:
            self._make_block(new)
            return
        self._source._make_rows({name: seed2 - self._shift for name, seed2 in new.items()})
        for block, _ in self._source._by_block(new):
            self._twin(block)

    def _twin(self, block: tf.Variable) -> tf.Variable:
        """This replica's block in place of `block` of the first replica."""
        assert self._source
        if id(block) not in self._twins:
            rows = [(name, row) for name, row in self._source._rows.items() if row.block is block]
            seeds = {name: row.seed2 + self._shift for name, row in rows}
            self._twins[id(block)] = self._make_block(seeds)
        return self._twins[id(block)]

    def _make_block(self, seeds: Mapping[str, int]) -> tf.Variable:
        rows = [[self._first_places.pop(name, 0), seed2] for name, seed2 in seeds.items()]
        with tf.init_scope(), tf.device(self._device):
            block = _tf_private.UninitializedVariable(
                shape=[len(rows), 2], dtype=tf.int64, name="random_streams"
            )
            block.assign(rows)
        for i, (name, seed2) in enumerate(seeds.items()):
            self._rows[name] = _Row(block, i, seed2)
        return block

    def _by_block(self, names: Iterable[str]) -> list[tuple[tf.Variable, list[str]]]:
        blocks: dict[int, tuple[tf.Variable, list[str]]] = {}
        for name in names:
            block = self._rows[name].block
            blocks.setdefault(id(block), (block, []))[1].append(name)
        return list(blocks.values())


class GivenStreams:
    """The streams of a program that is given the places of its ops, and returns how far they move.

    Args:
        counters: Name of each op that it draws for -> `[place, seed2]` (uint64).

    Attributes:
        moved: Name of each op that was imported -> how far it has moved on.
    """

    def __init__(self, counters: Mapping[str, tf.Tensor]):
        self._counters = counters
        self.moved: dict[str, Any] = {}

    def supplied(self, drawn: Mapping[str, Drawn]) -> dict[str, tf.Tensor]:
        """As of RandomStreams."""
        counters = {of_op.counter: self._counters[name] for name, of_op in drawn.items()}
        return counters | _constants(drawn)

    def advance(self, drawn: Mapping[str, Drawn], results: Mapping[str, tf.Tensor]) -> None:
        """As of RandomStreams."""
        self.moved.update((name, _moved(drawn[name], r)) for name, r in results.items())


def _constants(drawn: Mapping[str, Drawn]) -> dict[str, tf.Tensor]:
    """The inputs that are the same at every step, by the edges of their `Drawn`."""
    seeds = {of_op.key: of_op.seed for of_op in drawn.values()}
    values = {key: tf.constant([seed % 2**64], tf.uint64) for key, seed in seeds.items()}
    algorithm = tf.constant(_PHILOX)
    return values | {d.algorithm: algorithm for d in drawn.values() if d.algorithm}


def _moved(drawn: Drawn, result: tf.Tensor) -> Any:
    size = result.shape.num_elements()
    if size is None:
        return random_ops.moved(
            drawn.op, tf.shape(result, out_type=tf.int64), tf.size(result, tf.int64)
        )
    return np.int64(random_ops.moved(drawn.op, result.shape.as_list(), size))
