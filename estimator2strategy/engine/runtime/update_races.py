"""The line of the log on an update that raced with a use of its variable in TF 1.15."""

from __future__ import annotations

import functools

import tensorflow as tf

from estimator2strategy.engine.plan.races import Race, races
from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.user_code import user_line


def tell_races(recording: Recording) -> None:
    """Logs the first race of a training's step on one device; once for each text in a process.

    Cores and replicas have resource variables, whose reads are copies.
    """
    if recording.strategy or recording.worker:
        return
    graph, spec = recording.graph, recording.spec
    train_op = graph.as_graph_element(spec.train_op)
    racing = races(graph, [getattr(train_op, "op", train_op).name])
    if racing:
        _say(_text(graph, racing))


def _text(graph: tf.Graph, found: list[Race]) -> str:
    variable, write, use = found[0]
    others = len({race.variable for race in found} - {variable})
    more = f", and so it is with {others} more" if others else ""
    return (
        f"TF 1.15 did not order the update of the variable {variable!r} (at {_line(graph, write)}) "
        f"and its use by {use!r} (at {_line(graph, use)}){more}: there the result depended on "
        "threads. Here one of its results comes out, always the same. If it shall be the one "
        "after the update, build the use under tf.control_dependencies([update])."
    )


def _line(graph: tf.Graph, name: str) -> str:
    return user_line(graph.get_operation_by_name(name).traceback)


@functools.cache
def _say(text: str) -> None:
    tf.compat.v1.logging.warn("%s", text)
