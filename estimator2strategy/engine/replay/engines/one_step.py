"""One step, outside of any loop; and runs that are no step at all.

If several processes train together, each run is one step. They tell their collectives apart by the
place of each in a loop, so none may be in a loop.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.replay.engines.step import Engine, Ran, Request, Step, TakeTogether
from estimator2strategy.engine.replay.next_batch import only_next_batch
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.replay.step_context import StepContext


class OneStep(Engine):
    """See the module; an `Engine`.

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
        self._function = replay.function(request.tensors, request.ops, feeds, context)
        self.functions = (self._function,)
        if step and step.kept_loss and step.loss in request.tensors:
            step.kept_loss.prepare(replay.spec(step.loss))

    def _taken_together(self, replay: Replay) -> tuple[TakeTogether, tuple[str, ...]] | None:
        """(the function that takes a batch, names of its tensors); None: the step takes its own."""
        if self._step is None or self._step.take_together is None:
            return None
        roots = [*map(input_node, self._request.tensors), *self._request.ops]
        next_batch = only_next_batch(replay, roots)
        if next_batch is None:
            return None
        return self._step.take_together(next_batch), next_batch.outputs

    def run(self, steps: int, feeds: Sequence[tf.Tensor]) -> Ran:
        del steps  # hooks see every step
        results = self._function(*feeds, *self._take())
        step = self._step
        if step and step.kept_loss and step.loss in self._request.tensors:
            step.kept_loss.keep(results[self._request.tensors.index(step.loss)])
        return Ran(1, results)


def build(replay: Replay, step: Step | None, request: Request, others: Sequence[Engine]) -> OneStep:
    """See `engine_for`."""
    del others
    return OneStep(replay, step, request)
