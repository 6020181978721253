"""A replicated computation, as the stand-in for a TPU runs it.

    program = Program(computation, inputs, variables)       # traced once, as for a TPU
    outputs = program.on_core(3, "/device:CPU:3", inputs[3])

Its nodes run on the CPU that stands for each core, with the core's own variables and number. Sums
over cores become collectives: no CPU has a kernel for `CrossReplicaSum`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context as tf_context
from tensorflow.python.framework import func_graph
from tensorflow.python.tpu import tpu_replication

flat = tf.nest.flatten


class CopiesOfVariables:
    """For each variable of a TPUStrategy, a handle of each core's copy that only programs use.

    A program's handle is another one than the host's on a TPU too: TensorFlow does not see that
    both are of one variable.
    """

    def __init__(self) -> None:
        self._handles: dict[str, list[tf.Tensor]] = {}
        # TensorFlow's key holds the id of a variable, which one of the next session may get.
        self._kept: list[Any] = []
        self._of_first: dict[int, list[tf.Tensor]] = {}

    def handles(self, key: str, variables: Sequence[Any]) -> list[tf.Tensor]:
        if key not in self._handles:
            with tf.init_scope():
                made = [tf.identity(variable.handle) for variable in variables]
            self._handles[key] = made
            self._kept.append(variables)
            self._of_first[id(made[0])] = made
        return self._handles[key]

    def of_core(self, captured: tf.Tensor, core: int) -> tf.Tensor:
        """What a core has in place of a tensor that the program captured."""
        copies = self._of_first.get(id(captured))
        return copies[core] if copies else captured


class _InProgram(tpu_replication.TPUReplicateContext):
    """Where a computation is traced; a variable's handle stands for those of all its copies."""

    def __init__(self, graph: Any, variables: CopiesOfVariables):
        super().__init__("rehearsed", 1, pivot=None)
        self._graph, self._variables = graph, variables

    def AddOp(self, op):  # noqa: N802
        del op  # nothing is marked for a TPU

    def AddValue(self, val):  # noqa: N802
        return val

    def get_replicated_var_handle(self, name, handle_id, vars_, is_mirrored=False, is_packed=False):
        del name, is_mirrored
        copies = vars_[0]._distributed_variables if is_packed else vars_
        return self._graph.capture(self._variables.handles(handle_id, copies)[0])


class Program:
    """A computation that all cores run.

    Args:
        computation: The function that `tpu.replicate` was given.
        inputs: Its arguments on each core.
        variables: The copies of the variables that it uses.
    """

    def __init__(
        self, computation: Callable[..., Any], inputs: Sequence[Any], variables: CopiesOfVariables
    ):
        self._variables = variables
        tensors = map(tf.convert_to_tensor, flat(inputs[0]))
        specs = [tf.TensorSpec(tensor.shape, tensor.dtype) for tensor in tensors]

        def trace(*tensors):
            context = _InProgram(tf.compat.v1.get_default_graph(), variables)
            context.Enter()
            outputs = computation(*tf.nest.pack_sequence_as(inputs[0], tensors))
            context.Exit()
            return [output for output in flat(outputs) if tf.is_tensor(output)]

        graph = func_graph.func_graph_from_py_func("rehearsed", trace, (), {}, specs)
        self._graph, self._nodes = graph, _with_collectives(graph, len(inputs))
        edges = (edge for node in self._nodes.node for edge in node.input)
        self._used = {edge if ":" in edge else f"{edge}:0" for edge in edges}

    def on_core(self, number: int, device: str, inputs: Any) -> list[tf.Tensor]:
        """The outputs of one core, in the function that is being traced."""
        graph = tf.compat.v1.get_default_graph()
        given = dict(zip(_names(self._graph.inputs), map(tf.convert_to_tensor, flat(inputs))))
        for outer, inner in self._graph.captures:
            given[inner.name] = graph.capture(self._variables.of_core(outer, number))
        outputs = _names(self._graph.outputs)
        with tf.device(device):
            made = tf.graph_util.import_graph_def(
                _numbered(self._nodes, number),
                input_map={name: given[name] for name in self._used & given.keys()},
                return_elements=[name for name in outputs if name not in given],
                name=f"core_{number}",
            )
        computed = iter(made)
        return [given[name] if name in given else next(computed) for name in outputs]


def _names(tensors: Iterable[tf.Tensor]) -> list[str]:
    return [tensor.name for tensor in tensors]


# Keys that meet no other's. An instance of a collective has one shape for good.
_GROUP_KEY = 2_000_000
_instance_keys = itertools.count(2_000_000)
_programs = itertools.count()

_NUMBER = "XlaReplicaId"


def _with_collectives(graph: Any, num_replicas: int) -> tf.compat.v1.GraphDef:
    """The nodes of a program, without its inputs, and with collectives in place of sums.

    The functions that they call are registered in this process under names of their own.
    """
    tag = f"rehearsed_{next(_programs)}"
    graph_def = graph.as_graph_def()
    inputs = {tensor.op.name for tensor in graph.inputs}
    result = tf.compat.v1.GraphDef(versions=graph_def.versions)
    result.node.extend(node for node in graph_def.node if node.name not in inputs)
    functions = _functions_behind(result.node)
    for function in functions:
        renamed = _replace_sums(function.node_def, num_replicas)
        for node in function.node_def:
            node.input[:] = [_edge(edge, renamed) for edge in node.input]
        for name, edge in function.ret.items():
            function.ret[name] = _edge(edge, renamed)
        function.signature.name += tag
    _replace_sums(result.node, num_replicas)
    names = {function.signature.name.removesuffix(tag) for function in functions}
    for node in itertools.chain(result.node, *(function.node_def for function in functions)):
        for called in _called(node):
            if called.name in names:
                called.name += tag
    for function in reversed(functions):
        tf_context.context().add_function_def(function)
    return result


def _numbered(nodes: tf.compat.v1.GraphDef, core: int) -> tf.compat.v1.GraphDef:
    """The nodes of a program on one core: where they ask for its number, they have it.

    The functions of such a program are registered once more, under names of their own.
    """
    functions = _functions_behind(nodes.node)
    bodies = [nodes.node, *(function.node_def for function in functions)]
    if not any(node.op == _NUMBER for node in itertools.chain(*bodies)):
        return nodes
    own = type(nodes)()
    own.CopyFrom(nodes)
    names = {function.signature.name for function in functions}
    for function in functions:
        asking = {node.name for node in function.node_def if node.op == _NUMBER}
        for node in function.node_def:
            node.input[:] = [_edge(edge, asking, "output") for edge in node.input]
    for node in itertools.chain(own.node, *bodies[1:]):
        for called in _called(node):
            if called.name in names:
                called.name += f"_{core}"
        if node.op == _NUMBER:
            node.op = "Const"
            node.attr["dtype"].type = tf.int32.as_datatype_enum
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(core, tf.int32))
    for function in reversed(functions):
        function.signature.name += f"_{core}"
        tf_context.context().add_function_def(function)
    return own


def _functions_behind(nodes: Iterable[Any]) -> list[Any]:
    """Copies of the functions that nodes call; a caller comes before what it calls."""
    found: dict[str, Any] = {}
    waiting = list(nodes)
    while waiting:
        for called in _called(waiting.pop()):
            if called.name and called.name not in found:
                definition = tf_context.context().get_function_def(called.name)
                found[called.name] = copy = type(definition)()
                copy.CopyFrom(definition)
                waiting.extend(copy.node_def)
    return list(found.values())


def _called(node: Any) -> Iterator[Any]:
    for attr in node.attr.values():
        yield attr.func
        yield from attr.list.func


def _replace_sums(nodes: Sequence[Any], num_replicas: int) -> set[str]:
    """Changes nodes in place; returns the names of those that were sums."""
    replaced = set()
    by_name = {node.name: node for node in nodes}
    for node in nodes:
        node.device = ""
        if node.op == "CrossReplicaSum":
            groups = by_name[node.input[1].partition(":")[0]].attr["value"].tensor.tensor_shape
            if [dimension.size for dimension in groups.dim] != [1, num_replicas]:
                raise NotImplementedError(f"{node.name} is a sum over groups of cores.")
            replaced.add(node.name)
            _to_collective(node, num_replicas)
    return replaced


def _to_collective(node: Any, num_replicas: int) -> None:
    dtype = node.attr["T"].type
    del node.input[1]  # the groups: one, of all cores
    node.attr.clear()
    node.op = "CollectiveReduce"
    node.attr["T"].type = dtype
    node.attr["group_size"].i = num_replicas
    node.attr["group_key"].i = _GROUP_KEY + num_replicas
    node.attr["instance_key"].i = next(_instance_keys)
    node.attr["merge_op"].s = b"Add"
    node.attr["final_op"].s = b"Id"
    node.attr["subdiv_offsets"].list.i.append(0)


def _edge(edge: str, replaced: set[str], output: str = "data") -> str:
    """Inside of a function an edge names the output of its node."""
    node, _, _ = edge.partition(":")
    return f"{node}:{output}:0" if node in replaced else edge
