"""Gates, which make the gradients of one op wait for one another, and their removal.

                          ... BackpropInput    BackpropFilter ...
                               |       \\         /        |
    conv_grad/tuple/           |        group_deps        |
                               |       /         \\        |
                        control_dependency    control_dependency_1

`tf.train.Optimizer.minimize` makes gates (`gate_gradients=GATE_OP`) because a reference variable
could change between the two gradients. A replayed step needs none: it reads before it writes. It is
faster without them, since the layers below need not wait for a gradient that only an update uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from estimator2strategy.engine.plan.edges import input_node
from estimator2strategy.engine.plan.effects import may_be_waited_for

_GATE = re.compile(r"_grad/tuple(_\d+)?/group_deps$")


def open_gates(nodes: Iterable[Any]) -> None:
    """Takes out the edges by which gradients wait for one another and for nothing else.

    An op with an effect (a write, a check, Python) is waited for as before.

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
