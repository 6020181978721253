"""A Session for recorded graphs whose state lives in TF2 variables.

    session = ReplaySession(Replay.of(graph))
    session.run(init_op)
    session.run([train_op, loss], feed_dict={...})

Hooks, Savers, Scaffolds and all else that was written against `tf.Session` work on it unchanged:
each distinct set of fetches becomes a `tf.function` (made once), with the recorded variables as
inputs. A run that includes the op of a step may cover many steps in one call; see `expect`.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.plan.rewrites import SINGLE_REPLICA
from estimator2strategy.engine.replay import splice as splice_lib
from estimator2strategy.engine.replay import uninitialized
from estimator2strategy.engine.replay.batched_predict import batched_predict
from estimator2strategy.engine.replay.engines import Engine, Ran, Request, Step, Stopped, engine_for
from estimator2strategy.engine.replay.fetches import key_of, readable, shown_after
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.replay.run_metadata import traced
from estimator2strategy.engine.replay.state import State
from estimator2strategy.engine.worlds import modern_world


@dataclasses.dataclass(frozen=True)
class _Steps:
    """The steps that a run covers if it includes the op of `step`."""

    step: Step
    count: int


class ReplaySession(_tf_private.SessionInterface):
    """Runs parts of a recorded graph on variables of the TF2 runtime.

    Args:
        replay: The graph and its state.

    Attributes:
        replay: As above.
        ran: The outcome of the last run that was one of steps; None if there was none.
    """

    def __init__(self, replay: Replay):
        self.replay = replay
        self.ran: Ran | None = None
        self._expected: _Steps | None = None
        self._is_kept = False
        self._engines: dict[tuple[Step | None, Request], Engine] = {}
        self._handlers: dict[Any, Any] = {}
        self._writes: dict[tuple[str, ...], list[str]] = {}
        self._shown_after: dict[Request, Collection[str]] = {}
        self._counted: dict[str, tf.Tensor] = {}  # node -> value, until something else runs

    @property
    def recorded(self) -> RecordedGraph:
        return self.replay.recorded

    @property
    def state(self) -> State:
        return self.replay.state

    @property
    def graph(self) -> tf.Graph:
        return self.recorded.graph

    @property
    def sess_str(self) -> str:
        return ""

    def expect(self, step: Step, count: int) -> None:
        """Makes runs that include `step.op`, from now on, cover up to `count` steps each."""
        self._expected = _Steps(step, count)

    def run(self, fetches, feed_dict=None, options=None, run_metadata=None):
        """Same as `tf.compat.v1.Session.run`; of `options`, only `trace_level` has a meaning."""
        with traced(options, run_metadata):
            return self._run(fetches, feed_dict)

    def _run(self, fetches, feed_dict):
        if isinstance(fetches, tf.Tensor) and fetches.graph is self.graph and not feed_dict:
            # How hooks read the global step, block after block.
            self.recorded.refresh()
            variable = self.recorded.variable_read(fetches.name)
            if variable:
                return self._value(variable)
            return self.evaluate([readable(fetches)])[0].numpy()
        feeds = self._feeds(feed_dict or {})
        handler = self._handler(fetches, feeds)
        tensors = list(map(readable, handler.fetches()))
        values = self.evaluate(tensors, handler.targets(), feeds)
        return handler.build_results(self, [value.numpy() for value in values])

    def _handler(self, fetches, feeds) -> Any:
        """Flattens fetches and rebuilds results; kept for fetches that come with every block."""
        key = None if feeds else key_of(fetches)
        if key in self._handlers:
            return self._handlers[key]
        handler = _tf_private.FetchHandler(self.graph, fetches, {t.ref(): v for t, v in feeds})
        if key is not None:
            self._handlers[key] = handler
        return handler

    def _feeds(self, feed_dict) -> list[tuple[tf.Tensor, object]]:
        """Feeds by tensor; a SparseTensor becomes its three parts."""
        feeds: list[tuple[tf.Tensor, object]] = []
        for key, value in feed_dict.items():
            if isinstance(key, tf.SparseTensor):
                feeds += zip((key.indices, key.values, key.dense_shape), value, strict=True)
            else:
                tensor = self.graph.as_graph_element(key, allow_operation=False)
                feeds.append((tensor, np.asarray(value, tensor.dtype.as_numpy_dtype)))
        return feeds

    def evaluate(
        self,
        tensors: Sequence[tf.Tensor],
        ops: Sequence[tf.Operation] = (),
        feeds: Sequence[tuple[tf.Tensor, object]] = (),
    ) -> list[tf.Tensor]:
        """Like `run` for flat fetches, but returns eager tensors (so variants can be fetched)."""
        self.recorded.refresh()
        names = tuple(t.name for t in tensors), tuple(op.name for op in ops)
        request = Request(*names, tuple(t.name for t, _ in feeds))
        with modern_world(), uninitialized.naming_unopened_writers(self.recorded, self.state):
            values = [tf.convert_to_tensor(value, tensor.dtype) for tensor, value in feeds]
            late = self._late(request)
            if not late:
                return self._evaluate(request, values)
            soon = tuple(name for name in request.tensors if name not in late)
            early = iter(self._evaluate(dataclasses.replace(request, tensors=soon), values))
            # They have values: the run that is done has written them.
            return [self._alone(n) if n in late else next(early) for n in request.tensors]

    def _late(self, request: Request) -> Collection[str]:
        """Those tensors of a request that `shown_after` wants read when the rest has run."""
        if not self.recorded.references or self.state.num_replicas > 1:
            return ()
        if self.replay.rewrite is not SINGLE_REPLICA:  # one of several processes
            return ()
        if request not in self._shown_after:
            found = shown_after(self.recorded, request.tensors, request.ops)
            self._shown_after[request] = found
        return self._shown_after[request]

    def _alone(self, tensor: str) -> tf.Tensor:
        variable = self.recorded.variable_read(tensor)
        return self._read(variable) if variable else self._evaluate(Request((tensor,)), ())[0]

    def _evaluate(self, request: Request, feeds: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Runs a request; must be called in the `modern_world`."""
        expected = self._expected
        steps = expected if expected and expected.step.op in request.ops else None
        self._counted = {}
        started = time.perf_counter()
        engine, is_new = self._engine(steps.step if steps else None, request)
        ran = engine.run(steps.count if steps else 1, feeds)
        if not steps:
            if self.state.num_replicas > 1:
                # What the host writes (initial values, a checkpoint, a hook's value) all cores get.
                self.state.broadcast(self._written(request.names))
            return ran.results
        seconds = time.perf_counter() - started
        self.ran = dataclasses.replace(ran, built=is_new, seconds=seconds)
        if ran.stopped is Stopped.END_OF_INPUT:
            raise tf.errors.OutOfRangeError(None, None, "End of sequence")
        if steps.step.counter and ran.counter is not None:
            self._counted = {steps.step.counter: ran.counter}
        return ran.results

    def _engine(self, step: Step | None, request: Request) -> tuple[Engine, bool]:
        """(the engine of a request, True if it was made just now)."""
        key = step, request
        if key in self._engines:
            return self._engines[key], False
        uninitialized.refuse_uninitialized(
            self.recorded, self.state, request.names, request.feeds, step is not None
        )
        if step:
            step.on_build()
        others = tuple(self._engines.values())
        self._engines[key] = engine_for(self.replay, step, request, others)
        return self._engines[key], True

    def function(self, request: Request) -> Any:
        """The ConcreteFunction of a request that is no step, made at the first call.

        Must be called in the `modern_world`.
        """
        engine, _ = self._engine(None, request)
        (function,) = engine.functions
        return function

    def _written(self, names: tuple[str, ...]) -> list[str]:
        """The variables that the host writes in such a run."""
        if names not in self._writes:
            # What is fetched from inside of the cores is made by them, and so is what is behind it.
            inside = splice_lib.leaving(self.replay.splices, self.recorded, names)
            self._writes[names] = self.recorded.variables_written(
                [name for name in names if input_node(name) not in inside],
                lambda edge: input_node(edge) in inside,
            )
        return self._writes[names]

    def batched(self, fetches: Any) -> Callable[[int], tuple[list[Any], Exception | None]] | None:
        """Makes such fetches run for several batches at once; None if they cannot.

        Returns:
            A function of the most batches to work on: see `BatchedPredict.run`, but the values of a
            batch have the structure of `fetches`.
        """
        self.recorded.refresh()
        handler = self._handler(fetches, [])
        if handler.targets() or self.replay.splices:
            return None
        names = [readable(tensor).name for tensor in handler.fetches()]
        with modern_world():
            engine = batched_predict(self.replay, names)
        if engine is None:
            return None

        def run(batches: int) -> tuple[list[Any], Exception | None]:
            with modern_world():
                values, error = engine.run(batches)
            return [handler.build_results(self, of_batch) for of_batch in values], error

        return run

    def value(self, variable: tf.Variable) -> np.ndarray:
        """Value of a recorded variable; quicker than `run`, for once per block."""
        return self._value(variable.handle.op.name)

    def _value(self, node: str) -> np.ndarray:
        with modern_world():
            if node not in self._counted:
                uninitialized.refuse_if_uninitialized(self.state, node)
            return self._read(node).numpy()

    def _read(self, node: str) -> tf.Tensor:
        return self._counted[node] if node in self._counted else self.replay.read(node)

    def as_default(self):
        """A context in which `tensor.eval()` and `op.run()` use this session."""
        return _tf_private.default_session(self)

    def partial_run_setup(self, fetches, feeds=None):
        raise NotImplementedError("partial_run is not supported; call run with all fetches.")

    def partial_run(self, handle, fetches, feed_dict=None):
        raise NotImplementedError("partial_run is not supported; call run with all fetches.")

    def keep(self) -> None:
        """Makes `close` leave the session as new, but for what it has traced already.

        Not on a TPUStrategy, whose programs hold its variables for good.
        """
        self._is_kept = True

    def free(self) -> None:
        """Ends the session for good, also if it was to be kept."""
        self._is_kept = False
        self.close()

    def close(self) -> None:
        """Ends the session; see `keep`."""
        self._counted = {}
        # MonitoredSession closes its session in the recorded graph, and lets no error out.
        with modern_world():
            if not self._is_kept:
                self._engines.clear()
                self.state.close()
                return
            replaced = self.state.renew()
            for engine in self._engines.values():
                for function in engine.functions:
                    _tf_private.rebind(function, replaced)
            for splice in self.replay.splices:
                splice.reset()
