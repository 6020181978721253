"""The queues of a recorded input, in a Session of TensorFlow's that threads fill them for.

    queues = QueueSession(graph, queues_of(graph), runners_of(graph))
    queues.open()
    take = queues.taker(["batch:0", "batch:1"])
    take()          # the values; the first call starts the Session and the threads
    queues.close()  # ends the threads

A queue ends as in TF 1.15: `take` raises StopIteration. It begins anew when it is opened again.
"""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy.engine import patches
from estimator2strategy.engine.plan.edges import labels_in
from estimator2strategy.engine.plan.queues import Queues
from estimator2strategy.engine.replay.failed_input import line_in_python
from estimator2strategy.engine.user_code import user_line

tf1 = tf.compat.v1

# Seconds in which the threads of queues must end; one may be in a Python function of the program.
_GRACE = 10.0

_ON_CPUS = tf1.ConfigProto(device_count={"GPU": 0}, allow_soft_placement=True)


class QueueSession:
    """A copy of the ops that fill queues and take from them, alive from `open` to `close`.

    Args:
        graph: The recorded graph. It is kept: the callbacks of its `tf.py_func` die with it.
        queues: The queues in it.
        runners: What fills them.

    Attributes:
        failure: The error with which a thread or a `take` has failed, with the user's line; None
            if there was none.
    """

    def __init__(self, graph: tf.Graph, queues: Queues, runners: Sequence[tf1.train.QueueRunner]):
        self._recorded = graph
        self._starts = [op.name for op in queues.starts]
        self._graph = _copied(graph, queues)
        with self._graph.as_default():
            self._runners = [
                tf1.train.QueueRunner(queue_runner_def=runner.to_proto()) for runner in runners
            ]
        self._graph.finalize()
        self._lock = threading.Lock()
        self._running: _Running | None = None
        self._is_open = False
        self.failure: Exception | None = None

    def open(self) -> None:
        """Lets the queues be filled from the start, as soon as somebody takes from them."""
        self.close()
        self.failure = None
        self._is_open = True
        _open.add(self)

    def close(self) -> None:
        """Ends the threads and the Session; who waits for a queue is told that it has ended."""
        with self._lock:
            self._is_open = False
            running, self._running = self._running, None
        if running:
            running.stop()
        _open.discard(self)

    def taker(self, tensors: Sequence[str]) -> Callable[..., list[np.ndarray]]:
        """A function, of arguments that do not matter, that gives the next values of `tensors`.

        It raises StopIteration when a queue has ended, or when something fails: see `failure`.
        """
        names = tuple(tensors)

        def take(*unused: Any) -> list[np.ndarray]:
            del unused
            running = self._started()
            try:
                return running.call(names)
            except tf.errors.OpError as error:
                self._note(running, error)
                raise StopIteration from None

        return take

    def _started(self) -> _Running:
        with self._lock:
            if not self._is_open:
                raise StopIteration
            if self._running is None:
                try:
                    self._running = _Running(self._graph, self._starts, self._runners)
                except tf.errors.OpError as error:
                    self.failure = self._named(error)
                    raise StopIteration from None
            return self._running

    def _note(self, running: _Running, error: tf.errors.OpError) -> None:
        """Notes why nothing can be taken: the first error of all, unless a queue has ended."""
        first = running.first_error() or error
        # A queue that is closed for another reason has ended for those who wait for it.
        if self._is_open and not isinstance(first, tf.errors.OutOfRangeError):
            self.failure = self._named(first)

    def _named(self, error: Exception) -> Exception:
        """The error, with the user's line of the op that failed."""
        if not isinstance(error, tf.errors.OpError):
            return error
        ops = {op.name: op for op in self._recorded.get_operations()}
        labels = labels_in(error.message, failed=True)
        op = next((ops[label] for label in labels if label in ops), None)
        line = line_in_python(error.message) or (user_line(op.traceback) if op else "unknown line")
        text = f"{error.message}\n  At {line}\n  In the queues of input_fn."
        named: Exception = type(error)(op and op.node_def, op, text)
        return named


class _Running:
    """The Session, and the threads that fill its queues."""

    def __init__(
        self, graph: tf.Graph, starts: Sequence[str], runners: Sequence[tf1.train.QueueRunner]
    ):
        self._session = tf1.Session(graph=graph, config=_ON_CPUS)
        self._session.run([graph.get_operation_by_name(name) for name in starts])
        self._coordinator = tf1.train.Coordinator()
        self._calls: dict[tuple[str, ...], Callable[[], list[np.ndarray]]] = {}
        self._threads = [
            thread
            for runner in runners
            for thread in runner.create_threads(
                self._session, self._coordinator, daemon=True, start=True
            )
        ]

    def call(self, tensors: tuple[str, ...]) -> list[np.ndarray]:
        """The values of tensors, in one run."""
        if tensors not in self._calls:
            graph = self._session.graph
            fetches = [graph.get_tensor_by_name(name) for name in tensors]
            self._calls[tensors] = self._session.make_callable(fetches)
        return self._calls[tensors]()

    def first_error(self) -> Exception | None:
        """The error that ended the first thread that did not end by itself."""
        try:
            self._coordinator.raise_requested_exception()
        except Exception as error:
            return error
        return None

    def stop(self) -> None:
        """Ends the threads, whatever they wait for, and the Session."""
        self._coordinator.request_stop()
        deadline = time.monotonic() + _GRACE
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._session.close()  # wakes who still waits


def _copied(graph: tf.Graph, queues: Queues) -> tf.Graph:
    """A graph of the ops of the queues alone."""
    names = {op.name for op in queues.ops}
    graph_def = graph.as_graph_def()
    kept = [node for node in graph_def.node if node.name in names]
    for node in kept:
        node.device = ""
        node.attr.pop("_class", None)  # it may name an op that is not here
    nodes = tf1.GraphDef(library=graph_def.library, versions=graph_def.versions, node=kept)
    with tf.Graph().as_default() as copy:
        tf.graph_util.import_graph_def(nodes, name="")
    return copy


_open: weakref.WeakSet[QueueSession] = weakref.WeakSet()


patches.noted("queues at exit")


@atexit.register
def _close_all() -> None:
    """Ends the threads of predictions that nobody finished: Python waits for none of them."""
    for queues in list(_open):
        queues.close()
