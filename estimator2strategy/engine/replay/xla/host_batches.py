"""The batches of some steps, taken and prepared by the host for a device.

    batches = HostBatches(replay, parts)
    taken, error = batches.take(32)      # one call of TensorFlow prepares all of them

A call from Python for each batch would take longer than a small step does.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import tensorflow as tf

from estimator2strategy.engine.replay.next_batch import next_batches, of_each_batch
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.replay.xla.parts import StepParts, take_function

Kept: TypeAlias = Callable[[int], list[tf.Tensor]]

is_there = tf.raw_ops.OptionalHasValue

# No more batches are taken after so many seconds: the device may begin with what is there.
_TAKING = 0.05


class Taken(NamedTuple):
    """Batches of some steps, all of the same shapes.

    Attributes:
        steps: Their number.
        feeds: The tensors that the device is given (`StepParts.takes`): [steps, ...] each.
        kept: Gives, for the number of a step, the tensors that the host needs after it.
    """

    steps: int
    feeds: list[np.ndarray]
    kept: Kept

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of the feeds of one step."""
        return tuple(feed.shape[1:] for feed in self.feeds)

    def split(self, first: int) -> tuple[Taken, Taken]:
        """(the first steps, the others)."""
        before, after = ([feed[:first] for feed in self.feeds], [f[first:] for f in self.feeds])
        return (
            Taken(first, before, self.kept),
            Taken(self.steps - first, after, _counted_from(first, self.kept)),
        )


def _counted_from(first: int, kept: Kept) -> Kept:
    return lambda number: kept(first + number)


class HostBatches:
    """Runs the host's first part of steps, for several of them at once where it can.

    Must be made, and called, in the `modern_world`.

    Args:
        replay: The graph and its state.
        parts: The parts of a step.
        feeds: Names of the tensors that each step is given.
        several: False if each step's part must wait for the step before.

    Attributes:
        function: The ConcreteFunction that runs it.
    """

    def __init__(
        self, replay: Replay, parts: StepParts, feeds: Sequence[str] = (), several: bool = True
    ):
        self._replay, self._parts = replay, parts
        self._names = tuple(dict.fromkeys([*parts.takes, *parts.kept]))
        self._types = [replay.spec(name).dtype for name in self._names]
        in_lists = tf.resource not in self._types and tf.variant not in self._types
        self._next = (
            next_batches(replay, parts.before) if several and in_lists and not feeds else None
        )
        nodes = self._next.nodes if self._next else ()
        self._others = sorted(parts.before.difference(nodes))
        self._has_effects = replay.recorded.have_effects(self._others)
        self.function = self._of_several() if self._next else take_function(replay, parts, feeds)

    def take(
        self, most: int, feeds: Sequence[tf.Tensor] = ()
    ) -> tuple[list[Taken], Exception | None]:
        """Takes up to `most` batches, fewer if they are slow in coming.

        Returns:
            The batches, in their order, and the error with which the next one ended: an
            OutOfRangeError after the last one.
        """
        if self._next is None:
            return self._take_one(feeds)
        optionals, error = self._optionals(most)
        try:
            taken, count = self._prepared(optionals)
        except tf.errors.OpError:
            if self._has_effects:
                raise
            return self._up_to_failure(optionals)
        if count < len(optionals):
            error = tf.errors.OutOfRangeError(None, None, "End of sequence")
        return taken, error

    def _prepared(self, optionals: Sequence[tf.Tensor]) -> tuple[list[Taken], int]:
        """The batches that are there, and their number."""
        if not optionals:
            return [], 0
        count, *lists = self.function(tf.stack(optionals))
        there = int(count)
        return (self._of_lists(lists, there) if there else []), there

    def _up_to_failure(self, optionals: Sequence[tf.Tensor]) -> tuple[list[Taken], Exception]:
        blocks: list[Taken] = []
        for optional in optionals:
            try:
                blocks += self._prepared([optional])[0]
            except tf.errors.OpError as error:
                return blocks, error
        raise RuntimeError("The same batches failed together, and not one by one.")

    def _take_one(self, feeds: Sequence[tf.Tensor]) -> tuple[list[Taken], Exception | None]:
        try:
            values = self.function(*feeds)
        except tf.errors.OutOfRangeError as error:
            return [], error
        takes = len(self._parts.takes)
        kept = values[takes:]
        feeds = [value.numpy()[None] for value in values[:takes]]
        return [Taken(1, feeds, lambda number: kept)], None

    def _optionals(self, most: int) -> tuple[list[tf.Tensor], Exception | None]:
        assert self._next
        optionals: list[tf.Tensor] = []
        until = time.perf_counter() + _TAKING
        while not optionals or (len(optionals) < most and time.perf_counter() < until):
            try:
                optionals.append(self._next.optional())
            except tf.errors.OpError as error:
                return optionals, error
        return optionals, None

    def _of_lists(self, lists: Sequence[tf.Tensor], count: int) -> list[Taken]:
        handles = dict(zip(self._names, lists, strict=True))
        types = dict(zip(self._names, self._types, strict=True))

        def item(name: str, number: int) -> tf.Tensor:
            return tf.raw_ops.TensorListGetItem(
                input_handle=handles[name],
                index=number,
                element_shape=-1,
                element_dtype=types[name],
            )

        def kept(number: int) -> list[tf.Tensor]:
            return [item(name, number) for name in self._parts.kept]

        takes = self._parts.takes
        try:
            stacked = {
                name: tf.raw_ops.TensorListStack(
                    input_handle=handles[name], element_shape=-1, element_dtype=types[name]
                ).numpy()
                for name in dict.fromkeys(takes)
            }
            return [Taken(count, [stacked[name] for name in takes], kept)]
        except tf.errors.InvalidArgumentError:  # their shapes differ
            each = [[item(name, i).numpy() for name in takes] for i in range(count)]
            return _runs_of_one_shape(each, kept)

    def _of_several(self) -> Any:
        """The ConcreteFunction of optional batches: their number, and a list for each name."""
        replay, names, next_batch = self._replay, self._names, self._next
        assert next_batch

        def values_of(optional: tf.Tensor) -> Sequence[tf.Tensor]:
            batch = next_batch.values(optional)
            importer = replay.importer(batch)
            importer.supply({}, next_batch.nodes, list(batch.values()))
            return importer.fetch(names, self._others)

        def looped(optionals: tf.Tensor) -> list[tf.Tensor]:
            return of_each_batch(optionals, values_of, self._types)

        spec = tf.TensorSpec([None], tf.variant)
        return tf.function(looped, [spec], autograph=False).get_concrete_function()


def _runs_of_one_shape(each: Sequence[Sequence[np.ndarray]], kept: Kept) -> list[Taken]:
    """Batches of several shapes: those of one shape that follow one another are put together."""
    batches: list[Taken] = []
    first = 0
    for _, run in itertools.groupby(each, lambda feeds: [feed.shape for feed in feeds]):
        feeds = [np.stack(of_feed) for of_feed in zip(*run, strict=True)]
        count = len(feeds[0])
        batches.append(Taken(count, feeds, _counted_from(first, kept)))
        first += count
    return batches
