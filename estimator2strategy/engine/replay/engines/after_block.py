"""The results that a block's last step left on the cores of a TPU, read when the block is done.

    loop:   next batch | launch       no launch waits for the results of the one before
    after:  the mean of the cores' losses, summaries, the global step

Only where each step asks nothing else of the host: a host_call or a metric is worked on at every
step, with the results of that step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import tensorflow as tf

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.replay import splice as splice_lib
from estimator2strategy.engine.replay.engines.step import Request
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.replay.splice import Splice
from estimator2strategy.engine.replay.step_context import StepContext
from estimator2strategy.engine.replay.tpu_variables import is_tpu


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
