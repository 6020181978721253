"""A fingerprint of a graph, without the names that TensorFlow makes up as it builds one."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import tensorflow as tf

from estimator2strategy.engine import _tf_private
from estimator2strategy.engine.plan.effects import calls_python
from estimator2strategy.engine.plan.graph import NodeDef
from estimator2strategy.engine.worlds import REFERENCES

# The folder that a sharded save op writes to before it merges.
_TEMPORARY = re.compile(rb"_temp_[0-9a-f]{32}")
_UNUSED = re.compile(r"_\d+(?=___redundant_placeholder\d+$)")
_UUID = re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Fingerprint(NamedTuple):
    """Equal for graphs that compute the same, in the same order.

    Attributes:
        digest: Of all nodes and the functions that they call.
        python: The Python functions that they call, compared by `==`.
        references: The variables that stand for reference variables: nodes do not say so, and it
            decides when an update reads its variable (`reads.py`).
    """

    digest: bytes
    python: tuple[Any, ...]
    references: frozenset[str] = frozenset()


def fingerprint(graph: tf.Graph) -> Fingerprint:
    """The fingerprint of a graph, as it is now."""
    references = frozenset(graph.get_collection(REFERENCES))
    return fingerprint_of(graph.as_graph_def())._replace(references=references)


def fingerprint_of(graph_def: tf.compat.v1.GraphDef) -> Fingerprint:
    """The fingerprint of nodes and a library, which it changes."""
    library = {function.signature.name: function for function in graph_def.library.function}
    order: dict[str, int] = {}  # functions, in the order in which they are first called
    python: list[Any] = []
    digest = hashlib.blake2b()

    def add(nodes: Any) -> None:
        for node in nodes:
            for function in _called(node):
                if function.name in library:
                    function.name = str(order.setdefault(function.name, len(order)))
            digest.update(_plain(node, python).SerializeToString(deterministic=True))

    add(graph_def.node)
    done = 0
    while done < len(order):
        function = library[list(order)[done]]
        done += 1
        signature = function.signature
        signature.name = ""
        for argument in signature.input_arg:  # that a loop does not use
            argument.name = _UNUSED.sub("", argument.name)
        digest.update(signature.SerializeToString(deterministic=True))
        digest.update(repr(sorted(function.ret.items())).encode())
        add(function.node_def)
    return Fingerprint(digest.digest(), tuple(python))


def _called(node: NodeDef) -> Iterator[Any]:
    plain = _tf_private.plain_attrs(node.op)
    for key in sorted(key for key in node.attr if key not in plain):  # a map has any order
        attr = node.attr[key]
        yield from (f for f in (attr.func, *attr.list.func) if f.name)


def _plain(node: NodeDef, python: list[Any]) -> NodeDef:
    """The node without made-up names; the Python function that it calls is added to `python`."""
    node.ClearField("experimental_debug_info")
    if calls_python(node):
        python.append(_tf_private.python_function(node.attr["token"].s))
        node.attr["token"].s = b""
    if node.op == "Const" and node.attr["dtype"].type == tf.string.as_datatype_enum:
        values = node.attr["value"].tensor.string_val
        values[:] = [_TEMPORARY.sub(b"_temp_", value) for value in values]
    if "shared_name" in node.attr:
        node.attr["shared_name"].s = _UUID.sub(b"", node.attr["shared_name"].s)
    return node
