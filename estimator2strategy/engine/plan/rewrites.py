"""Changes to recorded nodes as they are replayed for one of several replicas.

A rewrite also changes the functions that nodes call (branches of conds, bodies of loops). A process
knows functions by name, so a changed function gets a new name. Every recorded function is changed
in one respect: see `_say_what_it_must_have_done`.
"""

from __future__ import annotations

import dataclasses
import re
import secrets
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.plan.calls import rename_edges
from estimator2strategy.engine.plan.graph import NodeDef

CROSS_REPLICA_SUM = "CrossReplicaSum"
_COLLECTIVE = "CollectiveReduce"
# Its number, where a program asks which replica it is: XLA alone has a kernel for it.
_REPLICA_ID = "XlaReplicaId"

# The outputs of an op, for rewrites that replace one op by another. Most have one, "output".
_OUTPUTS = {
    _COLLECTIVE: ("data",),
    _REPLICA_ID: ("id",),
    "StatelessRandomGetKeyCounter": ("key", "counter"),
}

# Far apart, so that `seed2 + replica * SEED_STRIDE` of one op meets no other op's seed.
SEED_STRIDE = 1_000_003
# Keys of collectives must not meet those of the strategy's own, which count up from 1.
_GROUP_KEY = 1_000_000
_FIRST_INSTANCE_KEY = 1_000_000
# An instance of a collective has one shape for good, so each training of a process has its own.
KEYS_OF_A_TRAINING = 20_000
# Within them, after the sums of the step: what processes say of themselves, whether all have a
# batch, and the chief's variables.
FACTS_KEY, INPUT_KEY, FIRST_START_KEY = 9_000, 9_002, 10_000


@dataclasses.dataclass(frozen=True)
class Rewrite:
    """A change to nodes.

    Attributes:
        tag: Suffix for the names of functions that it changes; the same tag, the same change.
        node: Changes a node in place.
    """

    tag: str
    node: Callable[[NodeDef], None]


def _single_replica(node: NodeDef) -> None:
    if node.op == CROSS_REPLICA_SUM:
        dtype = node.attr["T"].type
        del node.input[1]
        node.attr.clear()
        node.attr["T"].type = dtype
        node.op = "Identity"
    elif node.op == _REPLICA_ID:
        _to_constant(node, 0)


def _to_constant(node: NodeDef, number: int) -> None:
    node.op = "Const"
    node.attr["dtype"].type = tf.int32.as_datatype_enum
    node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(number, tf.int32))


# A sum over one replica is its input. (CrossReplicaSum has a kernel on TPUs only.)
SINGLE_REPLICA = Rewrite("one", _single_replica)


# Ops by which a graph writes events itself.
_EVENTS = re.compile(r"Write\w*Summary|CreateSummary\w+Writer|FlushSummaryWriter|ImportEvent")


def _silent(node: NodeDef) -> None:
    _single_replica(node)
    if _EVENTS.fullmatch(node.op):
        waits_for = [edge for edge in node.input if edge[0] == "^"]
        del node.input[:]
        node.input.extend(waits_for)
        node.attr.clear()
        node.op = "NoOp"


# On a host that is not the chief, who writes events for all.
WITHOUT_EVENTS = Rewrite("silent", _silent)


def _unplaced(node: NodeDef) -> None:
    node.device = ""


# A TPU core runs all of its program itself, whatever device the program names inside it.
ON_TPU = Rewrite("tpu", _unplaced)


def _alone(node: NodeDef) -> None:
    _unplaced(node)
    _single_replica(node)


# Compiled for one core that meets no other.
ALONE_IN_XLA = Rewrite("alone", _alone)


def _to_xla_all_reduce(node: NodeDef) -> None:
    """The sum as XLA has it: CrossReplicaSum can be lowered on a TPU worker only."""
    _unplaced(node)
    if node.op == CROSS_REPLICA_SUM:
        dtype = node.attr["T"].type
        node.attr.clear()
        node.op = "XlaAllReduce"  # of the same inputs
        node.attr["T"].type = dtype
        node.attr["reduce_op"].s = b"Add"
        node.attr["mode"].s = b"CrossReplica"


# Compiled for cores that meet in its sums.
REPLICATED_IN_XLA = Rewrite("all_reduce", _to_xla_all_reduce)


def seeding(rewrite: Rewrite) -> Rewrite:
    """The rewrite that also gives a seed to random ops without one: XLA draws the same for all.

    By chance is `seed2` alone, which a program is given. With the other one, a constant in it, each
    process would have a program of its own, and none would find the compilation of another.
    """

    def node(changed: NodeDef) -> None:
        rewrite.node(changed)
        if "seed2" in changed.attr and not has_seed(changed):
            changed.attr["seed"].i = zlib.crc32(changed.name.encode()) + 1
            changed.attr["seed2"].i = secrets.randbits(62) + 1

    return Rewrite(f"{rewrite.tag}_seeded", node)


def for_replica(replica: int, num_replicas: int, collectives: Mapping[str, int]) -> Rewrite:
    """The rewrite that makes one replica's copy of the graph differ from the others'.

    Seeded random ops of each replica draw their own numbers; unseeded ones do so by themselves.
    Replica 0 draws what one device would.

    Args:
        collectives: Number of each cross-replica sum that is to become a collective, by its name;
            see `numbered_sums`. Sums that are not named stay as they are.
    """

    def rewrite(node: NodeDef) -> None:
        if replica and has_seed(node):
            node.attr["seed2"].i += replica * SEED_STRIDE
        if node.op == _REPLICA_ID:
            _to_constant(node, replica)
        if node.op == CROSS_REPLICA_SUM and node.name in collectives:
            if num_replicas == 1:
                _single_replica(node)
            else:
                _to_collective(node, num_replicas, collectives[node.name])

    return Rewrite(f"{replica}_of_{num_replicas}", rewrite)


def has_seed(node: NodeDef) -> bool:
    """True if `node` draws random numbers that its own seeds determine."""
    return "seed2" in node.attr and bool(node.attr["seed"].i or node.attr["seed2"].i)


def differs_by_replica(node: NodeDef) -> bool:
    """True if `for_replica` makes another node of `node` on each replica."""
    return has_seed(node) or node.op == _REPLICA_ID


def group_key(num_replicas: int) -> int:
    """The key of the group that all replicas are in."""
    return _GROUP_KEY + num_replicas


def instance_key(number: int) -> int:
    """The key of a collective, by its number."""
    return _FIRST_INSTANCE_KEY + number


def numbered_sums(nodes: Iterable[NodeDef]) -> dict[str, int]:
    """A number for each cross-replica sum, equal on all replicas."""
    names = [node.name for node in nodes if node.op == CROSS_REPLICA_SUM]
    return {name: i for i, name in enumerate(names)}


def _to_collective(node: NodeDef, num_replicas: int, number: int) -> None:
    """Makes a sum a V1 collective: automatic control dependencies would order V2's, and hang.

    Like the sum it replaces it may stand in a branch of a cond, if all replicas take that branch.
    """
    dtype = node.attr["T"].type
    del node.input[1]
    node.attr.clear()
    node.op = _COLLECTIVE
    node.attr["T"].type = dtype
    node.attr["group_size"].i = num_replicas
    node.attr["group_key"].i = group_key(num_replicas)
    node.attr["instance_key"].i = instance_key(number)
    node.attr["merge_op"].s = b"Add"
    node.attr["final_op"].s = b"Id"
    node.attr["subdiv_offsets"].list.i.append(0)


def meets(function: Any) -> bool:
    """True if the function itself has a collective, at which replicas wait for one another."""
    return any(node.op == _COLLECTIVE for node in function.node_def)


def copy_summand(nodes: Any, node: NodeDef, output: str = "") -> None:
    """If `node` is a collective, makes it add a copy of its summand that nothing else reads.

    A strategy for several processes makes Grappler put the summands of all collectives into one
    buffer, which is then summed in place (`ScopedAllocatorOptimizer`). Whatever else read a summand
    would see the sum, unless it came first.

    Args:
        nodes: The nodes of the graph or function that `node` is in; the copy is added to them.
        node: Changed in place.
        output: The suffix by which an edge names the only output of a node; none in a graph.
    """
    if node.op != _COLLECTIVE:
        return
    copy = nodes.add(name=f"{node.name}/summand", op="Snapshot", device=node.device)
    copy.input.append(node.input[0])
    copy.attr["T"].type = node.attr["T"].type
    # Grappler merges equal nodes, but not those that differ in an attribute.
    copy.attr["_summand_of"].s = node.name.encode()
    node.input[0] = copy.name + output


def functions(library: Mapping[str, Any], names: Iterable[str], rewrite: Rewrite) -> dict[str, Any]:
    """Rewritten copies of those functions that `rewrite` changes, by their old names.

    Args:
        library: All functions, by name.
        names: The functions in question, with all that they call.
    """
    names = list(names)
    changed: dict[str, Any] = {}
    for name in names:
        copy = _rewritten(library[name], rewrite)
        if copy != library[name]:
            changed[name] = copy
    while callers := [n for n in names if n not in changed and _calls(library[n], changed)]:
        for name in callers:
            changed[name] = type(library[name])()
            changed[name].CopyFrom(library[name])
    for name, function in changed.items():
        function.signature.name = f"{name}_{rewrite.tag}"
    # Only now: a caller comes before what it calls, which must have its new name by then.
    for function in changed.values():
        for node in function.node_def:
            rename_calls(node, changed)
    return changed


def _rewritten(function: Any, rewrite: Rewrite) -> Any:
    """A copy of `function` with its nodes rewritten, each under its full name (see `inner_nodes`).

    Inside a function an edge names the output of its node: `sum:output:0`. A node that becomes
    another op may call it otherwise.
    """
    copy = type(function)()
    copy.CopyFrom(function)
    _say_what_it_must_have_done(copy)
    renamed: dict[str, str] = {}
    for node in list(copy.node_def):
        name, op = node.name, node.op
        node.name = f"{function.signature.name}/{name}"
        rewrite.node(node)
        node.name = name
        if node.op != op:
            before = _edges(name, op, 1)
            renamed.update(zip(before, _edges(name, node.op, len(before)), strict=True))
            copy_summand(copy.node_def, node, ":output:0")

    rename_edges(copy, lambda edge: renamed.get(edge, edge))
    return copy


def _edges(name: str, op: str, count: int) -> list[str]:
    """The edges from the outputs of a node inside a function."""
    if op == "PartitionedCall":  # all are in one list
        return [f"{name}:output:{number}" for number in range(count)]
    return [f"{name}:{output}:0" for output in _OUTPUTS.get(op, ("output",))]


def _say_what_it_must_have_done(function: Any) -> None:
    """Makes ops that wait for a call of `function` wait for its results.

    The results wait for what has side effects: a graph of TF1 has no other way to say so, and a
    Session computed them. A traced function drops a branch of a cond of which only the side
    effects are wanted, unless the branch itself says that they must have happened.
    """
    if function.control_ret:
        return
    for result in function.ret.values():
        node, is_edge, _ = result.partition(":")
        if is_edge and node not in function.control_ret:  # else it is an argument
            function.control_ret[node] = node
            function.signature.control_output.append(node)


def inner_nodes(library: Mapping[str, Any], names: Iterable[str]) -> list[NodeDef]:
    """Copies of the nodes in the functions `names`, named `function/node`."""
    nodes = []
    for name in names:
        for node in library[name].node_def:
            copy = type(node)()
            copy.CopyFrom(node)
            copy.name = f"{name}/{node.name}"
            nodes.append(copy)
    return nodes


def _calls(function: Any, names: Mapping[str, Any]) -> bool:
    return any(called in names for node in function.node_def for called in _called(node))


def _called(node: NodeDef) -> Iterable[str]:
    for attr in node.attr.values():
        yield attr.func.name
        yield from (f.name for f in attr.list.func)


def say_shape(graph_def: tf.compat.v1.GraphDef, read: NodeDef, shape: tf.TensorShape) -> None:
    """Gives the result of the last node, that reads a variable, its shape and the node's name.

    Grappler knows shapes by the inputs of a function, but not of what comes out of a tensor of
    handles; and what it fuses, and so the last digits, depends on them.
    """
    shaped = graph_def.node.add(name=read.name, op="EnsureShape")
    shaped.attr["shape"].shape.CopyFrom(shape.as_proto())
    shaped.attr["T"].type = read.attr["dtype"].type
    read.name += "/shapeless"
    shaped.input.append(read.name)


def rename_calls(node: NodeDef, changed: Mapping[str, Any]) -> None:
    """Makes `node` call the changed functions in place of those they were made from."""
    for attr in node.attr.values():
        for function in (attr.func, *attr.list.func):
            if function.name in changed:
                function.name = changed[function.name].signature.name
