"""Prediction: a lazy generator of batches, and of the examples in them."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.record.legacy import legacy_world
from estimator2strategy.record.recording import Recording
from estimator2strategy.runtime.monitored import ReplaySessionCreator

tf1 = tf.compat.v1


def selected(predictions: Any, keys: Sequence[str] | str | None) -> Any:
    """Those of the predictions whose key is among `keys`.

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
            f"Expected to run at least one output from {list(predictions)}, provided {keys}."
        )
    return chosen


def batches(
    recording: Recording,
    predictions: Any,
    checkpoint_path: str | None,
    hooks: Sequence[tf1.train.SessionRunHook],
) -> Generator[Any, None, None]:
    """Yields the values of `predictions`, a batch at a time, until the input ends.

    The legacy world is entered for each batch and left before it is yielded, so that the consumer
    never runs in it.
    """
    all_hooks = [*recording.input_hooks, *hooks, *(recording.spec.prediction_hooks or [])]
    with _inside(recording.graph):
        monitored = tf1.train.MonitoredSession(
            session_creator=ReplaySessionCreator(recording, checkpoint_path=checkpoint_path),
            hooks=all_hooks,
        )
    error: tuple[Any, Any, Any] = (None, None, None)
    try:
        while not monitored.should_stop():
            try:
                with _inside(recording.graph):
                    values = monitored.run(predictions)
            except tf.errors.OutOfRangeError:
                break
            yield values
    except BaseException as raised:  # of a generator that is closed early too: no hook's `end`
        error = (type(raised), raised, raised.__traceback__)
        raise
    finally:
        with _inside(recording.graph):
            monitored.__exit__(*error)


@contextlib.contextmanager
def _inside(graph: tf.Graph):
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
    lengths = {key: value.shape[0] for key, value in values.items()}
    first = next(iter(lengths.values()))
    for key, length in lengths.items():
        if length != first:
            raise ValueError(
                f"Batch length of predictions should be same. {key} has different batch length "
                f"than others: {lengths}."
            )
    return first
