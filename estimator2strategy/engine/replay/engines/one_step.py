"""Steps that are a call each, outside of any loop; and runs that are no step at all.

A few steps run one by one: a loop takes longer to trace than it gains. If several processes train
together, each run is one step. They tell their collectives apart by the place of each in a loop, so
none may be in a loop.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.replay import splice as splice_lib
from estimator2strategy.engine.replay.engines.step import (
    Engine,
    How,
    Ran,
    Request,
    Step,
    Stopped,
    TakeTogether,
    has_nan,
)
from estimator2strategy.engine.replay.next_batch import next_batches, only_next_batch
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.replay.step_context import StepContext

# TensorFlow's word for the end of a dataset.
_END = "End of sequence"


class OneStep(Engine):
    """Runs one step, or a request that is no step, in one call.

    Args:
        replay: The graph and its state.
        step: The definition of a step; None: the request is none.
        request: The fetches and feeds to run.
    """

    def __init__(self, replay: Replay, step: Step | None, request: Request):
        self._step, self._request = step, request
        self._take: TakeTogether = list
        names: tuple[str, ...] = ()
        if batch := self._taken_together(replay):
            self._take, names = batch
        context = StepContext() if step else None
        feeds = (*request.feeds, *names)
        # Where processes step together the host reads it when all are done.
        self._counter = step.counter if step and step.how is How.ONE_BY_ONE else None
        self._function = replay.function(
            request.tensors, request.ops, feeds, context, read_after=self._counter
        )
        self.functions = (self._function,)
        self._gauges = replay.state.gauges
        loss = step.loss if step else None
        self._loss = request.tensors.index(loss) if loss in request.tensors else None
        self._keeps_loss = step is not None and step.keeps_loss

    def _taken_together(self, replay: Replay) -> tuple[TakeTogether, tuple[str, ...]] | None:
        """Returns (function that takes a batch, its tensors' names); None: each takes its own."""
        if self._step is None or self._step.take_together is None:
            return None
        roots = [*map(input_node, self._request.tensors), *self._request.ops]
        if replay.splices:  # of several devices, each of which takes a batch
            splices = splice_lib.needed(replay.splices, replay.recorded, set(roots), fed=set())
            roots += [input_node(name) for splice in splices for name in splice.inputs]
        next_batch = only_next_batch(replay, roots) or next_batches(replay, roots)
        if next_batch is None:
            return None
        return self._step.take_together(next_batch), next_batch.outputs

    def run(self, steps: int, feeds: Sequence[tf.Tensor]) -> Ran:
        """Runs one step, however many are asked for."""
        results = self._function(*feeds, *self._take())
        counter = results.pop() if self._counter else None
        if self._keeps_loss and self._loss is not None:
            self._gauges.hold_loss(results[self._loss])
        return Ran(1, results, counter=counter)


class OneByOne(OneStep):
    """Runs each step by a call of its own."""

    def run(self, steps: int, feeds: Sequence[tf.Tensor]) -> Ran:
        """Runs `steps` steps, one call for each; see `Engine.run`."""
        ran = super().run(1, feeds)
        for done in range(1, steps):
            if self._is_nan(ran):
                return ran._replace(steps=done, stopped=Stopped.NAN_LOSS, nan_since=done)
            try:
                ran = super().run(1, feeds)
            except tf.errors.OutOfRangeError as error:
                if _END not in error.message:
                    raise
                return ran._replace(steps=done, stopped=Stopped.END_OF_INPUT)
        return ran._replace(steps=steps, nan_since=steps if self._is_nan(ran) else None)

    def _is_nan(self, ran: Ran) -> bool:
        return self._loss is not None and has_nan(ran.results[self._loss])


def build(replay: Replay, step: Step | None, request: Request, others: Sequence[Engine]) -> OneStep:
    """Makes the engine of a request; see `engine_for`."""
    del others
    one_by_one = step is not None and step.how is How.ONE_BY_ONE
    return (OneByOne if one_by_one else OneStep)(replay, step, request)
