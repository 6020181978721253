"""The program of one core in a step, as a function of its part of the batch.

Example:

    program = core_program(recording, tensors=[loss], ops=[train_op])
    program.nodes           # the recorded nodes that a core runs
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.replay.replicas import ReplicatedModel
from estimator2strategy.engine.replay.xla.core import CoreProgram
from estimator2strategy.errors import UnsupportedError

_TAKERS = frozenset({"IteratorGetNext", "IteratorGetNextSync", "IteratorGetNextAsOptional"})


def core_program(
    recording: Recording, tensors: Sequence[tf.Tensor] = (), ops: Sequence[tf.Operation] = ()
) -> CoreProgram:
    """The program of a core in a recording, or of the host if the model was recorded for one.

    Args:
        tensors: The tensors that a step returns, if the model was recorded for the host.
        ops: Likewise, what it runs.

    Raises:
        UnsupportedError: A replica is spread over several cores (model parallelism).
    """
    recorded = RecordedGraph(recording.graph)
    for splice in recording.splices:
        model = splice.model
        if model is not None:
            return _of_model(recorded, model)
    roots = [*(t.op.name for t in tensors), *(op.name for op in ops)]
    takers = [name for name in recorded.ancestors(roots) if recorded[name].op in _TAKERS]
    batch = [
        t.name for taker in takers for t in recording.graph.get_operation_by_name(taker).outputs
    ]
    return CoreProgram(
        recorded, tuple(batch), tuple(t.name for t in tensors), tuple(op.name for op in ops)
    )


def _of_model(recorded: RecordedGraph, model: ReplicatedModel) -> CoreProgram:
    if model.partitions:
        raise UnsupportedError(
            "TPUConfig.num_cores_per_replica spreads one replica over several cores.\n"
            "  How a TPU partitions such a step is decided on its worker, and cannot be compiled "
            "here.\n"
            "  Leave num_cores_per_replica out for this check."
        )
    replicas = model.strategy.num_replicas_in_sync
    return CoreProgram(recorded, model.feeds, model.outputs, model.ops, replicas)
