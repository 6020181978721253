"""Several processes that train one model in step, each with a copy of its variables."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.plan import rewrites
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.record.multi_worker import Worker
from estimator2strategy.engine.replay import splice as splice_lib
from estimator2strategy.engine.replay.next_batch import NextBatch, NextBatches
from estimator2strategy.engine.replay.step_context import Peers
from estimator2strategy.engine.runtime import agreement, liveness
from estimator2strategy.engine.runtime.saving_session import SavingSession
from estimator2strategy.engine.worlds import modern_world

tf1 = tf.compat.v1

# The dtypes that collectives can add.
_SUMMABLE = frozenset({tf.float16, tf.float32, tf.float64, tf.int32, tf.int64})


_trainings = itertools.count()


def first_key() -> int:
    """The number of a training's first collective: all processes train the same, in one order."""
    return next(_trainings) * rewrites.KEYS_OF_A_TRAINING


def peers_of(worker: Worker, recorded: RecordedGraph, first: int) -> Peers:
    """The replicas of all processes, and the collectives in which they meet.

    Those are numbered in the order of the graph up to the model, which all have in common.

    Args:
        first: The number of the first one.
    """
    inside = rewrites.inner_nodes(recorded.library, recorded.functions_behind(recorded.position))
    sums = rewrites.numbered_sums([*recorded.nodes, *inside])
    sums = {name: first + number for name, number in sums.items()}
    return Peers(worker.number * worker.devices, worker.replicas, sums)


def _sum(value: tf.Tensor, worker: Worker, number: int) -> tf.Tensor:
    """The sum of a tensor over all processes; each must ask for it with the same number."""
    return tf.raw_ops.CollectiveReduce(
        input=value,
        group_size=worker.count,
        group_key=rewrites.group_key(worker.count),
        instance_key=rewrites.instance_key(number),
        merge_op="Add",
        final_op="Id",
        subdiv_offsets=[0],
    )


def _of_each(value: tf.Tensor, worker: Worker, number: int) -> tf.Tensor:
    """The tensors of all processes, stacked, the chief's first."""
    mine = tf.one_hot(worker.number, worker.count, dtype=value.dtype)
    return _sum(tf.tensordot(mine, value, 0), worker, number)


def gather(worker: Worker, first: int, text: bytes) -> list[bytes]:
    """The `text` of each process, the chief's first. Must be called in the `modern_world`."""

    def gathered(value: Any, number: int) -> tf.Tensor:
        function = tf.function(lambda: _of_each(tf.constant(value), worker, number))
        return function.get_concrete_function()()

    lengths = gathered([len(text)], first + rewrites.FACTS_KEY).numpy()[:, 0]
    padded = agreement.padded(text, max(lengths))
    texts = gathered(padded, first + rewrites.FACTS_KEY + 1).numpy()
    return [bytes(t[:n].astype("uint8")) for t, n in zip(texts, lengths, strict=True)]


def take_together(
    worker: Worker, first: int, next_batch: NextBatch | NextBatches
) -> Callable[[], list[tf.Tensor]]:
    """A function that gives this process's next batch, if all processes have one.

    Raises:
        tf.errors.OutOfRangeError: When called: the input of some process has ended, and so has
            training, for all of them.
    """

    @tf.function(autograph=False)
    def taken() -> tuple[tf.Tensor, tf.Tensor]:
        optional = next_batch.optional()
        there = tf.cast(tf.raw_ops.OptionalHasValue(optional=optional), tf.int32)
        return optional, _of_each(there, worker, first + rewrites.INPUT_KEY)

    def take() -> list[tf.Tensor]:
        optional, there = taken()
        ended = [number for number, has_batch in enumerate(there.numpy()) if not has_batch]
        if ended:
            if len(ended) < worker.count:
                tf1.logging.warn(
                    "The input of process %s has ended, the others' has not. Training ends for "
                    "all; give each as many batches, or repeat() them and say how many steps.",
                    ", ".join(map(str, ended)),
                )
            raise tf.errors.OutOfRangeError(None, None, "End of sequence")
        return list(next_batch.values(optional).values())

    return take


class SameStartHook(tf1.train.SessionRunHook):
    """Gives all processes the chief's variables, before the first step, once they agree.

    A worker may have initialised its own, or have found another checkpoint than the chief.

    Raises:
        ValueError: As the session starts: the processes have different variables, or sums.
    """

    def __init__(self, worker: Worker, train_op: str):
        self._worker, self._train_op = worker, train_op
        self._watch = liveness.watch()

    def begin(self) -> None:
        variables = tf1.global_variables()
        self._variables = [v.handle.op.name for v in variables if v.dtype in _SUMMABLE]

    def after_create_session(self, session: SavingSession, coord: Any) -> None:
        del coord
        if self._watch:
            self._watch.in_training = True
        variables = [session.state.variable(name) for name in self._variables]
        first = session.first_key

        @tf.function(autograph=False)
        def share() -> None:
            for number, variable in enumerate(variables):
                value = variable.read_value()
                mine = value if self._worker.number == 0 else tf.zeros_like(value)
                total = _sum(mine, self._worker, first + rewrites.FIRST_START_KEY + number)
                variable.assign(total, read_value=False)

        roots = [self._train_op, *splice_lib.inside(session.replay.splices)]
        facts = agreement.facts_of(session.recorded, roots, self._worker.devices)
        with modern_world(), liveness.needed():
            agreement.check(facts, functools.partial(gather, self._worker, first))
            share()
            session.state.broadcast(self._variables)

    def end(self, session: tf1.Session) -> None:
        del session
        if self._watch:  # others may be ready sooner
            self._watch.in_training = False
