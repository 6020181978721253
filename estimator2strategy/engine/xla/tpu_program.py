"""The program that a TPUStrategy sends to a TPU for a step, traced and read without a TPU.

    program = train_program(recording)      # recorded under a TPUStrategy; see `tpu_metadata`
    program.replicas, program.variables, program.nodes

The program is the part of a graph that `strategy.run` marks, with the functions that it calls.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.graph import NodeDef
from estimator2strategy.engine.record.recording import Recording
from estimator2strategy.engine.replay.engines import Request, Step, engine_for
from estimator2strategy.engine.replay.gauges import NAN_GAUGE
from estimator2strategy.engine.replay.replay import Replay
from estimator2strategy.engine.runtime.monitored import replay_of
from estimator2strategy.engine.worlds import modern_world

_IN_PROGRAM = "_tpu_replicate"


def train_program(recording: Recording) -> TpuProgram:
    """The program of the looped train function, with all that a host_call fetches.

    Must be called in the legacy world, as hooks are.

    Raises:
        UnsupportedError: model_fn uses a resource that a TPU core cannot have.
    """
    return TpuProgram(traced_train_function(replay_of(recording), recording.spec, in_graph=True))


def traced_train_function(replay: Replay, spec: Any, *, in_graph: bool = False) -> Any:
    """The train function of an EstimatorSpec; see `traced`."""
    step = Step(spec.train_op.name, loss=spec.loss.name, keeps_loss=True)
    fetches = tf.nest.flatten([getattr(hook, "fetches", []) for hook in spec.training_hooks])
    return traced(replay, [spec.loss, *fetches], [spec.train_op], step, in_graph=in_graph)


def traced(
    replay: Replay,
    tensors: Sequence[tf.Tensor],
    ops: Sequence[tf.Operation] = (),
    step: Step | None = None,
    *,
    in_graph: bool = False,
) -> Any:
    """The function that such a run calls. Nobody fills its variables: to trace takes no memory.

    Args:
        step: The step that a block repeats; None: the run is no step.
        in_graph: True to trace it inside a tf.Graph, where nobody asks for the devices of its
            variables. Always so for several hosts, which are not there.
    """
    request = Request(tuple(t.name for t in tensors), tuple(op.name for op in ops))
    with contextlib.ExitStack() as stack:
        stack.enter_context(modern_world())
        if in_graph or len(replay.recorded.hosts) > 1:
            stack.enter_context(tf.Graph().as_default())
        (function,) = engine_for(replay, step, request).functions
        return function


class TpuProgram:
    """The one TPU program in a function that runs a strategy's step.

    Attributes:
        metadata: The TPUReplicateMetadata node.
        step: The FunctionDef that each core runs.
        nodes: All nodes that cores run, of functions within `step` too.
        outside: All other nodes: the host's.
    """

    def __init__(self, function: Any):
        graph_def = function.graph.as_graph_def()
        self._library = {f.signature.name: f for f in graph_def.library.function}
        scopes = [graph_def.node, *(f.node_def for f in graph_def.library.function)]
        (self._scope,) = (s for s in scopes if any(n.op == "TPUReplicateMetadata" for n in s))
        self._by_name = {node.name: node for node in self._scope}
        (self.metadata,) = self._of_type("TPUReplicateMetadata")
        inside = [node for node in self._scope if _IN_PROGRAM in node.attr]
        (call,) = (node for node in inside if node.op == "StatefulPartitionedCall")
        self.step = self._library[call.attr["f"].func.name]
        self.glue = inside  # what leads from the program's inputs to `step` and back
        self.nodes = [*inside, *self._within([self.step])]
        in_program = {id(node) for node in self.nodes}
        self.outside = [node for scope in scopes for node in scope if id(node) not in in_program]

    @property
    def replicas(self) -> int:
        return int(self.metadata.attr["num_replicas"].i)

    @property
    def inputs(self) -> list[NodeDef]:
        """The TPUReplicatedInputs."""
        return self._of_type("TPUReplicatedInput")

    @property
    def variables(self) -> list[NodeDef]:
        """The inputs through which the program's variables enter, and not the core's gauge."""
        gauge = f"{NAN_GAUGE}/handle"
        return [node for node in self._resources if not node.name.endswith(gauge)]

    @property
    def _resources(self) -> list[NodeDef]:
        resource = tf.resource.as_datatype_enum
        return [node for node in self.inputs if node.attr["T"].type == resource]

    @property
    def batch(self) -> list[list[NodeDef]]:
        """The host's nodes that give each tensor of the batch to replica 0, 1, ..."""
        tensors = [node for node in self.inputs if node not in self._resources]
        # The first one is the replicas' numbers.
        return [[self.source(edge) for edge in node.input] for node in tensors[1:]]

    def source(self, edge: str) -> NodeDef:
        """The node beside the program that an edge comes from."""
        return self._by_name[input_node(edge)]

    def behind(self, node: NodeDef) -> set[str]:
        """Names of the nodes beside the program that `node` waits for, directly or not."""
        behind: set[str] = set()
        frontier = [node]
        while frontier:
            for edge in frontier.pop().input:
                name = input_node(edge)
                if name in self._by_name and name not in behind:  # the others are arguments
                    behind.add(name)
                    frontier.append(self._by_name[name])
        return behind

    def edges_into(self) -> Iterator[tuple[NodeDef, str]]:
        """(node, edge) of everything that enters the program from outside."""
        inside = {node.name for node in self.glue}
        for node in self.glue:
            for edge in node.input:
                if input_node(edge) not in inside:
                    yield node, edge

    def ops(self, op: str) -> list[NodeDef]:
        """The nodes of a type that cores run."""
        return [node for node in self.nodes if node.op == op]

    def group_assignments(self) -> list[list[list[int]]]:
        """The replicas over which each CrossReplicaSum adds."""
        groups = []
        for function in self._functions([self.step]):
            constants = {
                node.name: tf.make_ndarray(node.attr["value"].tensor)
                for node in function.node_def
                if node.op == "Const"
            }
            groups += [
                constants[node.input[1].partition(":")[0]].tolist()
                for node in function.node_def
                if node.op == "CrossReplicaSum"
            ]
        return groups

    def _of_type(self, op: str) -> list[NodeDef]:
        return [node for node in self._scope if node.op == op]

    def _within(self, functions: Iterable[Any]) -> list[NodeDef]:
        return [node for function in self._functions(functions) for node in function.node_def]

    def _functions(self, roots: Iterable[Any]) -> list[Any]:
        by_name = {function.signature.name: function for function in roots}
        frontier = list(by_name.values())
        while frontier:
            for node in frontier.pop().node_def:
                for attr in node.attr.values():
                    for called in (attr.func.name, *(f.name for f in attr.list.func)):
                        if called and called not in by_name:
                            by_name[called] = self._function(called)
                            frontier.append(by_name[called])
        return list(by_name.values())

    def _function(self, name: str) -> Any:
        # Branches of conds, and bodies of loops, that were recorded are known to the process only.
        return self._library.get(name) or _tf_private.function_def(name)
