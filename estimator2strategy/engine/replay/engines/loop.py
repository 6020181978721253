"""A block of steps: one call from Python that runs step after step.

    batch 1 | step 1   | step 2   | step 3
            | batch 2  | batch 3  |

The next batch is taken while a step runs, if neither can notice. The last step of a block takes
none: between blocks the input is exactly where training is.

On a TPU an iteration launches a step and does not wait for its results. Those that the last step
of a block left on the cores (the mean of their losses, summaries, the global step) are read when
the block is done. So it is only where each step asks nothing else of the host: a host_call or a
metric is worked on at every step, with the results of that step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import tensorflow as tf

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.pipeline_cut import may_prefetch
from estimator2strategy.engine.replay import splice as splice_lib
from estimator2strategy.engine.replay.engines.step import (
    Engine,
    Ran,
    Request,
    Step,
    Stopped,
    has_nan,
)
from estimator2strategy.engine.replay.gauges import Gauges, is_nan, nan_since
from estimator2strategy.engine.replay.next_batch import (
    NextBatch,
    NextBatches,
    blank,
    next_batches,
    only_next_batch,
)
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.replay.splice import Splice
from estimator2strategy.engine.replay.step_context import StepContext
from estimator2strategy.engine.replay.tpu_variables import is_tpu

Batch: TypeAlias = dict[str, tf.Tensor]
# As `Replay.trace`.
TraceStep: TypeAlias = Callable[
    [Sequence[str], Sequence[str], Mapping[str, tf.Tensor], StepContext], list[tf.Tensor]
]
_COUNT = tf.TensorSpec([], tf.int32)


class Loop(Engine):
    """Runs a block of steps in one call. Must be made in the `modern_world`.

    Args:
        replay: The graph and its state.
        step: The definition of a step.
        request: The fetches and feeds to run.
        trace: Traces one step. None: `replay.trace`.

    Attributes:
        function: ConcreteFunction of a number of steps, and of the feeds. Its results: how many
            steps it ran, which are fewer if the loss became NaN or the input ended; the step
            since which the loss is NaN, else 0; the value of `step.counter`, if there is one; and
            the values of the tensors at the last step. Where steps take their batches themselves
            the input ends with an OutOfRangeError instead.
    """

    def __init__(
        self, replay: Replay, step: Step, request: Request, trace: TraceStep | None = None
    ):
        self._replay, self._step, self._request = replay, step, request
        self._trace = trace or replay.trace
        loss = step.loss
        self._loss = request.tensors.index(loss) if loss in request.tensors else None
        self._keeps_loss = step.keeps_loss and self._loss is not None
        if self._keeps_loss and loss:
            replay.state.gauges.prepare_loss(replay.spec(loss))
        self._batches = _batches(replay, step, request)
        keeps_in_loop = self._keeps_loss and self._batches.end_is_an_error
        self._after = None if keeps_in_loop else after_block(replay, request)
        self._specs = [replay.spec(name) for name in request.tensors]
        if self._after:
            self._trace, self._specs = self._after.trace, self._after.specs
        models = (splice.model for splice in replay.splices if splice.model)
        tpus = [model.strategy for model in models if is_tpu(model.strategy)]
        # The cores of a TPU note by themselves since when their loss is NaN.
        self._on_tpu = bool(tpus)
        if tpus and self._loss is not None:
            replay.state.gauges.prepare_nan(tpus[0])
        watches = self._loss is not None and not tpus
        self._stops_at_nan = watches and step.stops_at_nan
        self._counts_nan = watches and not step.stops_at_nan
        self.function = self._traced()
        self.functions = (self.function,)

    def run(self, steps: int, feeds: Sequence[tf.Tensor]) -> Ran:
        if self._keeps_loss:
            self._replay.state.gauges.store_held()
        count, nan, *results = self.function(tf.constant(steps), *feeds)
        counter = results.pop(0) if self._step.counter else None
        done, stopped, since = int(count), Stopped.COMPLETED, None
        if self._loss is not None and has_nan(results[self._loss]):
            since = self._nan_since_on_tpu(done) if self._on_tpu else int(nan)
        if done < steps:
            at_nan = self._step.stops_at_nan and since is not None
            stopped = Stopped.NAN_LOSS if at_nan else Stopped.END_OF_INPUT
        return Ran(done, results, stopped, since, counter)

    def _nan_since_on_tpu(self, done: int) -> int:
        """Returns the step since which the loss is NaN, after the `done` ones of a TPU's block."""
        ago = self._replay.state.gauges.steps_since_nan()
        # It may be that no core's loss is NaN, but their mean is: of infinities.
        return done - (ago or 0)

    def _traced(self) -> Any:
        replay, step, batches = self._replay, self._step, self._batches
        fed = map(replay.spec, self._request.feeds)

        @tf.function(autograph=False, input_signature=[_COUNT, *fed])
        def block(steps: tf.Tensor, *values_fed: tf.Tensor) -> tuple[tf.Tensor, ...]:
            def unfinished(
                done: tf.Tensor, batch: tf.Tensor, nan: list[tf.Tensor], values: list[tf.Tensor]
            ) -> tf.Tensor:
                del nan
                more = (done < steps) & batches.there(batch)
                return more & ~self._is_nan(values) if self._stops_at_nan else more

            def one_step(
                done: tf.Tensor, batch: tf.Tensor, nan: list[tf.Tensor], values: list[tf.Tensor]
            ) -> tuple[tf.Tensor, tf.Tensor, list[tf.Tensor], list[tf.Tensor]]:
                values, batch = self._one_step(values_fed, done, batch, steps)
                nan = [nan_since(self._is_nan(values), since, done + 1) for since in nan]
                return done + 1, batch, nan, values

            first = batches.first()
            nan = [tf.constant(0)] if self._counts_nan else []
            done, _, nan, values = tf.while_loop(
                unfinished,
                one_step,
                (tf.constant(0), first, nan, list(map(blank, self._specs))),
                shape_invariants=(
                    _COUNT.shape,
                    first.shape,
                    [_COUNT.shape for _ in nan],
                    [spec.shape for spec in self._specs],
                ),
            )
            # A block that stops at NaN has ended with the first one.
            (since,) = nan or [done]
            if self._after:
                values = self._after.results(values)
            if not batches.end_is_an_error and self._keeps_loss:
                tf.cond(done > 0, lambda: self._keep(values), lambda: None)
            if step.counter:
                # On a TPU the steps have another handle than the host: no handle orders the two.
                with tf.control_dependencies([done]):
                    values = [replay.read(step.counter), *values]
            return done, since, *values

        return block.get_concrete_function()

    def _is_nan(self, values: Sequence[tf.Tensor]) -> tf.Tensor:
        """Returns if the loss among the values of a step is NaN."""
        assert self._loss is not None
        return is_nan(values[self._loss])

    def _one_step(
        self,
        values_fed: Sequence[tf.Tensor],
        done: tf.Tensor,
        batch: tf.Tensor,
        steps: tf.Tensor,
    ) -> tuple[list[tf.Tensor], tf.Tensor]:
        """Traces step number `done`; returns its values, and the batch for the next one."""
        request, counter = self._request, self._step.counter
        context = StepContext(
            index=done,
            read_after=(counter,) if counter else (),
            watched=self._step.loss if self._on_tpu and self._loss is not None else None,
        )

        def run(taken: Batch) -> list[tf.Tensor]:
            given = dict(zip(request.feeds, values_fed, strict=True)) | taken
            return self._trace(request.tensors, request.ops, given, context)

        values, batch = self._batches.step(run, batch, done + 1 < steps)
        for value, spec in zip(values, self._specs, strict=True):
            value.set_shape(spec.shape)  # set_shape of the program is not in its nodes
        if self._batches.end_is_an_error:
            self._keep(values)
        return values, batch

    def _keep(self, values: Sequence[tf.Tensor]) -> None:
        if self._keeps_loss and self._loss is not None:
            self._replay.state.gauges.keep_loss(values[self._loss])


def build(replay: Replay, step: Step, request: Request, others: Sequence[Engine]) -> Loop:
    """Makes the engine of a request; see `engine_for`."""
    del others
    return Loop(replay, step, request)


class _TakenBySteps:
    """Lets each step take its own batch as it begins, if it takes any."""

    end_is_an_error = True

    def __init__(self, next_batch: NextBatch | None, gauges: Gauges | None):
        self._next_batch, self._gauges = next_batch, gauges

    def first(self) -> tf.Tensor:
        return tf.constant(0)  # nothing is handed from step to step

    def there(self, batch: tf.Tensor) -> bool:
        del batch
        return True

    def step(
        self, run: Callable[[Batch], list[tf.Tensor]], batch: tf.Tensor, more: tf.Tensor
    ) -> tuple[list[tf.Tensor], tf.Tensor]:
        del more
        taken: Batch = {}
        if self._next_batch and self._gauges:
            taken, seconds = self._next_batch.timed()
            self._gauges.add_wait(seconds)
        return run(taken), batch


class _TakenAhead:
    """Takes the next batch while a step runs."""

    end_is_an_error = False

    def __init__(self, next_batch: NextBatch | NextBatches, gauges: Gauges | None):
        self._next_batch, self._gauges = next_batch, gauges

    def first(self) -> tf.Tensor:
        return self._timed(self._next_batch.optional, after=[])

    def there(self, batch: tf.Tensor) -> tf.Tensor:
        return tf.raw_ops.OptionalHasValue(optional=batch)

    def step(
        self, run: Callable[[Batch], list[tf.Tensor]], batch: tf.Tensor, more: tf.Tensor
    ) -> tuple[list[tf.Tensor], tf.Tensor]:
        def take() -> tf.Tensor:
            return tf.cond(more, self._next_batch.optional, tf.raw_ops.OptionalNone)

        graph = tf.compat.v1.get_default_graph()
        before = len(graph.get_operations())
        values = run(self._next_batch.values(batch))
        return values, self._timed(take, after=graph.get_operations()[before:])

    def _timed(self, take: Callable[[], tf.Tensor], after: Sequence[tf.Operation]) -> tf.Tensor:
        """Calls `take`, and counts how long it is waited for once the ops `after` have run."""
        if self._gauges is None:
            return take()
        with tf.control_dependencies(_last(after)):
            since = tf.timestamp()
        batch = take()
        with tf.control_dependencies([batch]):
            self._gauges.add_wait(tf.maximum(tf.timestamp() - since, 0))
        return batch


def _last(ops: Sequence[tf.Operation]) -> list[tf.Operation]:
    """Returns the ops whose results no other op takes: when they are done, all are.

    An op that something waits for besides is not fused with the next one: a product with its bias,
    a batch norm with its ReLU.
    """
    return [op for op in ops if not any(x.consumers() for x in op.outputs)]


def _batches(replay: Replay, step: Step, request: Request) -> _TakenBySteps | _TakenAhead:
    names = [*map(input_node, request.tensors), *request.ops]
    gauges = replay.state.gauges if step.measures_input else None
    if replay.splices:
        several = None if request.feeds else _next_of_this_host(replay, names)
        return _TakenAhead(several, gauges) if several else _TakenBySteps(None, gauges)
    next_batch = only_next_batch(replay, names)
    ahead = next_batch and not request.feeds
    if next_batch and ahead and may_prefetch(replay.recorded, names, next_batch.node):
        return _TakenAhead(next_batch, gauges)
    return _TakenBySteps(next_batch, gauges)


def _next_of_this_host(replay: Replay, names: Sequence[str]) -> NextBatches | None:
    """The batches of a TPU's cores, if they may be taken ahead; None on emulated cores.

    Only of this process: what an iteration hands to the next one would go from another host to
    this one and back.
    """
    recorded = replay.recorded
    splices = splice_lib.needed(replay.splices, recorded, set(names), fed=set())
    models = [splice.model for splice in splices if splice.model]
    if not models or not all(is_tpu(model.strategy) for model in models):
        return None
    if any(tf.DeviceSpec.from_string(host).job != "localhost" for host in recorded.hosts):
        return None
    inside = [name for model in models for name in model.roots]
    host_ops = [name for splice in splices for name in splice.ops]
    inputs = [input_node(name) for splice in splices for name in splice.inputs]
    used = [*names, *host_ops, *inputs]
    taken = next_batches(replay, used)
    step = [*used, *inside]
    if taken is None or not all(may_prefetch(recorded, step, node) for node in taken.nodes):
        return None
    return taken


class AfterBlock:
    """Leaves a step's results on the cores, and reads them when the block is done.

    Args:
        replay: The graph and its state.
        splice: The step of all cores.
        tensors: Names of the tensors to return.

    Attributes:
        specs: The results of one step, of all cores.
    """

    def __init__(self, replay: Replay, splice: Splice, tensors: Sequence[str]):
        self._replay, self._splice, self._tensors = replay, splice, tensors
        cores = splice.model.strategy.num_replicas_in_sync
        self.specs = [replay.spec(name) for name in splice.model.outputs for _ in range(cores)]

    def trace(
        self,
        tensors: Sequence[str],
        ops: Sequence[str],
        feeds: Mapping[str, tf.Tensor],
        context: StepContext,
    ) -> list[tf.Tensor]:
        """Traces one step, as `Replay.trace` does; returns the results of all cores."""
        del tensors, ops  # they come after the block, and are the splice
        replay, splice = self._replay, self._splice
        inputs = replay.importer(feeds).fetch(splice.inputs)
        parts = splice.trace(replay.recorded, replay.state, inputs, context)
        return [part for of_one in parts for part in of_one]

    def results(self, values: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """The tensors, traced behind the loop that returned `values`."""
        splice, cores = self._splice, self._splice.model.strategy.num_replicas_in_sync
        parts = [tuple(values[i : i + cores]) for i in range(0, len(values), cores)]
        merged = splice.merge(parts)
        importer = self._replay.importer({})
        importer.supply(dict(zip(splice.outputs, merged, strict=True)), [splice.op], merged)
        importer.wait_with_variables(splice.op)
        return importer.fetch(self._tensors)


def after_block(replay: Replay, request: Request) -> AfterBlock | None:
    """The AfterBlock of a request; None if it is not for a TPU, or asks more of the host."""
    recorded, tensors, ops = replay.recorded, request.tensors, request.ops
    roots = {*map(input_node, tensors), *ops}
    splices = splice_lib.exposing(replay.splices, recorded, tensors, ops)
    splices = splice_lib.needed(splices, recorded, roots, fed=set())
    if request.feeds or len(splices) != 1:
        return None
    (splice,) = splices
    if not (splice.model and splice.outputs and is_tpu(splice.model.strategy)):
        return None
    behind = recorded.ancestors(roots, lambda edge: input_node(edge) in splice.nodes)
    on_host = [n for n in behind if n not in splice.nodes and not recorded.creates_resource(n)]
    if recorded.have_effects(on_host) or recorded.call_python(on_host):
        return None
    return AfterBlock(replay, splice, tensors)
