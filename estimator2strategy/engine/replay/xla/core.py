"""A part of a recorded graph that XLA is to compile, as a function of its feeds."""

from __future__ import annotations

import dataclasses

import tensorflow as tf

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.graph import RecordedGraph


@dataclasses.dataclass(frozen=True)
class CoreProgram:
    """A part of a recorded graph that XLA is to compile.

    Attributes:
        recorded: The graph.
        feeds: Names of the tensors that it is given: a core's part of the batch.
        outputs: Names of the tensors that it returns.
        ops: Names of the ops that it runs.
        replicas: The number of cores that run it, in step.
        done: Names of the nodes that have run before, or need not.
    """

    recorded: RecordedGraph
    feeds: tuple[str, ...]
    outputs: tuple[str, ...]
    ops: tuple[str, ...]
    replicas: int = 1
    done: frozenset[str] = frozenset()

    @property
    def roots(self) -> list[str]:
        """Names of the nodes that must run."""
        return [*map(input_node, self.outputs), *self.ops]

    @property
    def nodes(self) -> list[str]:
        """The nodes that run, in creation order; without feeds and what makes variables."""
        fed = self.done.union(map(input_node, self.feeds))
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
