"""Reads of a reference variable, which shared its memory in TF 1.15.

    read = tf.identity(v)                      # no copy: the memory of `v`
    with tf.control_dependencies([v.assign(1.0)]):
        doubled = read * 2.0                   # 2.0 with a reference variable

An op that uses such a read gets the value that the variable has when the op runs. So a gradient
that waits for an update has the new value as a factor, beside a residual that was computed before.
A read of a resource variable is a copy. Here each op that depends on a write to a reference
variable gets a read of its own, after that write.

An op that depends on no write gets the value from before the step, also if it looks up rows of the
variable. `tests/goldens/alternating.json` has TF 1.15's results.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from estimator2strategy.engine.plan.edges import input_node, tensor_name
from estimator2strategy.engine.plan.effects import READERS

# Ops whose result is the memory of their first input.
SAME_MEMORY = frozenset({"ExpandDims", "Identity", "Reshape", "Squeeze", "StopGradient"})
_GATHERS = frozenset({"ResourceGather", "ResourceGatherNd"})


class Writes(NamedTuple):
    """The writes to reference variables in a graph, a bit for each.

    Attributes:
        names: The writes, in the order of their bits.
        to: Variable -> its writes.
        behind: Node -> the writes among and behind it.
    """

    names: Sequence[str]
    to: Mapping[str, int]
    behind: Mapping[str, int]


class _Memory(NamedTuple):
    """The memory of a variable, as the result of an op.

    Attributes:
        variable: The VarHandleOp.
        seen: The writes to it that the read behind the result comes after.
        chain: That read, and the ops that pass it on.
    """

    variable: str
    seen: int
    chain: tuple[Any, ...]


def writes(nodes: Iterable[Any], references: Collection[str]) -> Writes:
    """Finds the writes to the reference variables, and the nodes that depend on them.

    Args:
        nodes: The NodeDefs of a graph, in creation order.
        references: The VarHandleOps that stand for reference variables.
    """
    names: list[str] = []
    to: dict[str, int] = dict.fromkeys(references, 0)
    behind: dict[str, int] = {}
    for node in nodes:
        mask = 0
        sources = [input_node(edge) for edge in node.input]
        for source in sources:
            mask |= behind.get(source, 0)  # a back edge of a TF 1 loop is not there yet
        written = [source for source in sources if source in to] if node.op not in READERS else ()
        if written:
            bit = 1 << len(names)
            names.append(node.name)
            mask |= bit
            for variable in written:
                to[variable] |= bit
        behind[node.name] = mask
    return Writes(names, to, behind)


def early_gathers(nodes: Iterable[Any], found: Writes) -> frozenset[str]:
    """The nodes that look up rows of a reference variable and wait for no write to it."""
    return frozenset(
        node.name
        for node in nodes
        if node.op in _GATHERS
        and input_node(node.input[0]) in found.to
        and not found.behind[node.name] & found.to[input_node(node.input[0])]
    )


def split_reads(nodes: Sequence[Any], found: Writes, in_place: Collection[str]) -> list[Any]:
    """Returns the nodes of a graph, with further reads where an op depends on a write.

    Args:
        nodes: The NodeDefs, in creation order. Inputs of some are changed.
        found: The writes in the graph.
        in_place: The reads that wait for nothing, and yet are where the program wrote them down.
    """
    if not found.names:
        return list(nodes)
    return _Splitter(found, in_place).split(nodes)


class _Splitter:
    def __init__(self, found: Writes, in_place: Collection[str]):
        self._found = found
        self._in_place = in_place
        self._bits = {name: 1 << i for i, name in enumerate(found.names)}
        self._passed = 0  # the writes that the program wrote down so far
        self._memory: dict[str, _Memory] = {}
        self._reads: dict[tuple[str, int, int], str] = {}

    def split(self, nodes: Sequence[Any]) -> list[Any]:
        result: list[Any] = []
        for node in nodes:
            for i, edge in enumerate(node.input):
                memory = None if edge[0] == "^" else self._memory.get(tensor_name(edge))
                if memory:
                    awaited = self._awaited(node, memory)
                    if awaited:
                        node.input[i] = self._read_again(edge, memory, awaited, result)
            self._note(node)
            result.append(node)
            self._passed |= self._bits.get(node.name, 0)
        return result

    def _awaited(self, node: Any, memory: _Memory) -> int:
        """The writes that a node depends on and that its input has not seen."""
        return (
            self._found.behind[node.name]
            & self._found.to[memory.variable]
            & ~memory.seen
            & ~self._bits.get(node.name, 0)
        )

    def _read_again(self, edge: str, memory: _Memory, awaited: int, result: list[Any]) -> str:
        """Adds a read after the writes `awaited`, and what passes it on; returns the last node."""
        seen = self._passed & self._found.to[memory.variable]
        key = input_node(edge), awaited, seen
        if key not in self._reads:
            copies: list[Any] = []
            for old in memory.chain:
                copy = type(old)()
                copy.CopyFrom(old)
                copy.name = f"{old.name}/read_again_{len(self._reads)}"
                copy.input[:] = [name for name in old.input if name[0] != "^"]
                if copies:
                    copy.input[0] = copies[-1].name
                copies.append(copy)
            copies[0].input.extend(f"^{name}" for name in self._names(awaited))
            result.extend(copies)
            self._reads[key] = copies[-1].name
            self._memory[f"{copies[-1].name}:0"] = _Memory(memory.variable, seen, tuple(copies))
        return self._reads[key]

    def _names(self, mask: int) -> list[str]:
        return [name for name, bit in self._bits.items() if mask & bit]

    def _note(self, node: Any) -> None:
        """Notes a node whose result is the memory of a reference variable."""
        first = node.input[0] if node.input else ""
        if node.op == "ReadVariableOp" and input_node(first) in self._found.to:
            variable = input_node(first)
            waits = len(node.input) > 1 or node.name in self._in_place
            seen = self._passed & self._found.to[variable] if waits else 0
            self._memory[f"{node.name}:0"] = _Memory(variable, seen, (node,))
        elif node.op in SAME_MEMORY and first and tensor_name(first) in self._memory:
            variable, seen, chain = self._memory[tensor_name(first)]
            self._memory[f"{node.name}:0"] = _Memory(variable, seen, (*chain, node))


def gathers_first(
    names: Sequence[str],
    gathers: Collection[str],
    inputs: Mapping[str, Sequence[str]],
    written_by: Mapping[str, Sequence[str]],
) -> list[str]:
    """Returns `names` with each of `gathers`, and all behind it, before the writes to its variable.

    Args:
        names: Nodes in the order of the program.
        gathers: Those of them that look up rows and wait for no write.
        inputs: Node -> its inputs; of a gather the variable is the first.
        written_by: Node -> the variables that it writes.
    """
    first: dict[str, int] = {}
    for i, name in enumerate(names):
        for variable in written_by.get(name, ()):
            first.setdefault(variable, i)
    rank = {name: (i, 1) for i, name in enumerate(names)}
    position = {name: i for i, name in enumerate(names)}
    for gather in sorted(gathers, key=position.__getitem__):
        place = first.get(inputs[gather][0], len(names))
        frontier = [gather]
        while frontier:
            name = frontier.pop()
            if name in rank and rank[name] > (place, 0):
                rank[name] = (place, 0)
                frontier.extend(inputs[name])
    return sorted(names, key=lambda name: (*rank[name], position[name]))
