"""A Session for recorded graphs whose state lives in TF2 variables.

    session = ReplaySession(graph)
    session.run(init_op)
    session.run([train_op, loss], feed_dict={...})

Hooks, Savers, Scaffolds and all else that was written against `tf.Session` work on it unchanged:
each distinct set of fetches becomes a `tf.function` (made once), with the recorded variables as
inputs. A run that includes the op of a step may cover many steps in one call; see `expect`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay import uninitialized
from estimator2strategy.engine.replay.engines import Ran, Request, Step, Stopped
from estimator2strategy.engine.replay.failed_op import named_failure, naming_failures
from estimator2strategy.engine.replay.fetches import Fetches, readable
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.replay.run_metadata import traced
from estimator2strategy.engine.replay.runs import Runs
from estimator2strategy.engine.replay.state import State
from estimator2strategy.engine.replay.uninitialized import explaining_no_room
from estimator2strategy.engine.worlds import modern_world


class _Expected(NamedTuple):
    """The steps of runs that include `step.op`; see `ReplaySession.expect`."""

    step: Step
    steps: int
    on_build: Callable[[], None]


class ReplaySession(_tf_private.SessionInterface):
    """Runs parts of a recorded graph on variables of the TF2 runtime.

    Args:
        graph: The graph whose tensors and ops are fetched.
        runs: Requests on a recording of that graph, or of one that is the same; see
            `plan.fingerprint`. None: on one of `graph`, with state of its own.

    Attributes:
        runs: As above.
        ran: The outcome of the last run that was one of steps; None if there was none.
    """

    def __init__(self, graph: tf.Graph, runs: Runs | None = None):
        self._graph = graph
        self.runs = runs or Runs(Replay.of_graph(graph))
        self.ran: Ran | None = None
        self._expected: _Expected | None = None
        self._put: Callable[[Runs], None] | None = None
        self._fetches = Fetches(graph)
        self._counted: dict[str, tf.Tensor] = {}  # node -> value, until something else runs

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """The class of TensorFlow's sessions: hooks ask `isinstance(session, tf.Session)`."""
        session: type = tf.compat.v1.Session
        return session

    @property
    def graph(self) -> tf.Graph:
        return self._graph

    @property
    def graph_def(self) -> tf.compat.v1.GraphDef:
        """The graph, serialized."""
        return self._graph.as_graph_def()

    @property
    def replay(self) -> Replay:
        return self.runs.replay

    @property
    def recorded(self) -> RecordedGraph:
        return self.replay.recorded

    @property
    def state(self) -> State:
        return self.replay.state

    @property
    def sess_str(self) -> str:
        return ""

    def expect(self, step: Step, steps: int, on_build: Callable[[], None] = lambda: None) -> None:
        """Makes runs that include `step.op`, from now on, cover up to `steps` steps each.

        Args:
            on_build: Called before a program is built for them, which can take a while.
        """
        self._expected = _Expected(step, steps, on_build)

    def run(
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """Same as `tf.compat.v1.Session.run`; of `options`, only `trace_level` has a meaning."""
        with traced(options, run_metadata):
            if isinstance(fetches, tf.Tensor) and fetches.graph is self.graph and not feed_dict:
                return self._run_one(fetches)
            feeds = self._fetches.feeds(feed_dict or {})
            handler = self._fetches.handler(fetches, feeds)
            tensors = list(map(readable, handler.fetches()))
            values = self.evaluate(tensors, handler.targets(), feeds)
            return handler.build_results(self, [value.numpy() for value in values])

    def make_callable(
        self, fetches: Any, feed_list: Sequence[Any] | None = None, accept_options: bool = False
    ) -> Callable[..., Any]:
        """A function of values for `feed_list` that runs `fetches`; as of a Session."""
        del accept_options  # the function takes them in any case

        def call(*values: Any, **options: Any) -> Any:
            feeds = zip(feed_list or (), values, strict=False)
            return self.run(fetches, dict(feeds), **options)

        return call

    def list_devices(self) -> list[tf.config.LogicalDevice]:
        """The devices of this process."""
        devices: list[tf.config.LogicalDevice] = tf.config.list_logical_devices()
        return devices

    def _run_one(self, tensor: tf.Tensor) -> np.ndarray:
        """Reads one tensor: hooks read the global step so, block after block."""
        self.recorded.refresh()
        variable = self.replay.variable_read(tensor.name)
        return self._value(variable) if variable else self.evaluate([readable(tensor)])[0].numpy()

    def evaluate(
        self,
        tensors: Sequence[tf.Tensor],
        ops: Sequence[tf.Operation] = (),
        feeds: Sequence[tuple[tf.Tensor, object]] = (),
    ) -> list[tf.Tensor]:
        """Like `run` for flat fetches, but returns eager tensors (so variants can be fetched)."""
        self.recorded.refresh()
        names = tuple(t.name for t in tensors)
        fed = tuple(t.name for t, _ in feeds)
        request = Request(names, tuple(op.name for op in ops), fed)
        with modern_world():
            values = [tf.convert_to_tensor(value, tensor.dtype) for tensor, value in feeds]
            try:
                return self._evaluate_early_and_late(request, values)
            except tf.errors.OpError:
                with (
                    uninitialized.naming_unopened_writers(self.recorded, self.state),
                    explaining_no_room(),
                    naming_failures(self.recorded, self._graph),
                ):
                    raise

    def _evaluate_early_and_late(
        self, request: Request, feeds: Sequence[tf.Tensor]
    ) -> list[tf.Tensor]:
        late = self.runs.late(request)
        if not late:
            return self._evaluate(request, feeds)
        soon = tuple(name for name in request.tensors if name not in late)
        early = iter(self._evaluate(request._replace(tensors=soon), feeds))
        # They have values: the run that is done has written them.
        return [self._alone(name) if name in late else next(early) for name in request.tensors]

    def _alone(self, tensor: str) -> tf.Tensor:
        variable = self.replay.variable_read(tensor)
        if variable is None:
            return self._evaluate(Request((tensor,)), ())[0]
        return self._counted[variable] if variable in self._counted else self.replay.read(variable)

    def _evaluate(self, request: Request, feeds: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        self._counted = {}
        expected = self._expected
        if expected is None or expected.step.op not in request.ops:
            return self.runs.run(None, request, 1, feeds).results
        ran = self.runs.run(expected.step, request, expected.steps, feeds, expected.on_build)
        self.ran = ran
        if ran.stopped is Stopped.END_OF_INPUT:
            raise tf.errors.OutOfRangeError(None, None, "End of sequence")
        if expected.step.counter and ran.counter is not None:
            self._counted = {expected.step.counter: ran.counter}
        return ran.results

    def batched(self, fetches: Any) -> Callable[[int], tuple[list[Any], Exception | None]] | None:
        """Makes such fetches run for several batches at once; None if they cannot.

        Returns:
            A function of the most batches to work on: see `BatchedPredict.run`, but the values of a
            batch have the structure of `fetches`.
        """
        self.recorded.refresh()
        handler = self._fetches.handler(fetches)
        if handler.targets():
            return None
        with modern_world():
            engine = self.runs.predicting(_names(handler))
        if engine is None:
            return None

        def run(batches: int) -> tuple[list[Any], Exception | None]:
            with modern_world():
                values, error = engine.run(batches)
            error = error and named_failure(self.recorded, self._graph, error)
            return [handler.build_results(self, of_batch) for of_batch in values], error

        return run

    def has_batched(self, fetches: Any) -> bool:
        """True if `batched` has nothing to build: an earlier session of the same graph did."""
        handler = self._fetches.handler(fetches)
        return not handler.targets() and self.runs.is_predicting(_names(handler))

    def value(self, variable: tf.Variable) -> np.ndarray:
        """Value of a recorded variable; quicker than `run`, for once per block."""
        return self._value(variable.handle.op.name)

    def _value(self, node: str) -> np.ndarray:
        value: np.ndarray
        if node in self._counted:
            value = self._counted[node].numpy()
            return value
        with modern_world():
            uninitialized.refuse_if_uninitialized(self.state, node)
            value = self.replay.read(node).numpy()
            return value

    def as_default(self) -> AbstractContextManager[Any]:
        """A context in which `tensor.eval()` and `op.run()` use this session."""
        context: AbstractContextManager[Any] = _tf_private.default_session(self)
        return context

    def partial_run_setup(self, fetches: Any, feeds: Any = None) -> Any:
        raise NotImplementedError("partial_run is not supported; call run with all fetches.")

    def partial_run(self, handle: Any, fetches: Any, feed_dict: Any = None) -> Any:
        raise NotImplementedError("partial_run is not supported; call run with all fetches.")

    def keep(self, put: Callable[[Runs], None]) -> None:
        """Makes `close` retire the runs, and hand them to `put`, where it would free them."""
        self._put = put

    def close(self) -> None:
        """Ends the session."""
        self._counted = {}
        # MonitoredSession closes its session in the recorded graph, and lets no error out.
        with modern_world():
            if self._put is None:
                self.runs.close()
                return
            self.runs.retire()
            self._put(self.runs)


def _names(handler: Any) -> tuple[str, ...]:
    """The tensors of fetches, as far as they can be read."""
    return tuple(readable(tensor).name for tensor in handler.fetches())
