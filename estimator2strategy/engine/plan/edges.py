"""Edges of a graph, as a NodeDef spells them: `x`, `x:1` or `^x`."""

from __future__ import annotations


def input_node(edge: str) -> str:
    """The node behind an edge."""
    return edge.lstrip("^").partition(":")[0]


def tensor_name(edge: str) -> str:
    """The data edge `x` or `x:1` as a tensor name: `x:0`, `x:1`."""
    return edge if ":" in edge else f"{edge}:0"
