"""Requests on a Replay: the engine of each, and what must happen before and after it runs."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.rewrites import SINGLE_REPLICA
from estimator2strategy.engine.replay import freed_memory, uninitialized
from estimator2strategy.engine.replay import splice as splice_lib
from estimator2strategy.engine.replay.batched_predict import batched_predict
from estimator2strategy.engine.replay.engines import (
    Engine,
    How,
    Ran,
    Request,
    Step,
    engine_for,
)
from estimator2strategy.engine.replay.fetches import shown_after
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.replay.state import Retired
from estimator2strategy.engine.worlds import apart_from_graphs


@dataclasses.dataclass
class AloneCosts:
    """The cost of the steps that ran one by one.

    Attributes:
        building: The seconds of processor time that the slowest program of one step took to build,
            with its first run; 0: none was built. It is one thread's work, and too long not to be
            disturbed on a busy machine.
        step: The seconds of a step in the quickest run of a program that was there: others were
            disturbed, or waited for a batch.
        steps: The number of steps in such runs.
        earlier: As many of them were steps of earlier calls.
    """

    building: float = 0.0
    step: float = math.inf
    steps: int = 0
    earlier: int = 0

    def note(self, ran: Ran, worked: float) -> None:
        """Adds a run, which took `worked` seconds of processor time."""
        if ran.built:
            self.building = max(self.building, worked)
        elif ran.steps:
            self.step = min(self.step, ran.seconds / ran.steps)
            self.steps += ran.steps


class Runs:
    """Runs requests, each on an engine that is made at its first run.

    All methods must be called in the `modern_world`.

    Args:
        replay: The graph and its state.

    Attributes:
        replay: As above.
        alone: The costs of the steps that ran one by one, before `retire` too; and of batches that
            were predicted so, which are noted from outside.
    """

    def __init__(self, replay: Replay):
        self.replay = replay
        self._engines: dict[tuple[Step | None, Request], Engine] = {}
        self._predicting: dict[tuple[str, ...], Any] = {}  # a BatchedPredict, or the like
        self._written: dict[tuple[str, ...], list[str]] = {}
        self._late: dict[Request, Collection[str]] = {}
        self._read: dict[tuple[Step | None, Request], list[str]] = {}
        # The engines whose variables have values.
        self._ready: dict[tuple[Step | None, Request], Engine] = {}
        self._retired: Retired | None = None
        self.alone = AloneCosts()

    def run(
        self,
        step: Step | None,
        request: Request,
        steps: int,
        feeds: Sequence[tf.Tensor],
        on_build: Callable[[], None] = lambda: None,
    ) -> Ran:
        """Runs a request.

        Args:
            step: The definition of a step; None: the request is none.
            steps: How many steps to run at most.
            feeds: A value for each of the request's feeds.
            on_build: Called before a program is built, which can take a while.
        """
        started, worked = time.perf_counter(), time.process_time()
        key = step, request
        engine = self._ready.get(key)
        is_new = engine is None and key not in self._engines
        if engine is None:
            self._check(key)
            if is_new:
                on_build()
            engine = self._ready[key] = self._engine(key)
        with self._values_there(request, engine):
            ran = engine.run(steps, feeds)
        if self.replay.state.num_replicas > 1:
            # All cores get the host's writes: initial values, a checkpoint, a hook's value.
            self.replay.state.broadcast(self._written_by(request.names))
        ran = ran._replace(built=is_new, seconds=time.perf_counter() - started)
        if is_new and ran.seconds > freed_memory.LONG:
            freed_memory.give_back()
        if step is not None and step.how is How.ONE_BY_ONE:
            self.alone.note(ran, time.process_time() - worked)
        return ran

    def function(self, request: Request) -> Any:
        """The ConcreteFunction of a request that is no step."""
        (function,) = self.functions(None, request)
        return function

    def functions(self, step: Step | None, request: Request) -> tuple[Any, ...]:
        """The ConcreteFunctions of the engine that runs a request; see `Engine`."""
        engine = self._engine((step, request))
        with self._values_there(request, engine):
            return engine.functions

    @contextlib.contextmanager
    def _values_there(self, request: Request, engine: Engine) -> Iterator[None]:
        """Gives the host the values that a device has, for a run of the host's."""
        device, recorded = self.replay.device, self.replay.recorded
        if device is None or engine.on_device:
            yield
            return
        names = [*map(input_node, request.tensors), *request.ops]
        device.to_host(recorded.variables_behind(names))
        yield
        device.forget(recorded.variables_written(names))

    def give_back(self) -> None:
        """Gives the host the values that devices of JAX have: others share its variables."""
        if self.replay.device is not None:
            self.replay.device.give_back()

    @property
    def has_loop(self) -> bool:
        """True if an engine is there that runs many steps in one call."""
        ways = {step.how for step, _ in self._engines if step}
        return not ways <= {How.ONE_BY_ONE, How.TOGETHER}

    def predicting(self, tensors: tuple[str, ...]) -> Any:
        """Computes `tensors` for several batches at once; None if they cannot be."""
        if self.replay.splices:
            return None
        if tensors not in self._predicting:
            with apart_from_graphs():
                self._predicting[tensors] = batched_predict(self.replay, tensors)
        return self._predicting[tensors]

    def is_predicting(self, tensors: tuple[str, ...]) -> bool:
        """True if `predicting` has built what computes them."""
        return self._predicting.get(tensors) is not None

    def late(self, request: Request) -> Collection[str]:
        """The tensors of a request that are read when the rest has run; see `shown_after`."""
        replay = self.replay
        if not replay.recorded.references or replay.state.num_replicas > 1:
            return ()
        if replay.rewrite is not SINGLE_REPLICA:  # one of several processes
            return ()
        if request not in self._late:
            self._late[request] = shown_after(replay.recorded, request.tensors, request.ops)
        return self._late[request]

    def _check(self, key: tuple[Step | None, Request]) -> None:
        """Refuses to read what has no value."""
        if key not in self._read:
            step, request = key
            self._read[key] = uninitialized.read_at_once(
                self.replay.recorded, request.names, request.feeds, is_step=step is not None
            )
        for node in self._read[key]:
            uninitialized.refuse_if_uninitialized(self.replay.state, node)

    def _engine(self, key: tuple[Step | None, Request]) -> Engine:
        if key not in self._engines:
            others = tuple(self._engines.values())
            with apart_from_graphs():
                self._engines[key] = engine_for(self.replay, *key, others)
        return self._engines[key]

    def _written_by(self, names: tuple[str, ...]) -> list[str]:
        """Returns the variables that the host writes when `names` run."""
        if names not in self._written:
            recorded = self.replay.recorded
            # The cores make the values that are fetched from inside of them, and all behind these.
            inside = splice_lib.leaving(self.replay.splices, recorded, names)
            self._written[names] = recorded.variables_written(
                [name for name in names if input_node(name) not in inside],
                lambda edge: input_node(edge) in inside,
            )
        return self._written[names]

    def close(self) -> None:
        """Frees the engines and the state."""
        self._ready.clear()
        self._engines.clear()
        self._predicting.clear()
        self.replay.state.close()

    def retire(self) -> None:
        """Frees the state, and keeps the traced functions for `revive`.

        Not on a TPUStrategy, whose programs hold its variables for good.
        """
        self._retired = self.replay.state.retire()
        for engine in (*self._engines.values(), *filter(None, self._predicting.values())):
            engine.retire()
        if self.replay.device is not None:
            self.replay.device.clear()
        self._ready.clear()

    def revive(self) -> None:
        """Gives the traced functions fresh state, without values, if the state was retired."""
        if self._retired is None:
            return
        replaced = self.replay.state.revive(self._retired)
        self._retired = None
        self.alone.earlier = self.alone.steps
        functions = [f for engine in self._engines.values() for f in engine.functions]
        functions += [f for engine in self._predicting.values() if engine for f in engine.functions]
        for function in functions:
            _tf_private.rebind(function, replaced)
