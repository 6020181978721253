"""The order of a step's reads of variables and of its gradients: waits that it can do without.

A read comes before the writes of a step, or between them:

- A read that waits for something is where the program wrote it down.
- One that waits for nothing comes first, and gets the value from before the step. Waiting for
  constants and no-ops is waiting for nothing.
- A reference variable has one exception: the read of an update (`v.assign(v * 0.9 + x * 0.1)`) is
  where the program wrote it down. The second of two updates then goes on from the first.

In a Session of TF 1.15 the last two were races. These rules are outcomes that each race had, and a
program's result no longer depends on threads. `tests/tf1/test_order_of_updates.py` has what TF 1.15
gave.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.effects import WRITERS, may_be_waited_for

_READ = "ReadVariableOp"
_FED = frozenset({"Placeholder", "PlaceholderWithDefault"})
# The ops between the read of an update and its write. Anything else, a gradient above all, is
# computed from a value that the program read for more than the update.
_ARITHMETIC = frozenset(
    {
        *("Add", "AddN", "AddV2", "BiasAdd", "Cast", "Div", "Exp", "FloorMod", "Identity", "Log"),
        *("Maximum", "Minimum", "Mod", "Mul", "Neg", "Pow", "RealDiv", "Reciprocal", "Reshape"),
        *("Rsqrt", "Select", "SelectV2", "Sqrt", "Square", "StopGradient", "Sub"),
    }
)
_GATE = re.compile(r"_grad/tuple(_\d+)?/group_deps$")


def drop_empty_waits(nodes: Iterable[Any]) -> None:
    """Takes out the edges by which reads of variables wait for ops that do nothing.

    Args:
        nodes: The NodeDefs of a graph; changed in place.
    """
    by_name = {node.name: node for node in nodes}
    for node in by_name.values():
        if node.op == _READ and len(node.input) > 1:
            kept = [edge for edge in node.input[1:] if _holds_up(input_node(edge), by_name)]
            del node.input[1:]
            node.input.extend(kept)


def _holds_up(name: str, nodes: Mapping[str, Any]) -> bool:
    """True if an op among or behind a node has an effect, or a value from outside of the graph."""
    seen: set[str] = set()
    frontier = [name]
    while frontier:
        node = nodes[frontier.pop()]
        if may_be_waited_for(node) or node.op in _FED:
            return True
        if node.name not in seen:
            seen.add(node.name)
            frontier.extend(map(input_node, node.input))
    return False


def reads_of_updates(nodes: Iterable[Any], references: Collection[str]) -> frozenset[str]:
    """The reads of reference variables that serve nothing but an update of the same variable.

    Args:
        nodes: The NodeDefs of a graph.
        references: The VarHandleOps that stand for reference variables.

    Returns:
        Names of ReadVariableOps.
    """
    if not references:
        return frozenset()
    by_name = {node.name: node for node in nodes}
    writes = (node for node in by_name.values() if node.op in WRITERS)
    early: set[str] = set()
    for write in writes:
        variable = input_node(write.input[0])
        if variable in references:
            early |= _reads_behind(input_node(write.input[1]), variable, by_name)
    return frozenset(early)


def _reads_behind(value: str, variable: str, nodes: Mapping[str, Any]) -> set[str]:
    """The reads of `variable` that the node `value` computes arithmetic of."""
    reads: set[str] = set()
    seen: set[str] = set()
    frontier = [value]
    while frontier:
        name = frontier.pop()
        node = nodes[name]
        if name in seen:
            continue
        seen.add(name)
        if node.op == _READ and input_node(node.input[0]) == variable:
            reads.add(name)
        elif node.op in _ARITHMETIC:
            frontier.extend(input_node(edge) for edge in node.input if edge[0] != "^")
    return reads


def open_gates(nodes: Iterable[Any]) -> None:
    """Takes out the edges by which gradients wait for one another and for nothing else.

                              ... BackpropInput    BackpropFilter ...
                                   |       \\         /        |
        conv_grad/tuple/           |        group_deps        |
                                   |       /         \\        |
                            control_dependency    control_dependency_1

    `tf.train.Optimizer.minimize` makes these gates (`gate_gradients=GATE_OP`) because a reference
    variable could change between the two gradients. A replayed step needs none: it reads before it
    writes. It is faster without them, since the layers below need not wait for a gradient that only
    an update uses. An op with an effect (a write, a check, Python) is waited for as before.

    Args:
        nodes: The NodeDefs of a graph, in creation order; changed in place.
    """
    gates = {f"^{node.name}" for node in nodes if node.op == "NoOp" and _GATE.search(node.name)}
    effects = _effects_behind(nodes) if gates else None
    if effects is None:
        return
    for node in nodes:
        if node.op != "Identity":
            continue
        for gate in gates.intersection(node.input):
            if not effects[input_node(gate)] & ~effects[input_node(node.input[0])]:
                node.input.remove(gate)


def _effects_behind(nodes: Iterable[Any]) -> dict[str, int] | None:
    """Node -> the ops with an effect that have run when it has, as a bit for each.

    None if the graph has a loop of TF 1's, in which some nodes come before their inputs.
    """
    behind: dict[str, int] = {}
    bit = 1
    for node in nodes:
        sources = [input_node(edge) for edge in node.input]
        if not behind.keys() >= set(sources):
            return None
        mask = 0
        for source in sources:
            mask |= behind[source]
        if may_be_waited_for(node):
            mask |= bit
            bit <<= 1
        behind[node.name] = mask
    return behind
