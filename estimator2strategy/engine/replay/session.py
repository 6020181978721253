"""A Session for recorded graphs whose state lives in TF2 variables.

    session = ReplaySession(RecordedGraph(graph))
    session.run(init_op)
    session.run([train_op, loss], feed_dict={...})

Hooks, Savers, Scaffolds and whatever else was written against `tf.Session` work on it unchanged:
each distinct set of fetches becomes a `tf.function` (made once), with the recorded variables as
inputs. A run that includes the session's `step` op may cover many steps in one call.
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
from estimator2strategy.engine.replay.batched_predict import ahead_of
from estimator2strategy.engine.replay.compiled import CompiledSteps, Program, replay_compiled
from estimator2strategy.engine.replay.fetches import key_of, readable, shown_after
from estimator2strategy.engine.replay.importer import GraphImporter
from estimator2strategy.engine.replay.initial_values import shapes_to_give
from estimator2strategy.engine.replay.loop import block_of, is_nan
from estimator2strategy.engine.replay.next_batch import Draw, only_draw
from estimator2strategy.engine.replay.pipelined import block_in_halves
from estimator2strategy.engine.replay.run_metadata import traced
from estimator2strategy.engine.replay.splice import Splice
from estimator2strategy.engine.replay.state import State
from estimator2strategy.engine.worlds import modern_world


@dataclasses.dataclass(frozen=True)
class Step:
    """What counts as one step of a session.

    Attributes:
        op: Name of the op that runs once a step.
        healthy: Name of a scalar (the loss); a block of steps ends early when it is NaN, so that
            hooks see the very step that went wrong. None: never.
        may_end: Whether the input may end in the middle of a block. Its results are lost then, so
            the loss is kept aside at every step; see `ReplaySession.watched`.
        counter: Node of the variable that is read after each block (the global step), which then
            comes with the block's results: a read of its own costs as much as a small step.
        in_halves: Whether a step may begin while the one before is still at work; see
            `replay.pipelined`. Not with `healthy` or `counter`.
        compiled: Whether XLA compiles what lies between the host's ops; see `replay.compiled`. It
            is an error if it cannot.
    """

    op: str
    healthy: str | None = None
    may_end: bool = True
    counter: str | None = None
    in_halves: bool = False
    compiled: bool = False


class ReplaySession(_tf_private.SessionInterface):
    """Runs parts of a recorded graph on variables of the TF2 runtime.

    Attributes:
        step: What one step is; see `Step`. None: no run covers more than one.
        steps_ahead: How many steps the next run that includes `step.op` executes.
        steps_run: How many steps the last such run did execute.
        rewrite: How nodes change where they are not part of a splice.
        in_step: Whether each run is one step, outside of any loop. Other processes meet this one
            within the step, and tell its collectives apart by where in a loop they are.
        draw_together: With `in_step`: `draw_together(draw)` gives a function that returns this
            process's next batch if all processes have one. None: each draws for itself.
        on_build: Called before a new program is built, which can take a while.
        step_in_block: While a step is traced that a block repeats: its number in the block, from 0.
        host_uses: While a step is traced: the variables that the host's part of it uses.
        spent: Seconds in blocks of steps: those for which a program was built, and the others.
        measures_input: Whether programs that are built measure how long they wait for batches.
        reusable: Whether `close` leaves a session with fresh state; not on a TPUStrategy.
    """

    def __init__(self, recorded: RecordedGraph, state: State | None = None):
        self.recorded = recorded
        self.state = state or State(recorded)
        self.splices: list[Splice] = []
        self.step: Step | None = None
        self.steps_ahead = 1
        self.steps_run = 0
        self.rewrite = SINGLE_REPLICA
        self.in_step = False
        self.draw_together: Callable[[Draw], Callable[[], list[tf.Tensor]]] | None = None
        self.on_build: Callable[[], None] = lambda: None
        self.step_in_block: tf.Tensor | None = None
        self.host_uses: Collection[str] = ()
        self.spent = (0.0, 0.0)
        self.measures_input = False
        self.reusable = False
        self._draws: dict[tuple, Any] = {}
        self._waited: Any = None  # a variable, once something is measured
        self._ran: set[tuple] = set()
        self._counted: dict[str, tf.Tensor] = {}  # node -> value, until something else runs
        self._functions: dict[tuple, Callable] = {}
        self._handlers: dict[Any, Any] = {}
        self._writes: dict[tuple[str, ...], list[str]] = {}
        self._shown_after: dict[tuple, Collection[str]] = {}
        self._compiled = CompiledSteps(self)
        self._watched: Any = None  # a variable, once something is watched
        self._last_watched: Any = None

    @property
    def graph(self) -> tf.Graph:
        return self.recorded.graph

    @property
    def sess_str(self) -> str:
        return ""

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

    def evaluate(
        self,
        tensors: Sequence[tf.Tensor],
        ops: Sequence[tf.Operation] = (),
        feeds: Sequence[tuple[tf.Tensor, object]] = (),
    ) -> list[tf.Tensor]:
        """Like `run` for flat fetches, but returns eager tensors (so variants can be fetched)."""
        self.recorded.refresh()
        with modern_world(), uninitialized.naming_unopened_writers(self.recorded, self.state):
            if self.recorded.references and self.state.num_replicas == 1 and not self.in_step:
                return self._evaluate_with_references(tensors, ops, feeds)
            return self._evaluate(tensors, ops, feeds)

    def _evaluate_with_references(self, tensors, ops, feeds) -> list[tf.Tensor]:
        """Like `_evaluate`; what `shown_after` names is read when the rest has run."""
        key = tuple(t.name for t in tensors), tuple(op.name for op in ops)
        if key not in self._shown_after:
            self._shown_after[key] = shown_after(self.recorded, *key)
        late = self._shown_after[key]
        if not late:
            return self._evaluate(tensors, ops, feeds)
        values = iter(self._evaluate([t for t in tensors if t.name not in late], ops, feeds))
        return [self._alone(t) if t.name in late else next(values) for t in tensors]

    def _alone(self, tensor) -> tf.Tensor:
        variable = self.recorded.variable_read(tensor.name)
        # It has a value: the run that is done has written it.
        return self.read(variable) if variable else self._evaluate([tensor], (), ())[0]

    def _evaluate(self, tensors, ops, feeds) -> list[tf.Tensor]:
        tensor_names = tuple(t.name for t in tensors)
        op_names = tuple(op.name for op in ops)
        feed_names = tuple(t.name for t, _ in feeds)
        values = [tf.convert_to_tensor(value, tensor.dtype) for tensor, value in feeds]
        names, is_step = tensor_names + op_names, self._steps(op_names)
        self._counted = {}
        if (names, feed_names) not in self._ran:
            uninitialized.refuse_uninitialized(
                self.recorded, self.state, names, feed_names, is_step
            )
            self._ran.add((names, feed_names))
        if is_step:
            started, programs = time.perf_counter(), len(self._functions)
            self.steps_run, results = self._block(tensor_names, op_names, feed_names, values)
            elapsed = time.perf_counter() - started
            built = len(self._functions) > programs
            building, steps = self.spent
            self.spent = (building + elapsed, steps) if built else (building, steps + elapsed)
            return results
        results = self.traced(tensor_names, op_names, feed_names)(*values)
        if self.state.num_replicas > 1:
            # What the host writes (initial values, a checkpoint, a hook's value) all cores get.
            self.state.broadcast(self._written(names))
        return results

    def _block(self, tensors, ops, feeds, values) -> tuple[int, list[tf.Tensor]]:
        """Runs `steps_ahead` steps; returns how many it did and the values of the last."""
        if self.in_step:
            names, batch = self._batch_of_all(tensors, ops)
            results = self.once(tensors, ops, (*feeds, *names))(*values, *batch)
            if (loss := self._loss_in(tensors, results)) is not None:
                self._last_watched = loss.numpy()
            return 1, results
        assert self.step
        compiled = self.step.compiled and not feeds
        programs = self._compiled.of(tensors, ops) if compiled else ()
        function = self.traced(tensors, ops, feeds, programs)
        count, *results = function(tf.constant(self.steps_ahead), *values)
        done = int(count)
        if self.step.counter:
            self._counted = {self.step.counter: results.pop(0)}
        if done < self.steps_ahead and not self._became_nan(tensors, results):
            raise tf.errors.OutOfRangeError(None, None, "End of sequence")
        return done, results

    def _became_nan(self, tensors: tuple[str, ...], results: Sequence[tf.Tensor]) -> bool:
        loss = self._loss_in(tensors, results)
        return loss is not None and bool(is_nan(loss))

    def _loss_in(self, tensors: tuple[str, ...], results: Sequence[tf.Tensor]) -> tf.Tensor | None:
        healthy = self.step.healthy if self.step else None
        return results[tensors.index(healthy)] if healthy in tensors else None

    def _batch_of_all(self, tensors, ops) -> tuple[tuple[str, ...], list[tf.Tensor]]:
        """The next batch, with the names of its tensors, where all processes draw together."""
        if self.draw_together is None:
            return (), []
        key = (tensors, ops)
        if key not in self._draws:
            draw = only_draw(self, [*map(input_node, tensors), *ops])
            self._draws[key] = draw and (draw.outputs, self.draw_together(draw))
        names, next_batch = self._draws[key] or ((), list)
        return names, next_batch()

    def watched_variable(self, tensors: Sequence[str]) -> Any:
        """Where `step.healthy` is kept aside, if it is one of `tensors` and the input may end."""
        step = self.step
        if step is None or step.healthy is None or step.healthy not in tensors:
            return None
        if not step.may_end:
            return None
        if self._watched is None:
            spec = self.spec(step.healthy)
            self._watched = _tf_private.UninitializedVariable(shape=spec.shape, dtype=spec.dtype)
        return self._watched

    def _written(self, names: tuple[str, ...]) -> list[str]:
        """The variables that the host writes in such a run."""
        if names not in self._writes:
            # What is fetched from inside of the cores is made by them, and so is what is behind it.
            inside = splice_lib.leaving(self.splices, self.recorded, names)
            self._writes[names] = self.recorded.variables_written(
                [name for name in names if input_node(name) not in inside],
                lambda edge: input_node(edge) in inside,
            )
        return self._writes[names]

    def ahead(self, fetches: Any) -> Callable[[int], tuple[list[Any], Exception | None]] | None:
        """How such fetches run for several batches at once; None if they cannot.

        Returns:
            A function of the most batches to work on: see `Ahead.run`, but the values of a batch
            have the structure of `fetches`.
        """
        self.recorded.refresh()
        handler = self._handler(fetches, [])
        if handler.targets() or self.splices:
            return None
        names = [readable(tensor).name for tensor in handler.fetches()]
        with modern_world():
            ahead = ahead_of(self, names)
        if ahead is None:
            return None

        def run(batches: int) -> tuple[list[Any], Exception | None]:
            with modern_world():
                values, error = ahead.run(batches)
            return [handler.build_results(self, of_batch) for of_batch in values], error

        return run

    def value(self, variable: tf.Variable) -> np.ndarray:
        """Value of a recorded variable; quicker than `run`, for once per block."""
        return self._value(variable.handle.op.name)

    def _value(self, node: str) -> np.ndarray:
        with modern_world():
            if node not in self._counted:
                uninitialized.refuse_if_uninitialized(self.state, node)
            return self.read(node).numpy()

    def read(self, node: str) -> tf.Tensor:
        """Value of a variable that has one."""
        if node in self._counted:
            return self._counted[node]
        variable = self.state.variable(node)
        # A tf.Variable adds an Identity to each read.
        return tf.raw_ops.ReadVariableOp(resource=variable.handle, dtype=variable.dtype)

    def watched(self) -> Any:
        """Value (numpy) of `step.healthy` at the last step that ran; None if none did.

        Right also where the input ended in the middle of a block, whose results are then lost.
        """
        if self.in_step:
            return self._last_watched
        with modern_world():
            variable = self._watched
            if variable is None or not tf.raw_ops.VarIsInitializedOp(resource=variable.handle):
                return None
            return variable.numpy()

    def traced(
        self,
        tensors: tuple[str, ...],
        ops: tuple[str, ...] = (),
        feeds: tuple[str, ...] = (),
        programs: tuple[Program, ...] = (),
    ) -> Any:
        """The function that such a run calls, traced at the first call.

        Must be called in the `modern_world`.

        Args:
            tensors: Names of the tensors that it returns.
            ops: Names of the ops that it runs.
            feeds: Names of the tensors that it is given.
            programs: What XLA has compiled of a step.

        Returns:
            A ConcreteFunction of the feeds. With `step.op` among `ops` its first argument is the
            number of steps, and its first result how many of them it did; `step.counter` is the
            second.
        """
        build = self._block_of_steps if self._steps(ops) else self._straight
        return self._built(build, tensors, ops, feeds, programs)

    def once(
        self, tensors: tuple[str, ...], ops: tuple[str, ...] = (), feeds: tuple[str, ...] = ()
    ) -> Any:
        """Like `traced`, for one step also where `step.op` is among `ops`."""
        return self._built(self._straight, tensors, ops, feeds)

    def _built(self, build, tensors, ops, feeds, programs=()) -> Any:
        key = (build.__name__, tensors, ops, feeds, programs)
        if key not in self._functions:
            self.on_build()
            self._functions[key] = build(tensors, ops, feeds, programs)
        return self._functions[key]

    def _steps(self, ops: tuple[str, ...]) -> bool:
        return self.step is not None and self.step.op in ops

    def _straight(self, tensors, ops, feeds, programs) -> Callable:
        """A function of the feeds that runs once."""

        @tf.function(autograph=False, input_signature=[self.spec(name) for name in feeds])
        def straight(*values):
            return self.trace(tensors, ops, dict(zip(feeds, values, strict=True)), programs)

        return straight.get_concrete_function()

    def _block_of_steps(self, tensors, ops, feeds, programs) -> Callable:
        assert self.step
        halved = block_in_halves(self, tensors, ops) if self.step.in_halves and not feeds else None
        return halved or block_of(self, tensors, ops, feeds, programs)

    def add_waited(self, seconds: tf.Tensor) -> None:
        """Counts seconds that a step has waited for its batch, where that is traced."""
        if self._waited is None:
            with tf.init_scope(), tf.device("/CPU:0"):
                self._waited = tf.Variable(0.0, dtype=tf.float64, trainable=False)
        self._waited.assign_add(seconds, read_value=False)

    def waited(self) -> float | None:
        """Seconds that steps have waited for batches; None where it was not measured."""
        with modern_world():
            return None if self._waited is None else float(self._waited.read_value())

    def trace(self, tensors, ops, feeds, programs=(), ran=()) -> list[tf.Tensor]:
        """Replays `tensors` and `ops` once, in the function that is being traced.

        Args:
            ran: Ops that have run already.
        """
        roots = {*map(input_node, tensors), *ops}
        fed = set(map(input_node, feeds))
        importer = GraphImporter(
            self.recorded,
            self.state.handle,
            feeds,
            self.rewrite,
            streams=self.state.random_streams(),
        )
        importer.supply({}, ran, ())
        if not self._steps(ops):
            importer.supply(shapes_to_give(self.recorded, roots), (), ())
        if programs:
            return replay_compiled(importer, self.recorded, programs, tensors, ops)
        splices = splice_lib.exposing(self.splices, self.recorded, tensors, ops)
        splices = splice_lib.needed(splices, self.recorded, roots, fed)
        return splice_lib.replay(self, importer, splices, tensors, ops)

    def spec(self, name: str) -> tf.TensorSpec:
        """Shape and dtype of a recorded tensor."""
        tensor = self.graph.get_tensor_by_name(name)
        return tf.TensorSpec(tf.TensorShape(tensor.shape.as_proto()), tensor.dtype)

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

    def as_default(self):
        """A context in which `tensor.eval()` and `op.run()` use this session."""
        return _tf_private.default_session(self)

    def partial_run_setup(self, fetches, feeds=None):
        raise NotImplementedError("partial_run is not supported; call run with all fetches.")

    def partial_run(self, handle, fetches, feed_dict=None):
        raise NotImplementedError("partial_run is not supported; call run with all fetches.")

    def close(self) -> None:
        """Ends the session. A reusable one is then as new, but for what it has traced already."""
        self._counted = {}
        # MonitoredSession closes its session in the recorded graph, and lets no error out.
        with modern_world():
            if self.reusable:
                self._renew()
            else:
                self._functions.clear()
                self._compiled.clear()
                self.state.close()

    def _renew(self) -> None:
        replaced = self.state.renew()
        for function in self._functions.values():
            _tf_private.rebind(function, replaced)
        for splice in self.splices:
            splice.reset()
