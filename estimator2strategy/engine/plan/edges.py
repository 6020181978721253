"""Names of nodes: in edges, as a NodeDef spells them (`x`, `x:1`, `^x`), and in messages.

A node is imported under a longer name, often several times, and gets another one where TensorFlow
puts a function in the place of its call. A message says a node's `original_node_names`, if it has
any, and all that TensorFlow makes of a node keeps them. So a recorded node has its own name there
as a label, and a node of a function `function/node`.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Any

# `{{node x}}` is an op that failed; `[[x]]` is an op around it, or one that waits for it.
_NODES = re.compile(r"\{\{(?:node|function_node) ([^}]*)\}\}|\[\[([^\]\s{}]+)\]\]")
# The scopes that a GraphImporter imports into, for nodes that are named before labels count.
_SCOPES = re.compile(r"^(?:.*/)?replay(?:_\d+)?/")


def input_node(edge: str) -> str:
    """The node behind an edge."""
    return edge.lstrip("^").partition(":")[0]


def tensor_name(edge: str) -> str:
    """The data edge `x` or `x:1` as a tensor name: `x:0`, `x:1`."""
    return edge if ":" in edge else f"{edge}:0"


def put_labels(graph_def: Any) -> None:
    """Labels all nodes of a recorded graph and of its functions, in place."""
    for node in graph_def.node:
        node.experimental_debug_info.original_node_names[:] = [node.name]
    for function in graph_def.library.function:
        for node in function.node_def:
            label = f"{function.signature.name}/{node.name}"
            node.experimental_debug_info.original_node_names[:] = [label]


def label_of(node: Any) -> str:
    """The label of a node; its name if it has none."""
    labels = node.experimental_debug_info.original_node_names
    label: str = labels[0] if labels else node.name
    return label


def labels_in(message: str, failed: bool = False) -> list[str]:
    """The labels that a message has, in its order, each once.

    Args:
        failed: Only those of ops that failed themselves, not of ops around them.
    """
    matches = (match for match in _NODES.finditer(message) if match[1] or not failed)
    return list(dict.fromkeys(match[1] or match[2] for match in matches))


def known(label: str, names: Container[str]) -> str | None:
    """The one of `names` that a message calls `label`; None if it is none of them."""
    return next((name for name in (label, _SCOPES.sub("", label)) if name in names), None)
