"""Records the calls of an Estimator: `record` of the engine, with the Estimator's arguments.

Example:

    with recording_graph(model) as graph:
        recording = record_for(model, ModeKeys.TRAIN, input_fn)
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import tensorflow as tf

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.record.recording import Recording, record
from estimator2strategy.engine.runtime.evaluation import Evaluation
from estimator2strategy.engine.runtime.gc_pause import free_left_graphs, kept_young, note_left
from estimator2strategy.engine.runtime.session_config import applied
from estimator2strategy.engine.worlds import legacy_world, recording

tf1 = tf.compat.v1
F = TypeVar("F", bound=Callable[..., Any])

# The methods of ours by which Estimator calls a program's functions.
_OURS: set[Any] = set()


def replaceable(method: F) -> F:
    """Marks a method of Estimator that subclasses may replace, or programs in an instance."""
    _OURS.add(method)
    return method


def replaced(method: F) -> F | None:
    """The method, if a subclass or a program replaced ours by it; else None."""
    return None if getattr(method, "__func__", method) in _OURS else method


@contextlib.contextmanager
def recording_graph(estimator: Any) -> Iterator[tf.Graph]:
    """The legacy world and a fresh graph, as one context."""
    parts = estimator.e2s_parts
    config = parts.program.config
    free_left_graphs()
    with (
        applied(config.session_config),
        legacy_world(),
        recording(config.tf_random_seed, parts.is_tf115) as graph,
        graph.device(config.device_fn),
        kept_young(),
    ):
        try:
            yield graph
        finally:
            note_left(graph)


def record_for(estimator: Any, mode: str, input_fn: Callable[..., Any]) -> Recording:
    """Records one mode of an Estimator in the graph of `recording_graph`; nothing of it runs.

    See `record` for what is returned and raised.
    """
    parts = estimator.e2s_parts
    return record(parts.program, parts.placement(mode), mode, input_fn)


def record_evaluation(
    estimator: Any,
    graph: tf.Graph,
    input_fn: Callable[..., Any],
    hooks: Sequence[Any] | None = None,
) -> Evaluation:
    """Records an evaluation in the graph of `recording_graph`.

    Args:
        hooks: Those that it will run with. With stock ones, the previous evaluation may be found
            again; None: it is recorded anew.
    """
    parts, mode = estimator.e2s_parts, ModeKeys.EVAL
    program, placement = parts.program, parts.placement(mode)
    inputs = placement.record_input(program, mode, input_fn)

    def record_model() -> Evaluation:
        return Evaluation(placement.record_model(program, mode, inputs))

    return record_model() if hooks is None else parts.evaluations.find(graph, hooks, record_model)
