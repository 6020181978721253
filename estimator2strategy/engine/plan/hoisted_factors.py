"""Sums whose common factor TF 1.15 took out, so that the sum came before an update.

    with tf.control_dependencies([step]):
        mixed = 0.5 * target + 0.5 * w          # runs as 0.5 * (target + w)

There the constant waits for `step`, and each product waits for the constant. A rewrite of TF 1.15's
graphs multiplied the sum instead. Nothing holds up the new sum, so it has the value of `w` from
before the step. With unequal factors there is no rewrite, and `w` is that of after the step.

The conditions are TF 1.15's: products and quotients by one constant, of equal and known shapes, in
a sum that is no part of a longer one. `tests/goldens/alternating.json` has its results.
"""

from __future__ import annotations

import collections
from collections.abc import Collection, Sequence
from typing import Any

import tensorflow as tf

from estimator2strategy.engine.plan.edges import input_node, tensor_name

_SUMS = frozenset({"Add", "AddN", "AddV2"})
_CONSTANT_AT = {"Mul": (0, 1), "RealDiv": (1,)}


def hoist_factors(nodes: Sequence[Any], references: Collection[str], graph: tf.Graph) -> list[Any]:
    """Returns the nodes of a graph, with `factor * sum` for the sums that TF 1.15 took apart.

    Args:
        nodes: The NodeDefs, in creation order. Sums are changed in place.
        references: The VarHandleOps that stand for reference variables.
        graph: The graph of the nodes, which knows their shapes.
    """
    by_name = {node.name: node for node in nodes}
    if not any(_is_late_constant(node) for node in nodes):
        return list(nodes)
    sums = _Sums(by_name, graph)
    result: list[Any] = []
    for node in nodes:
        if node.op in _SUMS and not sums.is_inner(node):
            result += _hoisted(node, sums.terms(node), by_name, references)
        result.append(node)
    return result


class _Sums:
    """The sums of a graph as TF 1.15 saw them: sums of sums of one shape are one sum."""

    def __init__(self, by_name: dict[str, Any], graph: tf.Graph):
        self._nodes = by_name
        self._graph = graph
        used = (input_node(edge) for node in by_name.values() for edge in node.input)
        self._uses = collections.Counter(used)
        self._inner = {
            name
            for node in by_name.values()
            if node.op in _SUMS and self._is_plain(node)
            for name in map(input_node, node.input)
            if by_name[name].op in _SUMS and self._uses[name] == 1 and self._is_plain(by_name[name])
        }

    def is_inner(self, node: Any) -> bool:
        """True if a sum is nothing but a term of another one."""
        return node.name in self._inner

    def terms(self, node: Any) -> list[Any]:
        """The nodes that a sum adds; [] if it cannot be taken apart."""
        if not self._is_plain(node):
            return []
        terms: list[Any] = []
        for edge in node.input:
            term = self._nodes[input_node(edge)]
            terms += self.terms(term) if self.is_inner(term) else [term]
        return terms

    def _is_plain(self, node: Any) -> bool:
        """True if a sum waits for nothing, and its terms have one shape that is known."""
        if any(edge[0] == "^" for edge in node.input):
            return False
        tensors = (self._graph.get_tensor_by_name(tensor_name(edge)) for edge in node.input)
        shapes = {tuple(t.shape.as_list()) if t.shape.is_fully_defined() else None for t in tensors}
        return len(shapes) == 1 and None not in shapes


def _is_late_constant(node: Any) -> bool:
    return node.op == "Const" and len(node.input) > 0


def _hoisted(
    node: Any, terms: Sequence[Any], nodes: dict[str, Any], references: Collection[str]
) -> list[Any]:
    """Makes a sum the product of its common factor and a new sum; returns the new nodes."""
    if len(terms) < 2 or len({term.op for term in terms}) > 1:
        return []
    split = [found for found in (_split(term, nodes) for term in terms) if found]
    if len(split) < len(terms) or len({_content(constant) for constant, _ in split}) > 1:
        return []
    rest = [edge for _, edge in split]
    if not any(_reads_late(nodes[input_node(edge)], references) for edge in rest):
        return []
    added: list[Any] = []
    total = type(node)()
    total.name, total.op = f"{node.name}/hoisted", "AddN"
    total.attr["T"].CopyFrom(node.attr["T"])
    total.attr["N"].i = len(rest)
    for edge in rest:
        read = nodes[input_node(edge)]
        if _reads_late(read, references):
            early = type(node)()
            early.CopyFrom(read)
            early.name = f"{total.name}/read_{len(added)}"
            del early.input[1:]
            added.append(early)
            edge = early.name
        total.input.append(edge)
    node.op = terms[0].op
    if "N" in node.attr:
        del node.attr["N"]
    constant = split[0][0].name
    node.input[:] = [constant, total.name] if node.op == "Mul" else [total.name, constant]
    return [*added, total]


def _split(term: Any, nodes: dict[str, Any]) -> tuple[Any, str] | None:
    """(the constant that a product waits for, the other factor) of a term; None if it has none."""
    if len(term.input) != 2:  # a product that waits itself holds up the new sum, too
        return None
    for place in _CONSTANT_AT.get(term.op, ()):
        constant = nodes[input_node(term.input[place])]
        if _is_late_constant(constant):
            return constant, term.input[1 - place]
    return None


def _content(constant: Any) -> bytes:
    """The same for constants that TF 1.15 merged."""
    value: bytes = constant.attr["value"].SerializeToString()
    return value + repr(sorted(constant.input)).encode()


def _reads_late(node: Any, references: Collection[str]) -> bool:
    """True if a node is a read of a reference variable which waits for something."""
    is_read = node.op == "ReadVariableOp" and len(node.input) > 1
    return is_read and input_node(node.input[0]) in references
