"""Takes the queues of an input_fn out of the recorded graph, into a Session of their own.

The ops by which the program takes from a queue stay where they are. In a replay each of them is a
batch of a Dataset, which asks the Session. So what follows the queue is replayed like any input.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.plan.graph import STAND_INS
from estimator2strategy.engine.plan.queues import Queues, queues_of, runners_of
from estimator2strategy.engine.record.input_fn import DatasetInitializerHook
from estimator2strategy.engine.record.queue_session import QueueSession
from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.user_code import user_line
from estimator2strategy.errors import QueueRunnerError

tf1 = tf.compat.v1

_AHEAD = 2  # batches that are taken before a step asks for them


def with_queues_apart(recording: Recording) -> Recording:
    """The recording, of whose queues a Session takes care; itself if it has no queue runners.

    Must be called with `recording.graph` as the default graph.

    Raises:
        QueueRunnerError: The queues need something that the Session has not.
    """
    graph = recording.graph
    runners = list(runners_of(graph))
    if not runners:
        return recording
    queues = queues_of(graph)
    _check(graph, queues, runners)
    session = QueueSession(graph, queues, runners)
    # MonitoredSession would start them, too.
    graph.get_collection_ref(tf1.GraphKeys.QUEUE_RUNNERS).clear()
    with tf1.name_scope("queues/"), tf1.device("/cpu:0"):
        hooks = tuple(_as_dataset(session, take) for take in queues.takes)
        for look in queues.looks:
            _as_call(session, look)
    return dataclasses.replace(
        recording, input_hooks=(*recording.input_hooks, *hooks), queues=session
    )


def _as_dataset(session: QueueSession, take: Sequence[tf.Operation]) -> DatasetInitializerHook:
    """Lets a replay take from a Dataset where the program takes from a queue."""
    outputs = [tensor for op in take for tensor in op.outputs]
    _check_types(take[0], outputs)
    next_values = _in_graph(session, outputs)
    # The function ends it: datasets of TF 1 ask their functions.
    dataset = tf1.data.Dataset.range(tf.int64.max).map(next_values).prefetch(_AHEAD)
    iterator = tf1.data.make_initializable_iterator(dataset)
    values = iter(iterator.get_next())
    for op in take:
        _stand_in(op, [next(values) for _ in op.outputs])
    return DatasetInitializerHook(iterator)


def _as_call(session: QueueSession, look: tf.Operation) -> None:
    """Lets a replay ask the Session where the program asks about a queue."""
    _stand_in(look, _in_graph(session, look.outputs)())


def _stand_in(op: tf.Operation, values: Sequence[tf.Tensor]) -> None:
    tf1.add_to_collection(STAND_INS, " ".join([op.name, *(value.name for value in values)]))


def _in_graph(session: QueueSession, outputs: Sequence[tf.Tensor]) -> Callable[..., Any]:
    """A function that makes the op that asks the Session for the values of `outputs`."""
    take = session.taker([tensor.name for tensor in outputs])
    types, shapes = [t.dtype for t in outputs], [t.shape for t in outputs]

    def values(*unused: Any) -> tuple[tf.Tensor, ...]:
        del unused
        made = tf1.py_func(take, [], types)
        for value, shape in zip(made, shapes, strict=True):
            value.set_shape(shape)
        return tuple(made)

    return values


def _check(graph: tf.Graph, queues: Queues, runners: Sequence[Any]) -> None:
    """Raises QueueRunnerError if the queues need what is outside of their Session."""
    if others := [type(runner) for runner in runners if type(runner) is not tf1.train.QueueRunner]:
        raise _refused(
            f"is filled by a {others[0].__name__}, whose threads do more than run ops",
            "Use tf.train.QueueRunner",
            runners[0].queue.queue_ref.op,
        )
    if fed := queues.fed():
        raise _refused(
            f"waits for a value that is fed, of the placeholder {fed[0].name}",
            "Let input_fn make it, say with tf.py_func",
            fed[0],
        )
    if of_model := queues.of_model(graph):
        raise _refused(
            f"depends on {of_model[0].name}, a variable of the model",
            "Use the variable after the batch is taken, or make it a local variable",
            queues.user_of(of_model[0]),
        )


def _check_types(taker: tf.Operation, outputs: Sequence[tf.Tensor]) -> None:
    for tensor in outputs:
        if tensor.dtype in (tf.resource, tf.variant):
            raise _refused(
                f"holds values of type {tensor.dtype.name}", "Put tensors into it", taker
            )


def _refused(what: str, instead: str, op: tf.Operation) -> QueueRunnerError:
    return QueueRunnerError(
        f"A queue of input_fn {what}, at {user_line(op.traceback)}\n"
        "  Queues run in a Session of their own, beside the model.\n"
        f"  {instead}; or return a Dataset, see migration_guide/inputs.md."
    )
