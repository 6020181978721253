"""Records the calls of an Estimator: `record` of the engine, with the Estimator's arguments.

Example:

    with recording_graph(model) as graph:
        recording = record_for(model, ModeKeys.TRAIN, input_fn)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import tensorflow as tf

from estimator2strategy.engine.record.model_program import ModelProgram, ReplacedCalls
from estimator2strategy.engine.record.placement import record
from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.runtime.gc_pause import free_left_graphs, kept_young, note_left
from estimator2strategy.engine.runtime.session_config import applied
from estimator2strategy.engine.worlds import legacy_world, recording
from estimator2strategy.estimator.specs import EstimatorSpec

tf1 = tf.compat.v1
F = TypeVar("F", bound=Callable[..., Any])

# The methods of ours by which Estimator calls a program's functions.
_OURS: set[Any] = set()


def replaceable(method: F) -> F:
    """Marks a method of Estimator that subclasses may replace, or programs in an instance."""
    _OURS.add(method)
    return method


def program_of(estimator: Any) -> ModelProgram:
    """The program of an Estimator, with the calls that a subclass replaced."""

    def replaced(name: str) -> Any:
        method = getattr(estimator, name)
        return None if getattr(method, "__func__", method) in _OURS else method

    return ModelProgram(
        estimator._model_fn,
        estimator._params,
        estimator._config,
        EstimatorSpec,
        ReplacedCalls(
            replaced("_call_input_fn"),
            replaced("_call_model_fn"),
            replaced("_create_and_assert_global_step"),
        ),
    )


@contextlib.contextmanager
def recording_graph(estimator: Any) -> Iterator[tf.Graph]:
    """The legacy world and a fresh graph, as one context."""
    config = estimator._config
    free_left_graphs()
    with (
        applied(config.session_config),
        legacy_world(),
        recording(config.tf_random_seed, estimator._tf115) as graph,
        graph.device(config.device_fn),
        kept_young(),
    ):
        try:
            yield graph
        finally:
            note_left(graph)


def record_for(estimator: Any, mode: str, input_fn: Callable) -> Recording:
    """Records one mode of an Estimator in the graph of `recording_graph`; nothing of it runs.

    See `record` for what is returned and raised.
    """
    return record(program_of(estimator), estimator._placement(mode), mode, input_fn)
