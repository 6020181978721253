"""A block of steps on a device of JAX, or on several.

    host:    batches 1-32 | batches 33-64 | ...                    results of the last step
    device:               | steps 1-32    | steps 33-64 | ...

The host makes the next batches while the device works. Variables stay on the device between blocks;
`DeviceValues` copies one when somebody on the host reads it.

Several hosts launch the same steps, each with batches of its own. Each has the results of all.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np
import tensorflow as tf

from estimator2strategy.engine.plan.graph import RecordedGraph
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
from estimator2strategy.engine.replay.swallowed import swallowed
from estimator2strategy.engine.replay.xla import hosts
from estimator2strategy.engine.replay.xla.block import BlockResults, block_of, on_mesh
from estimator2strategy.engine.replay.xla.device_values import DeviceValues
from estimator2strategy.engine.replay.xla.diagnoses import diagnose
from estimator2strategy.engine.replay.xla.lost_seeds import warn_of_lost_seeds
from estimator2strategy.engine.replay.xla.lowering import LoweredStep, LoweringError, lower_step
from estimator2strategy.engine.replay.xla.parts import (
    StepParts,
    after_function,
    parts_of,
    take_function,
)
from estimator2strategy.engine.replay.xla.step_function import StepFunction
from estimator2strategy.engine.replay.xla.watch import Watch
from estimator2strategy.errors import DeviceError, UnsupportedError

# The tensors of one step for the program: its feeds, on each replica.
Taken: TypeAlias = list[np.ndarray]

# The most steps of one launch, and the most bytes of their batches.
_STEPS, _BYTES = 32, 1 << 26
# XLA for CPUs runs these eight times slower in a loop than outside of one.
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
        lowered: The step.
        function: The block; see `block_of`.
        steps: The number of steps that batches are stacked for.
        changed: The numbers of the variables that a step changes.
    """

    lowered: LoweredStep
    function: Any
    steps: int
    changed: frozenset[int]


class OnJax(Engine):
    """Runs a block of steps on devices of JAX. Must be made in the `modern_world`.

    Args:
        replay: The graph and its state.
        step: The definition of a step; None: it is one run, without a step's counter or loss.
        request: The fetches and feeds to run.
        parts: The request's parts.
    """

    on_device = True

    def __init__(self, replay: Replay, step: Step | None, request: Request, parts: StepParts):
        self._replay, self._step, self._parts = replay, step, parts
        self._values: DeviceValues = replay.device
        loss = step.loss if step else None
        self._loss = request.tensors.index(loss) if loss in request.tensors else None
        self._take = take_function(replay, parts, request.feeds)
        self._feeds: Sequence[tf.Tensor] = ()
        self._after = after_function(replay, parts, request, self._values.replicas)
        self.functions = (self._take, self._after)
        self._shared, self._written_by_host = parts.shared_variables()
        self._after_each = parts.has_effects_after
        self._one_by_one = bool(self._shared) or step is None or step.how is How.ONE_BY_ONE
        watched = swallowed(replay.recorded, parts.program.nodes) if self._values.checks else []
        self._watch = Watch(replay.recorded, watched)
        self._programs: dict[tuple[Any, ...], _Program] = {}
        self._waiting: list[list[tf.Tensor]] = []  # a batch of another shape than those before it

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
        last_kept: list[tf.Tensor] = []
        done, ended = 0, False
        while done < steps and not ended:
            taken, kept, ended = self._take_some(steps - done)
            if self._values.of_several_hosts:
                if outputs:
                    jax.block_until_ready(outputs)
                taken, kept, ended = self._agreed(taken, kept, ended)
            if not taken:
                break
            outputs, nan_since = self._launch(taken)
            launches.append(_Launch(done, nan_since))
            done, last_kept = done + len(taken), kept[-1]
            if self._after_each:
                of_steps = [np.asarray(output) for output in outputs]
                for number, of_host in enumerate(kept):
                    results = self._run_after(self._of_step(of_steps, number), of_host)
            elif len(launches) > _IN_FLIGHT:
                launches[-1 - _IN_FLIGHT].nan_since.block_until_ready()
        if done and not self._after_each:
            results = self._run_after(outputs, last_kept)
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

    def _take_some(self, most: int) -> tuple[list[Taken], list[list[tf.Tensor]], bool]:
        """(each step's tensors for the program, those that the host keeps, the input has ended).

        All batches of one call have the same shapes.
        """
        taken: list[Taken] = []
        kept: list[list[tf.Tensor]] = []
        count, room = len(self._parts.takes), 1
        while len(taken) < room:
            try:
                tensors = self._waiting.pop() if self._waiting else self._take_one()
            except tf.errors.OutOfRangeError:
                return taken, kept, True
            values = [tensor.numpy() for tensor in tensors[:count]]
            if taken and [v.shape for v in values] != [v.shape for v in taken[0]]:
                self._waiting.append(tensors)
                break
            taken.append(values)
            kept.append(tensors[count:])
            room = min(most, self._program(values).steps)
        return taken, kept, False

    def _agreed(
        self, taken: list[Taken], kept: list[list[tf.Tensor]], ended: bool
    ) -> tuple[list[Taken], list[list[tf.Tensor]], bool]:
        """As many steps as all hosts have batches for, and True if one's input has ended then."""
        shapes = repr([value.shape for value in taken[0]]) if taken else ""
        mine = [len(taken), ended, zlib.crc32(shapes.encode())]
        of_hosts = hosts.of_each(f"a block of {self._name}", mine)
        counts = of_hosts[:, 0]
        common = int(counts.min())
        if common and len({*of_hosts[:, 2]}) > 1:
            raise DeviceError(
                f"The batches of this host have the shapes {shapes}, and those of another have "
                "others. Give all hosts batches of the same shapes."
            )
        are_out = (counts == common) & (of_hosts[:, 1] == 1)
        if are_out.any() and not are_out.all():
            tf.compat.v1.logging.warn(
                "The input of host %s has ended, the others' has not. It ends for all; give each "
                "as many batches, or repeat() them and say how many steps.",
                ", ".join(map(str, np.flatnonzero(are_out))),
            )
        for values, of_host in reversed([*zip(taken, kept, strict=True)][common:]):
            self._waiting.append([*map(tf.constant, values), *of_host])
        return taken[:common], kept[:common], bool(are_out.any())

    @property
    def _name(self) -> str:
        return self._step.op if self._step else "a run without a step"

    def _take_one(self) -> list[tf.Tensor]:
        """Runs the host's first part."""
        self._values.to_host(self._shared)
        tensors: list[tf.Tensor] = self._take(*self._feeds)
        self._values.forget(self._written_by_host)
        return tensors

    def _run_after(self, outputs: Sequence[Any], kept: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Runs the host's last part on the device's outputs of one step."""
        self._values.to_host(self._shared)
        computed = [tf.constant(np.asarray(output)) for output in outputs]
        results: list[tf.Tensor] = self._after(*computed, *kept)
        self._values.forget(self._written_by_host)
        return results

    def _of_step(self, outputs: Sequence[np.ndarray], number: int) -> list[np.ndarray]:
        """The outputs of one of the steps whose outputs were collected."""
        if self._values.replicas == 1:
            return [output[number] for output in outputs]
        return [output[:, number] for output in outputs]

    def _launch(self, taken: Sequence[Taken]) -> tuple[Sequence[Any], Any]:
        """Starts steps on the device, and does not wait for them.

        Returns:
            `outputs` and `nan_since`, as of BlockResults.
        """
        values, program = self._values, self._program(taken[0])
        batches = list(map(values.deal_out, self._stacked(taken, program.steps)))
        nodes, blocks = program.lowered.program.variables, program.lowered.streams
        before = [*values.take(nodes), *values.take_streams(blocks)]
        after = program.function(before, batches, np.int32(len(taken)))
        values.put(nodes, after.variables[: len(nodes)], program.changed)
        values.put_streams(blocks, after.variables[len(nodes) :])
        return self._watch.without_flags(after.outputs), after.nan_since

    def _stacked(self, taken: Sequence[Taken], steps: int) -> list[np.ndarray]:
        """The values of each feed at all steps: [steps, ...], or [steps, replicas here, ...]."""
        replicas, feeds = len(self._values.here), len(self._parts.program.feeds)
        # The program looks at no more of them than it is told.
        filled = [*taken, *[taken[-1]] * (steps - len(taken))]
        if self._values.replicas == 1:
            return [np.stack(of_feed) for of_feed in zip(*filled, strict=True)]
        return [
            np.stack([[of_step[r * feeds + feed] for r in range(replicas)] for of_step in filled])
            for feed in range(feeds)
        ]

    def _program(self, taken: Taken) -> _Program:
        """The program for batches of these shapes."""
        feeds = taken[: len(self._parts.program.feeds)]
        shapes = tuple(value.shape for value in feeds)
        if shapes not in self._programs:
            self._programs[shapes] = self._compiled(feeds)
        return self._programs[shapes]

    def _compiled(self, feeds: Taken) -> _Program:
        values, program = self._values, self._parts.program
        specs = [tf.TensorSpec(feed.shape, feed.dtype) for feed in feeds]
        try:
            draws, watched = self._replay.state.random_streams(), self._watch.failures
            lowered = lower_step(program, draws, specs, watched)
            step = StepFunction(lowered, values.precision)
        except (LoweringError, ValueError) as error:
            raise not_lowered(self._replay.recorded, error) from error
        steps = 1 if self._one_by_one else _steps_of_launch(values, step, feeds)
        of_block = {"collects": self._after_each, "flags": bool(self._watch.failures)}
        block = block_of(step, steps, self._number_of_loss(), **of_block)
        variables, streams = len(program.variables), len(lowered.streams)
        if values.replicas > 1:
            block = on_mesh(block, values.mesh, streams)
        how: dict[str, Any] = {}
        if values.of_several_hosts:
            everywhere, of_each = values.shardings_of_results
            of_variables = [everywhere] * variables + [of_each] * streams
            how["out_shardings"] = BlockResults(of_variables, everywhere, everywhere)
        function = jax.jit(block, donate_argnums=0, **how)
        changed = frozenset(number for number in step.changed if number < variables)
        return _Program(lowered, function, steps, changed)

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
        self._waiting.clear()


def build(replay: Replay, step: Step | None, request: Request) -> OnJax | None:
    """Makes the engine of a request; None if a device has nothing to do in it.

    Raises:
        UnsupportedError: The host would have to act in the middle of a step.
    """
    parts = parts_of(replay, request, replay.device.replicas)
    if parts is None:
        return None
    warn_of_lost_seeds(replay.recorded, parts.program.nodes)
    return OnJax(replay, step, request, parts)


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


def _steps_of_launch(values: DeviceValues, step: StepFunction, feeds: Taken) -> int:
    """The number of steps that one launch has at most."""
    if step.op_names & _SLOW_IN_LOOPS.get(values.platform, frozenset()):
        return 1
    size = values.replicas * sum(feed.nbytes for feed in feeds)
    return max(1, min(_STEPS, _BYTES // max(size, 1)))


def _nan_since(launches: Sequence[_Launch], done: int) -> int:
    """The step since which the loss is NaN, counted from 1.

    Args:
        launches: Those of a block.
        done: Its number of steps: the answer if the mean of replicas is NaN, and no loss of theirs.
    """
    since = done
    for launch in reversed(launches):
        of_replicas = np.atleast_1d(np.asarray(launch.nan_since))
        found = [int(number) for number in of_replicas if number]
        if not found:
            break
        since = launch.first + min(found)
        if min(found) > 1:
            break
    return since
