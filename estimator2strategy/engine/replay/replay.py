"""A recorded graph on TF2 state, and how parts of it are traced.

    from estimator2strategy.engine.worlds import modern_world

    replay = Replay.of_graph(graph)
    with modern_world():
        function = replay.function(["loss:0"], ["train/Adam"], feeds=["x:0"])
        (loss,) = function(x)

A Replay knows nothing of hooks, sessions, or how many steps are to run.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.graph import NodeDef, RecordedGraph
from estimator2strategy.engine.plan.rewrites import SINGLE_REPLICA, Rewrite
from estimator2strategy.engine.replay import splice as splice_lib
from estimator2strategy.engine.replay.importer import GraphImporter
from estimator2strategy.engine.replay.splice import Splice
from estimator2strategy.engine.replay.state import State
from estimator2strategy.engine.replay.step_context import StepContext

# Bytes, or elements of a filled value, that are as well held twice.
_LARGE = 2**16


@dataclasses.dataclass(frozen=True, eq=False)
class Replay:
    """The nodes of a recording, and what they run on.

    Attributes:
        recorded: The nodes.
        state: The variables, tables and iterators that stand for those of the recorded graph.
        splices: Where replay goes on in TF2 code, in the order of their dependence.
        rewrite: The change to nodes that are not part of a splice.
        device: The values of variables on devices of JAX (a `DeviceValues`), if these run the
            steps; None: TensorFlow does.
    """

    recorded: RecordedGraph
    state: State
    splices: tuple[Splice, ...] = ()
    rewrite: Rewrite = SINGLE_REPLICA
    device: Any = None

    @classmethod
    def of_graph(cls, graph: tf.Graph) -> Replay:
        """A recorded graph on one device, with state of its own."""
        recorded = RecordedGraph(graph)
        return cls(recorded, State(recorded))

    def trace(
        self,
        tensors: Sequence[str],
        ops: Sequence[str],
        feeds: Mapping[str, tf.Tensor],
        context: StepContext | None = None,
    ) -> list[tf.Tensor]:
        """Replays `tensors` and `ops` once, in the function that is being traced.

        Args:
            tensors: Names of the tensors to return.
            ops: Names of the ops to run.
            feeds: Name of a recorded tensor -> its value here.
            context: The facts of the step that is traced; None: it is no step.

        Returns:
            The values of `tensors`.
        """
        roots = {*map(input_node, tensors), *ops}
        importer = self.importer(feeds)
        if context is None:
            importer.supply(constants_to_give(self.recorded, roots, feeds), (), ())
            context = StepContext()
        importer.supply({}, context.ran, ())
        splices = splice_lib.exposing(self.splices, self.recorded, tensors, ops)
        splices = splice_lib.needed(splices, self.recorded, roots, set(map(input_node, feeds)))
        self.trace_splices(importer, splices, roots, context)
        return importer.fetch(tensors, ops)

    def trace_splices(
        self,
        importer: GraphImporter,
        splices: Sequence[Splice],
        roots: set[str],
        context: StepContext,
    ) -> None:
        """Traces `splices`, in the order of their dependence, and gives `importer` their results.

        Args:
            importer: Replays what the host does around them.
            splices: Those that the step needs.
            roots: Names of the nodes that must run.
            context: The facts of the step that is traced.
        """
        if not splices:
            return
        used = splice_lib.used_beside(splices, self.recorded, roots | {*context.read_after})
        context = dataclasses.replace(context, host_uses=frozenset(used))
        for splice in splices:
            values = importer.fetch(splice.inputs)
            results = splice.merge(splice.trace(self.recorded, self.state, values, context))
            # Nodes that wait for the splice wait for its input at least: it may have ended.
            made = [result for result in results if not callable(result)]
            importer.supply(
                dict(zip(splice.outputs, results, strict=True)), [splice.op], made or values
            )
            importer.wait_with_variables(splice.op)

    def importer(self, feeds: Mapping[str, tf.Tensor]) -> GraphImporter:
        """A GraphImporter into the function that is being traced, on the host's variables."""
        return GraphImporter(
            self.recorded,
            self.state.handle,
            feeds,
            self.rewrite,
            streams=self.state.random_streams(),
        )

    def function(
        self,
        tensors: Sequence[str],
        ops: Sequence[str] = (),
        feeds: Sequence[str] = (),
        context: StepContext | None = None,
        read_after: str | None = None,
    ) -> Any:
        """A ConcreteFunction of the `feeds` that runs `ops` and returns `tensors`.

        Must be called in the `modern_world`. See `trace` for the arguments; `feeds` are names.

        Args:
            read_after: A variable (its VarHandleOp) whose value at the end is returned last.
        """

        @tf.function(autograph=False, input_signature=[self.spec(name) for name in feeds])
        def straight(*values: tf.Tensor) -> list[tf.Tensor]:
            results = self.trace(tensors, ops, dict(zip(feeds, values, strict=True)), context)
            if not read_after:
                return results
            # One handle orders the two. But a TPU has another than the host.
            with tf.control_dependencies(results):
                return [*results, self.read(read_after)]

        return straight.get_concrete_function()

    def variable_read(self, tensor: str) -> str | None:
        """As of RecordedGraph; None too if a splice makes the tensor."""
        spliced = any(tensor in splice.outputs for splice in self.splices)
        return None if spliced else self.recorded.variable_read(tensor)

    def read(self, node: str) -> tf.Tensor:
        """Value of the variable of a VarHandleOp, which has one."""
        if self.device is not None:
            self.device.to_host([node])
        variable = self.state.variable(node)
        # A tf.Variable adds an Identity to each read.
        return tf.raw_ops.ReadVariableOp(resource=variable.handle, dtype=variable.dtype)

    def spec(self, name: str) -> tf.TensorSpec:
        """Shape and dtype of a recorded tensor."""
        tensor = self.recorded.graph.get_tensor_by_name(name)
        return tf.TensorSpec(tf.TensorShape(tensor.shape.as_proto()), tensor.dtype)


def constants_to_give(
    recorded: RecordedGraph, roots: Iterable[str], feeds: Collection[str]
) -> dict[str, tf.Tensor]:
    """Values for constants behind `roots`, by tensor name, so that no program holds them.

    - A large constant, such as the examples of an input_fn: TensorFlow copies a program several
      times before it runs. 12 MB of images took 0.2 s.
    - The shape of a large value that fills a variable: TensorFlow computes what is made of the
      constants of a program before it runs. The value would be there twice, once in the variable,
      and its allocator gives no memory back. What is captured is not taken for such a constant.

    Args:
        feeds: Names of tensors that have a value already.
    """
    given: dict[str, np.ndarray] = {}
    for name in recorded.ancestors(roots):
        node = recorded[name]
        if node.op == "Const" and node.attr["value"].ByteSize() >= _LARGE:
            given[f"{name}:0"] = _value(node)
        elif node.op == "AssignVariableOp":
            value = recorded[input_node(node.input[1])]
            shape = recorded[input_node(value.input[0])] if value.op == "Fill" else value
            if value.op == "Fill" and shape.op == "Const":
                dims = _value(shape)
                if math.prod(dims.tolist()) >= _LARGE:
                    given[f"{shape.name}:0"] = dims
    with tf.init_scope():
        return {name: tf.constant(value) for name, value in given.items() if name not in feeds}


def _value(node: NodeDef) -> np.ndarray:
    value: np.ndarray = tf.make_ndarray(node.attr["value"].tensor)
    return value
