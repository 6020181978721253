"""The program of one core in a step, as a function of its part of the batch.

Example:

    program = core_program(recording, tensors=[loss], ops=[train_op])
    program.nodes           # the recorded nodes that a core runs
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import tensorflow as tf

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.replay.replicas import ReplicatedModel
from estimator2strategy.errors import UnsupportedError

_TAKERS = frozenset({"IteratorGetNext", "IteratorGetNextSync", "IteratorGetNextAsOptional"})


@dataclasses.dataclass(frozen=True)
class CoreProgram:
    """A part of a recorded graph that XLA is to compile.

    Attributes:
        recorded: The graph.
        feeds: Names of the tensors that it is given: a core's part of the batch.
        outputs: Names of the tensors that it returns.
        ops: Names of the ops that it runs.
        replicas: The number of cores that run it, in step.
    """

    recorded: RecordedGraph
    feeds: tuple[str, ...]
    outputs: tuple[str, ...]
    ops: tuple[str, ...]
    replicas: int = 1

    @property
    def roots(self) -> list[str]:
        """Names of the nodes that must run."""
        return [*map(input_node, self.outputs), *self.ops]

    @property
    def nodes(self) -> list[str]:
        """The nodes that run, in creation order; without feeds and what makes variables."""
        fed = set(map(input_node, self.feeds))
        behind = self.recorded.ancestors(
            (name for name in self.roots if name not in fed), lambda edge: input_node(edge) in fed
        )
        return [name for name in behind if not self.recorded.creates_resource(name)]

    @property
    def variables(self) -> list[str]:
        """The VarHandleOps of the variables that it reads or writes."""
        recorded = self.recorded
        used = {
            input_node(edge)
            for name in self.nodes
            for edge in recorded[name].input
            if recorded[input_node(edge)].op == "VarHandleOp"
        }
        return sorted(used, key=recorded.position.__getitem__)

    def spec(self, name: str) -> tf.TensorSpec:
        """Shape and dtype of a recorded tensor."""
        tensor = self.recorded.graph.get_tensor_by_name(name)
        return tf.TensorSpec(tf.TensorShape(tensor.shape.as_proto()), tensor.dtype)


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
