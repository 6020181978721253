"""A block of steps on a device of JAX, or on several.

    host:    batches 1-32 | batches 33-64 | ...                    results of the last step
    device:               | steps 1-32    | steps 33-64 | ...

The host makes the next batches while the device works. Variables stay on the device between blocks;
`DeviceValues` copies one when somebody on the host reads it.

Several hosts launch the same steps, each with batches of its own. Each has the results of all.
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import tensorflow as tf

from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.replay import freed_memory
from estimator2strategy.engine.replay.engines.step import (
    Engine,
    How,
    Ran,
    Request,
    Step,
    Stopped,
    has_nan,
)
from estimator2strategy.engine.replay.failed_op import named_ops
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.replay.swallowed import Watch, swallowed, warn_of_lost_seeds
from estimator2strategy.engine.replay.xla import hosts
from estimator2strategy.engine.replay.xla.block import BlockResults, block_of, on_mesh
from estimator2strategy.engine.replay.xla.compiled_block import CompiledBlock
from estimator2strategy.engine.replay.xla.device_values import DeviceValues
from estimator2strategy.engine.replay.xla.diagnoses import diagnose
from estimator2strategy.engine.replay.xla.host_batches import HostBatches, Taken
from estimator2strategy.engine.replay.xla.kept_lowerings import kept_step
from estimator2strategy.engine.replay.xla.lowering import LoweringError
from estimator2strategy.engine.replay.xla.parts import (
    StepParts,
    after_function,
    parts_of,
)
from estimator2strategy.engine.replay.xla.step_function import StepFunction
from estimator2strategy.engine.replay.xla.target import NotUnderJaxError
from estimator2strategy.errors import DeviceError, UnsupportedError

# The most steps of one launch, and the most bytes of their batches.
_STEPS, _BYTES = 32, 1 << 26
# A program for many steps may run one alone if their batches are no larger.
_SMALL = 1 << 20
# XLA for CPUs runs these eight times slower in a loop than outside of one, and more:
# `findings/xla_cpu_convolutions_in_loops.sh`.
_SLOW_IN_LOOPS = {"cpu": frozenset({"stablehlo.convolution"})}
# Launches that may wait for a device: the next one is made while one runs.
_IN_FLIGHT = 2


class _Launch(NamedTuple):
    """A launch; the device may still be at work on it.

    Attributes:
        first: The number of steps of the block before it.
        nan_since: As of BlockResults.
    """

    first: int
    nan_since: Any


class _Program(NamedTuple):
    """A compiled block for batches of one shape.

    Attributes:
        launch: Starts a block.
        steps: The number of steps that batches are stacked for.
        most: The most steps that a launch of such batches can have.
        variables: The variables' VarHandleOps.
        streams: The variables that hold the places of random ops in their streams.
        changed: The numbers of the variables that a step changes.
    """

    launch: CompiledBlock
    steps: int
    most: int
    variables: tuple[str, ...]
    streams: tuple[tf.Variable, ...]
    changed: frozenset[int]


class OnJax(Engine):
    """Runs a block of steps on devices of JAX. Must be made in the `modern_world`.

    Args:
        replay: The graph and its state.
        step: The definition of a step; None: it is one run, without a step's counter or loss.
        request: The fetches and feeds to run.
        parts: The request's parts.
        of_each: True if the results of each step are wanted, by `run_each`.
    """

    on_device = True

    def __init__(
        self,
        replay: Replay,
        step: Step | None,
        request: Request,
        parts: StepParts,
        of_each: bool = False,
    ):
        self._replay, self._step, self._parts = replay, step, parts
        self._values: DeviceValues = replay.device
        loss = step.loss if step else None
        self._loss = request.tensors.index(loss) if loss in request.tensors else None
        self._shared, self._written_by_host = parts.shared_variables()
        self._batches = HostBatches(replay, parts, request.feeds, several=not self._shared)
        self._feeds: Sequence[tf.Tensor] = ()
        self.functions: tuple[Any, ...] = (self._batches.function,)
        self._given = parts.given(request)
        if self._given is None:
            self._after = after_function(replay, parts, request, self._values.replicas)
            self.functions += (self._after,)
        self._after_each = of_each or parts.has_effects_after
        how = How.ONE_BY_ONE if step is None else step.how
        self._one_by_one = bool(self._shared) or (how is How.ONE_BY_ONE and not of_each)
        program = parts.program
        warn_of_lost_seeds(replay.recorded, program.nodes)
        watched = swallowed(replay.recorded, program.nodes) if self._values.checks else []
        self._watch = Watch(replay.recorded, watched)
        # Requests with and without a summary have the same program.
        self._key = (program.feeds, program.outputs, tuple(program.nodes), self._number_of_loss())
        self._queue: deque[Taken] = deque()
        self._error: Exception | None = None  # with which the input ended behind the queue
        self._room = 1  # the most steps of a launch, as far as is known

    def run(self, steps: int, feeds: Sequence[tf.Tensor]) -> Ran:
        self._feeds = feeds
        # global_step has 64 bits: JAX has such values in here, and nowhere else.
        with jax.enable_x64(True):
            try:
                return self._run(steps)
            finally:
                self._values.streams_to_host()

    def _run(self, steps: int) -> Ran:
        launches: list[_Launch] = []
        results: list[tf.Tensor] = []
        outputs: Sequence[Any] = ()
        last: Taken | None = None
        done = 0
        while done < steps and (next_ := self._take_some(steps - done, outputs)):
            taken, program = next_
            outputs, nan_since = self._launch(taken, program)
            launches.append(_Launch(done, nan_since))
            done, last = done + taken.steps, taken
            if self._after_each:
                for values in self._run_after_each(outputs, taken):
                    results = list(map(tf.convert_to_tensor, values))
            elif len(launches) > _IN_FLIGHT:
                launches[-1 - _IN_FLIGHT].nan_since.block_until_ready()
        if last and not self._after_each:
            of_step = list(map(np.asarray, outputs))
            values = self._run_after(of_step, last.kept(last.steps - 1))
            results = list(map(tf.convert_to_tensor, values))
        self._watch.tell()
        return self._ran(done, results, done == steps, launches)

    def _ran(
        self, done: int, results: list[tf.Tensor], complete: bool, launches: Sequence[_Launch]
    ) -> Ran:
        step = self._step
        if step is None:
            if not done:
                raise tf.errors.OutOfRangeError(None, None, "End of sequence")
            return Ran(done, results)
        since = None
        if done and self._loss is not None:
            if step.keeps_loss:
                self._replay.state.gauges.hold_loss(results[self._loss])
            if has_nan(results[self._loss]):
                since = _nan_since(launches, done)
        stopped = Stopped.COMPLETED if complete else Stopped.END_OF_INPUT
        if since is not None and step.stops_at_nan:
            stopped = Stopped.NAN_LOSS  # hooks see it, also where the input has ended behind it
        counter = self._replay.read(step.counter) if step.counter else None
        return Ran(done, results, stopped, since, counter)

    def _take_some(self, most: int, before: Sequence[Any]) -> tuple[Taken, _Program] | None:
        """The batches of the next launch, of at most so many steps, and its program.

        Returns None if the input has ended, of this host or another. Hosts agree when the launch
        before is done, whose outputs are `before`.
        """
        found = self._take_here(most)
        if not self._values.of_several_hosts:
            return found
        jax.block_until_ready(before)
        taken = found[0] if found else None
        common = self._agreed(taken)
        if found and taken and taken.steps > common:
            taken, rest = taken.split(common) if common else (None, taken)
            self._queue.appendleft(rest)
        return (taken, found[1]) if found and taken else None

    def _agreed(self, taken: Taken | None) -> int:
        """The number of steps that all hosts have batches for; 0 if the input of one has ended."""
        shapes = repr(taken.shapes) if taken else ""
        mine = [taken.steps if taken else 0, zlib.crc32(shapes.encode())]
        of_hosts = hosts.of_each(f"a block of {self._name}", mine)
        counts = of_hosts[:, 0]
        if not counts.any():
            return 0
        if not counts.all():
            tf.compat.v1.logging.warn(
                "The input of host %s has ended, the others' has not. It ends for all; give each "
                "as many batches, or repeat() them and say how many steps.",
                ", ".join(map(str, np.flatnonzero(counts == 0))),
            )
        elif len({*of_hosts[:, 1]}) > 1:
            raise DeviceError(
                f"The batches of this host have the shapes {shapes}, and those of another have "
                "others. Give all hosts batches of the same shapes."
            )
        return int(counts.min())

    @property
    def _name(self) -> str:
        return self._step.op if self._step else "a run without a step"

    def _take_here(self, most: int) -> tuple[Taken, _Program] | None:
        """As `_take_some`, as far as this host knows."""
        if not self._queue:
            error, self._error = self._error, None
            if error is None:
                self._values.to_host(self._shared)
                found, error = self._batches.take(min(most, self._room), self._feeds)
                self._values.forget(self._written_by_host)
                self._queue.extend(found)
            if self._queue:
                self._error = error  # behind them
            elif isinstance(error, tf.errors.OutOfRangeError):
                return None
            elif error:
                raise error
        taken = self._queue.popleft()
        program = self._program(taken, most)
        self._room = program.steps
        if taken.steps > self._room:
            taken, rest = taken.split(self._room)
            self._queue.appendleft(rest)
        return taken, program

    def run_each(self, steps: int) -> tuple[list[list[Any]], Exception | None]:
        """Runs up to `steps` steps, fewer if their batches are slow in coming.

        Returns:
            The values (numpy) that each gave, and the error with which the next one ended.
        """
        found: list[list[Any]] = []
        with jax.enable_x64(True):
            try:
                while len(found) < steps and (not found or self._queue):
                    next_ = self._take_here(steps - len(found))
                    if next_ is None:
                        return found, tf.errors.OutOfRangeError(None, None, "End of sequence")
                    taken, program = next_
                    outputs, _ = self._launch(taken, program)
                    of_steps = self._run_after_each(outputs, taken)
                    found.extend(list(map(_numpy, values)) for values in of_steps)
                    self._watch.tell()
            except tf.errors.OpError as error:
                return found, error
            finally:
                self._values.streams_to_host()
        return found, None

    def _run_after_each(self, outputs: Sequence[Any], taken: Taken) -> Iterator[list[Any]]:
        """Runs the host's last part on the collected outputs of each step."""
        of_steps = [np.asarray(output) for output in outputs]
        for number in range(taken.steps):
            yield self._run_after(self._of_step(of_steps, number), taken.kept(number))

    def _run_after(self, outputs: Sequence[np.ndarray], kept: Sequence[tf.Tensor]) -> list[Any]:
        """The tensors of the request, of the device's outputs of one step."""
        if self._given is not None:
            values = [*outputs, *kept]
            return [values[number] for number in self._given]
        self._values.to_host(self._shared)
        results: list[Any] = self._after(*map(tf.constant, outputs), *kept)
        self._values.forget(self._written_by_host)
        return results

    def _of_step(self, outputs: Sequence[np.ndarray], number: int) -> list[np.ndarray]:
        """The outputs of one of the steps whose outputs were collected."""
        if self._values.replicas == 1:
            return [output[number] for output in outputs]
        return [output[:, number] for output in outputs]

    def _launch(self, taken: Taken, program: _Program) -> tuple[Sequence[Any], Any]:
        """Starts steps on the device, and does not wait for them.

        Returns:
            `outputs` and `nan_since`, as of BlockResults.
        """
        values = self._values
        batches = values.deal_out(self._padded(taken, program.steps))
        nodes, blocks = program.variables, program.streams
        before = [*values.take(nodes), *values.take_streams(blocks)]
        after = program.launch(before, batches, taken.steps)
        values.put(nodes, after.variables[: len(nodes)], program.changed)
        values.put_streams(blocks, after.variables[len(nodes) :])
        return self._watch.without_flags(after.outputs), after.nan_since

    def _padded(self, taken: Taken, steps: int) -> list[np.ndarray]:
        """The values of each feed at all steps: [steps, ...], or [steps, replicas here, ...]."""
        replicas, feeds = len(self._values.here), len(self._parts.program.feeds)
        found = taken.feeds
        if self._values.replicas > 1:
            found = [
                np.stack([taken.feeds[r * feeds + feed] for r in range(replicas)], axis=1)
                for feed in range(feeds)
            ]
        if taken.steps == steps:
            return found
        # The program looks at no more of them than it is told.
        missing = steps - taken.steps
        return [np.concatenate([f, np.zeros((missing, *f.shape[1:]), f.dtype)]) for f in found]

    def _program(self, taken: Taken, most: int) -> _Program:
        """The program for batches of these shapes, where so many steps are to be run at most."""
        feeds = [feed[0] for feed in taken.feeds[: len(self._parts.program.feeds)]]
        # Room for the batches of many steps costs more than a second compilation saves.
        is_single = most == 1 and _STEPS * sum(feed.nbytes for feed in feeds) > _SMALL
        is_single |= self._one_by_one
        programs = self._values.programs
        key = (*self._key, taken.shapes, self._after_each)
        if (*key, is_single) not in programs:
            program = self._compiled(feeds, is_single)
            # Where no launch has more than one step, there is one program.
            alike = {is_single, not is_single} if program.most == 1 else {is_single}
            programs.update(((*key, single), program) for single in alike)
        found: _Program = programs[(*key, is_single)]
        return found

    def _compiled(self, feeds: Sequence[np.ndarray], is_single: bool) -> _Program:
        values, program = self._values, self._parts.program
        step, blocks = self._step_function(feeds)
        most = _steps_of_launch(values, step, feeds)
        steps = 1 if is_single else most
        of_block = {"collects": self._after_each, "flags": bool(self._watch.failures)}
        block = block_of(step, steps, self._number_of_loss(), **of_block)
        variables, streams = tuple(program.variables), len(blocks)
        if values.replicas > 1:
            block = on_mesh(block, values.mesh, streams)
        how: dict[str, Any] = {}
        if values.of_several_hosts:
            everywhere, of_each = values.shardings_of_results
            of_variables = [everywhere] * len(variables) + [of_each] * streams
            how["out_shardings"] = BlockResults(of_variables, everywhere, everywhere)
        launch = CompiledBlock(block, values.platform, **how)
        changed = frozenset(number for number in step.changed if number < len(variables))
        return _Program(launch, steps, most, variables, blocks, changed)

    def _step_function(
        self, feeds: Sequence[np.ndarray]
    ) -> tuple[StepFunction, tuple[tf.Variable, ...]]:
        """A step for batches of these shapes, and the variables with its random ops' places."""
        steps = self._values.steps
        key = (*self._key, *((feed.shape, feed.dtype) for feed in feeds))
        if key not in steps:
            specs = [tf.TensorSpec(feed.shape, feed.dtype) for feed in feeds]
            draws, watched = self._replay.state.random_streams(), self._watch.failures
            try:
                lowered = kept_step(self._parts.program, draws, specs, watched)
                steps[key] = StepFunction(lowered, self._values.precision), lowered.streams
            except (LoweringError, ValueError) as error:
                raise _refused(self._values, not_lowered(self._replay.recorded, error)) from error
            freed_memory.give_back()
        found: tuple[StepFunction, tuple[tf.Variable, ...]] = steps[key]
        return found

    def _number_of_loss(self) -> int | None:
        """The number, among the program's outputs, of the loss of this device."""
        step, parts = self._step, self._parts
        if step is None or step.loss is None:
            return None
        name = step.loss
        if parts.splice and name in parts.splice.outputs:
            return parts.splice.outputs.index(name)
        return parts.program.outputs.index(name) if name in parts.program.outputs else None

    def retire(self) -> None:
        self._queue.clear()
        self._error = None


def build(replay: Replay, step: Step | None, request: Request) -> OnJax | None:
    """Makes the engine of a request; None if a device has nothing to do in it.

    Raises:
        UnsupportedError: The host would have to act in the middle of a step.
    """
    try:
        parts = parts_of(replay, request, replay.device.replicas)
    except UnsupportedError as error:
        raise _refused(replay.device, error) from None
    return OnJax(replay, step, request, parts) if parts else None


class EachOnJax:
    """As BatchedPredict, on devices of JAX."""

    def __init__(self, engine: OnJax):
        self.run, self.retire, self.functions = engine.run_each, engine.retire, engine.functions


def build_of_each(replay: Replay, tensors: Sequence[str]) -> EachOnJax | None:
    """Makes what gives such tensors for each of several batches; None if JAX has nothing to do."""
    request = Request(tuple(tensors))
    parts = parts_of(replay, request, replay.device.replicas)
    return EachOnJax(OnJax(replay, None, request, parts, of_each=True)) if parts else None


def not_lowered(recorded: RecordedGraph, error: Exception) -> UnsupportedError:
    """The error to raise where a step cannot be made a program of XLA."""
    diagnosis = diagnose(str(error))
    lines = [f"  {line}" for line in named_ops(recorded, str(error))]
    why = "\n".join([f"  {diagnosis.cause}", *lines])
    fix = diagnosis.fix or "Move such ops into input_fn's Dataset.map."
    return UnsupportedError(
        f"The step cannot run under JAX, because XLA does not take it:\n{why}\n"
        f"  {fix} Or leave out --runtime=jax."
    )


def _refused(values: DeviceValues, error: UnsupportedError) -> UnsupportedError:
    """The error, such that another runtime may take the program if no step of it has run."""
    return error if values.have_run else NotUnderJaxError(str(error))


def _steps_of_launch(values: DeviceValues, step: StepFunction, feeds: Sequence[np.ndarray]) -> int:
    """The number of steps that one launch has at most."""
    if step.op_names & _SLOW_IN_LOOPS.get(values.platform, frozenset()):
        return 1
    size = values.replicas * sum(feed.nbytes for feed in feeds)
    return max(1, min(_STEPS, _BYTES // max(size, 1)))


def _numpy(value: Any) -> Any:
    return value.numpy() if isinstance(value, tf.Tensor) else value


def _nan_since(launches: Sequence[_Launch], done: int) -> int:
    """The step since which the loss is NaN, counted from 1.

    Args:
        launches: Those of a block.
        done: Its number of steps: the answer if the mean of replicas is NaN, and no loss of theirs.
    """
    since = done
    for launch in reversed(launches):
        of_replicas = np.atleast_1d(np.asarray(launch.nan_since))
        numbers = [int(number) for number in of_replicas if number]
        if not numbers:
            break
        since = launch.first + min(numbers)
        if min(numbers) > 1:
            break
    return since
