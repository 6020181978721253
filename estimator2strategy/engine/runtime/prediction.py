"""Prediction: a lazy generator of batches, and of the examples in them."""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy.engine.plan.cardinality import most_batches
from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.replay.engines import Ran
from estimator2strategy.engine.replay.runs import AloneCosts
from estimator2strategy.engine.runtime.empty_input import warn_of_no_batch
from estimator2strategy.engine.runtime.lookahead import sees_runs
from estimator2strategy.engine.runtime.monitored import ReplaySessionCreator
from estimator2strategy.engine.runtime.payback import PREDICTION, has_paid
from estimator2strategy.engine.runtime.replay_cache import ReplayCache
from estimator2strategy.engine.runtime.saving_session import SavingSession
from estimator2strategy.engine.worlds import legacy_world

tf1 = tf.compat.v1

# So few batches are worked on one by one, however often they are.
_VERY_FEW = 2


def selected(predictions: Any, keys: Sequence[str] | str | None) -> Any:
    """The predictions whose key is among `keys`.

    Raises:
        ValueError: There is none, or predictions is no dict.
    """
    if not keys:
        return predictions
    if not isinstance(predictions, dict):
        raise ValueError("predict_keys argument is not valid in case of non-dict predictions.")
    keys = [keys] if isinstance(keys, str) else keys
    chosen = {key: value for key, value in predictions.items() if key in keys}
    if not chosen:
        raise ValueError(
            f"Expected to run at least one output from {list(predictions)}, provided {keys} "
            "as predict_keys"
        )
    return chosen


def batches(
    recording: Recording,
    predictions: Any,
    checkpoint_path: str | None,
    hooks: Sequence[tf1.train.SessionRunHook],
    store: ReplayCache | None = None,
    give_values: Callable[[SavingSession], None] | None = None,
    look_up: Callable[[], str | None] | None = None,
) -> Generator[Any, None, None]:
    """Yields the values of `predictions`, a batch at a time, until the input ends.

    Where no hook is called around batches, and no Python in the input could wait for what was
    yielded, some batches are worked on at once.

    The legacy world is entered for each call and left before anything is yielded, so that the
    consumer never runs in it.
    """
    of_program = [*hooks, *(recording.spec.prediction_hooks or [])]
    all_hooks = [*recording.input_hooks, *of_program]
    creator = ReplaySessionCreator(
        recording,
        checkpoint_path=checkpoint_path,
        store=store,
        give_values=give_values,
        only_reads=not of_program,
        look_up=look_up,
    )
    with _inside(recording.graph):
        monitored = tf1.train.MonitoredSession(session_creator=creator, hooks=all_hooks)
    with _closing(monitored, recording.graph):
        with _inside(recording.graph):
            assert creator.session  # a MonitoredSession makes it first of all
            payback = _payback(creator.session, predictions, all_hooks)
        yielded, again = 0, _Again(creator)
        while not monitored.should_stop():
            if payback.is_due():
                with _inside(recording.graph):
                    batched = creator.session.batched(predictions)
                if batched:
                    yielded += yield from _batched(batched, recording.graph)
                    break
                payback = Payback(never=True, costs=AloneCosts())
            try:
                with _inside(recording.graph), payback.timing():
                    values = monitored.run(predictions)
            except tf.errors.OutOfRangeError:
                break
            if again.is_before(yielded):
                continue
            yield values
            yielded += 1
            creator.recovery.got_to(yielded)
        if not yielded:
            warn_of_no_batch("predict")


@contextlib.contextmanager
def _closing(monitored: tf1.train.MonitoredSession, graph: tf.Graph) -> Iterator[None]:
    error: tuple[Any, Any, Any] = (None, None, None)
    python_ends = sys.is_finalizing  # a name of this module is None by then
    try:
        yield
    except BaseException as raised:  # of a generator that is closed early too: no hook's `end`
        error = (type(raised), raised, raised.__traceback__)
        raise
    finally:
        if not python_ends():
            with _inside(graph):
                monitored.__exit__(*error)


def _payback(
    session: SavingSession, predictions: Any, hooks: Sequence[tf1.train.SessionRunHook]
) -> Payback:
    runs = session.runs
    return Payback(
        never=any(map(sees_runs, hooks)),
        costs=runs.alone,
        built=session.has_batched(predictions),
        most=most_batches(runs.replay.recorded),
    )


class _Again:
    """Counts batches since the input began; it begins anew when a session was lost."""

    def __init__(self, creator: ReplaySessionCreator):
        self._taken = 0
        creator.on_session = self._begin

    def _begin(self, session: SavingSession) -> None:
        del session
        self._taken = 0

    def is_before(self, yielded: int) -> bool:
        """Takes note of a batch; true if it is one of those that were yielded."""
        self._taken += 1
        return self._taken <= yielded


class Payback:
    """Says when a second program, for several batches at once, is worth building.

    It is due when the batches that ran, as often again, gain more in it than it takes to build:
    whenever the input ends, no more than about twice the time of the better choice was spent.

    Args:
        never: True if no second program may be built.
        costs: Those of the batches that were worked on one by one, in calls before this one too.
        built: True if it is there already.
        most: How many batches there are at most.
        clock, processor: Give the time, and the processor time, in seconds.
    """

    def __init__(
        self,
        never: bool,
        costs: AloneCosts,
        built: bool = False,
        most: float = math.inf,
        clock: Callable[[], float] = time.perf_counter,
        processor: Callable[[], float] = time.process_time,
    ) -> None:
        self._never, self._costs, self._built = never, costs, built
        self._left, self._clock, self._processor = most, clock, processor

    @contextlib.contextmanager
    def timing(self) -> Iterator[None]:
        """Times the run of a batch; the first one of all also builds the first program."""
        started, worked = self._clock(), self._processor()
        yield
        self._left -= 1
        ran = Ran(1, [], built=not self._costs.building, seconds=self._clock() - started)
        self._costs.note(ran, self._processor() - worked)

    def is_due(self) -> bool:
        """True once a second program pays for its building."""
        if self._never:
            return False
        return self._built or (self._left > _VERY_FEW and has_paid(self._costs, PREDICTION))


class Growth:
    """The number of batches to work on at once: it grows while they turn out to be small.

    Nobody should wait much longer for a first batch because others come with it, and who keeps one
    example keeps all that came with it in memory.
    """

    _MOST = 256
    _SECONDS = 0.2
    _BYTES = 4 * 2**20

    def __init__(self) -> None:
        self._batches = 1
        self._calls = 0

    def batches(self) -> int:
        return self._batches

    def ran(self, batches: int, seconds: float, size: int) -> None:
        """Takes note of a call: how long it took, and how many bytes it gave."""
        self._calls += 1
        if self._calls == 1 or not batches:  # it has built the program
            return
        by_time = self._SECONDS * batches / max(seconds, 1e-9)
        by_size = self._BYTES * batches / max(size, 1)
        affordable = max(1, int(min(by_time, by_size, self._MOST)))
        self._batches = min(2 * self._batches, affordable)


def _batched(run: Any, graph: tf.Graph) -> Generator[Any, None, int]:
    """Yields the values of `ReplaySession.batched`, batch by batch; returns how many."""
    yielded = 0
    growth = Growth()
    error: Exception | None = None
    while error is None:
        started = time.perf_counter()
        with _inside(graph):
            values, error = run(growth.batches())
        seconds = time.perf_counter() - started
        growth.ran(len(values), seconds, sum(map(_size, values)))
        yield from values
        yielded += len(values)
    if not isinstance(error, tf.errors.OutOfRangeError):
        raise error
    return yielded


def _size(values: Any) -> int:
    tensors = values.values() if isinstance(values, dict) else [values]
    return sum(value.nbytes for value in tensors if isinstance(value, np.ndarray))


@contextlib.contextmanager
def _inside(graph: tf.Graph) -> Iterator[None]:
    with legacy_world(), graph.as_default():
        yield


def examples(batches_of_values: Iterable[Any]) -> Iterator[Any]:
    """Yields the examples of each batch, in order.

    Raises:
        ValueError: The values of a batch have different lengths.
    """
    for values in batches_of_values:
        if not isinstance(values, dict):
            yield from values
            continue
        for i in range(_batch_length(values)):
            yield {key: value[i] for key, value in values.items()}


def _batch_length(values: dict[str, Any]) -> int:
    lengths = {key: int(value.shape[0]) for key, value in values.items()}
    first = next(iter(lengths.values()))
    for key, length in lengths.items():
        if length != first:
            raise ValueError(
                f"Batch length of predictions should be same. {key} has different batch length "
                f"than others: {lengths}."
            )
    return first
