"""Uses of a reference variable that nothing orders with its update: races of threads in TF 1.15.

    step = optimizer.minimize(loss)                   # writes `w`
    train_op = tf.group(step, average.assign(w))      # uses it, before or after that

An op races with a write if neither depends on the other, by data or by a control dependency. Only
what decides the value of a variable counts: a loss that is reported, or a summary, does not change
the model. Two writes that add do not race either, since their sum has no order.

Optimizers order their own: `gate_gradients` makes all gradients of an op wait for one another, so
that no update comes before the last use of its variable.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from estimator2strategy.engine.plan.calls import as_partitioned_calls
from estimator2strategy.engine.plan.edges import input_node, tensor_name
from estimator2strategy.engine.plan.effects import READERS
from estimator2strategy.engine.plan.shared_memory import SAME_MEMORY
from estimator2strategy.engine.worlds import REFERENCES

_ADDS = frozenset(
    {
        *("AssignAddVariableOp", "AssignSubVariableOp", "ResourceApplyGradientDescent"),
        *("ResourceScatterAdd", "ResourceScatterSub"),
    }
)
_READS = READERS | {"ResourceGatherNd"}
_ASK = frozenset({"VarIsInitializedOp", "VariableShape"})  # of no value


class Race(NamedTuple):
    """A use, or another write, of a variable that may come before or after a write.

    Attributes:
        variable: The VarHandleOp.
        write: The node that writes it.
        use: The node that uses its value, or writes it too.
    """

    variable: str
    write: str
    use: str


class Access(NamedTuple):
    """The variables that a node uses and writes, by their VarHandleOps."""

    uses: frozenset[str]
    writes: frozenset[str]


def races(graph: tf.Graph, roots: Iterable[str]) -> list[Race]:
    """Finds the races that decide a value of a variable, one for each (variable, write).

    Args:
        graph: A recorded graph.
        roots: The nodes that a step runs.
    """
    references = frozenset(graph.get_collection(REFERENCES))
    if not references:
        return []
    graph_def = graph.as_graph_def()
    as_partitioned_calls(graph_def)
    library = {f.signature.name: f for f in graph_def.library.function}
    nodes = _behind(graph_def.node, roots)
    accesses = _accesses(nodes, references, library)
    return list(_unordered(nodes, accesses))


def _behind(nodes: Iterable[Any], roots: Iterable[str]) -> list[Any]:
    """The nodes among and behind `roots`, in creation order."""
    by_name = {node.name: node for node in nodes}
    seen: set[str] = set()
    frontier = list(roots)
    while frontier:
        name = frontier.pop()
        if name not in seen:
            seen.add(name)
            frontier.extend(map(input_node, by_name[name].input))
    return [node for name, node in by_name.items() if name in seen]


def _unordered(nodes: Sequence[Any], accesses: Mapping[str, Access]) -> Iterator[Race]:
    writes = [name for name, access in accesses.items() if access.writes]
    bits = {name: 1 << i for i, name in enumerate(writes)}
    ops = {node.name: node.op for node in nodes}
    behind, ahead = _reach(nodes, bits)
    to: dict[str, list[str]] = {}
    for name in writes:
        for variable in accesses[name].writes:
            to.setdefault(variable, []).append(name)
    told: set[tuple[str, str]] = set()
    for name, access in accesses.items():
        ordered = behind[name] | ahead[name]
        if not ahead[name]:
            continue  # decides no value of a variable
        for variable in sorted(access.uses | access.writes):
            for write in to.get(variable, ()):
                adds = variable not in access.uses and {ops[name], ops[write]} <= _ADDS
                if bits[write] & ~ordered and not adds and (variable, write) not in told:
                    told.update({(variable, write), (variable, name)})
                    yield Race(variable, write, name)


def _reach(nodes: Sequence[Any], bits: Mapping[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """(node -> the writes among and behind it, node -> those among and ahead of it)."""
    behind: dict[str, int] = {}
    for node in nodes:
        mask = bits.get(node.name, 0)
        for edge in node.input:
            mask |= behind.get(input_node(edge), 0)
        behind[node.name] = mask
    ahead = {node.name: bits.get(node.name, 0) for node in nodes}
    for node in reversed(nodes):
        for edge in node.input:
            ahead[input_node(edge)] |= ahead[node.name]
    return behind, ahead


def _accesses(
    nodes: Sequence[Any], references: Collection[str], library: Mapping[str, Any]
) -> dict[str, Access]:
    """Node -> the reference variables that it uses or writes; only nodes that do.

    A read that copies nothing is no use. The node that it is handed to is one.
    """
    inside = functools.cache(functools.partial(_in_function, library=library))
    memory: dict[str, str] = {}  # a tensor that is the memory of a variable
    accesses: dict[str, Access] = {}
    for node in nodes:
        data = [tensor_name(edge) for edge in node.input if edge[0] != "^"]
        handles = {
            i: input_node(name) for i, name in enumerate(data) if input_node(name) in references
        }
        first = data[0] if data else ""
        if node.op == "ReadVariableOp" and handles:
            memory[f"{node.name}:0"] = handles[0]
            continue
        if node.op in SAME_MEMORY and first in memory:
            memory[f"{node.name}:0"] = memory[first]
            continue
        uses = {memory[name] for name in data if name in memory}
        writes: set[str] = set()
        reads, written = _of_handles(node, frozenset(handles), inside)
        uses.update(handles[i] for i in reads)
        writes.update(handles[i] for i in written)
        if uses or writes:
            accesses[node.name] = Access(frozenset(uses), frozenset(writes))
    return accesses


def _of_handles(node: Any, places: Collection[int], inside: Any) -> tuple[set[int], set[int]]:
    """(the inputs of a node whose variables it uses, those whose variables it writes)."""
    called = [
        function.name
        for attr in node.attr.values()
        for function in ([attr.func] if attr.func.name else attr.list.func)
    ]
    if not places or node.op in _ASK:
        return set(), set()
    if not called:
        return (set(places), set()) if node.op in _READS else (set(), set(places))
    skipped = 1 if node.op in {"Case", "If", "StatelessCase", "StatelessIf"} else 0
    uses: set[int] = set()
    writes: set[int] = set()
    for name in called:
        read, written = inside(name)
        uses |= {i + skipped for i in read}
        writes |= {i + skipped for i in written}
    return uses & set(places), writes & set(places)


def _in_function(name: str, library: Mapping[str, Any]) -> tuple[set[int], set[int]]:
    """As `_of_handles`, of the arguments of a function."""
    function = library[name]
    place = {argument.name: i for i, argument in enumerate(function.signature.input_arg)}
    inside = functools.partial(_in_function, library=library)
    uses: set[int] = set()
    writes: set[int] = set()
    for node in function.node_def:
        handles = {i: place[edge] for i, edge in enumerate(node.input) if edge in place}
        read, written = _of_handles(node, handles, inside)
        uses |= {handles[i] for i in read}
        writes |= {handles[i] for i in written}
    return uses, writes
