"""Makes reference variables of TF 1.15's graphs resource variables, which TensorFlow 2 knows.

    with_resource_variables(model)        # as `model_files.read` gives it

`tf.saved_model.load` gives resource variables as `.variables`, trains them and saves them again.
Reference variables it does not see: they stay in the graph, and get lost when the model is saved
again. Names and checkpoints stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.message import DecodeError
from tensorflow.core.framework.node_def_pb2 import NodeDef
from tensorflow.core.framework.variable_pb2 import VariableDef
from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from estimator2strategy.errors import SavedModelError

_VARIABLES = ("Variable", "VariableV2")
_SCATTER = ["Add", "Div", "Max", "Min", "Mul", "Sub", "Update", "NdAdd", "NdSub", "NdUpdate"]
_APPLY = [
    *("AdaMax", "Adadelta", "Adagrad", "AdagradDA", "AdagradV2", "Adam", "AddSign"),
    *("CenteredRMSProp", "Ftrl", "FtrlV2", "GradientDescent", "Momentum", "PowerSign"),
    *("ProximalAdagrad", "ProximalGradientDescent", "RMSProp"),
]
# Op on references -> the op on resources.
_OPS = {
    "Assign": "AssignVariableOp",
    "AssignAdd": "AssignAddVariableOp",
    "AssignSub": "AssignSubVariableOp",
    "CountUpTo": "ResourceCountUpTo",
    "IsVariableInitialized": "VarIsInitializedOp",
    **{f"Scatter{name}": f"ResourceScatter{name}" for name in _SCATTER},
    **{f"Apply{name}": f"ResourceApply{name}" for name in _APPLY},
    **{f"SparseApply{name}": f"ResourceSparseApply{name}" for name in _APPLY},
}
# Those that return a value, and no reference to the variable.
_OF_VALUES = ("CountUpTo", "IsVariableInitialized")
# The number of variables that come first among the inputs; of the others it is one.
_REFERENCES = {
    "CenteredRMSProp": 4,
    **dict.fromkeys(["Adam", "AdaMax", "Adadelta", "AdagradDA", "Ftrl", "FtrlV2", "RMSProp"], 3),
    **dict.fromkeys(
        ["Adagrad", "AdagradV2", "AddSign", "Momentum", "PowerSign", "ProximalAdagrad"], 2
    ),
}
# Attributes that only the op on references has; `_TYPE` is called otherwise.
_GONE = {
    "Assign": ("validate_shape", "use_locking"),
    "AssignAdd": ("use_locking",),
    "AssignSub": ("use_locking",),
    "IsVariableInitialized": ("dtype",),
    **{f"Scatter{name}": ("use_locking",) for name in _SCATTER if not name.startswith("Nd")},
}
_TYPE_IS_DTYPE = frozenset([*_GONE]) - {"IsVariableInitialized"}
_ON_REFERENCES = frozenset(
    [
        *("RefSwitch", "RefMerge", "RefEnter", "RefExit", "RefSelect", "RefNextIteration"),
        *("RefIdentity", "TemporaryVariable", "DestroyTemporaryVariable"),
    ]
)


def with_resource_variables(model: SavedModel) -> int:
    """Rewrites all graphs; returns the number of variables that were reference variables.

    Raises:
        SavedModelError: An op passes references on, as in a `tf.cond` that assigns to a variable.
    """
    return sum(_GraphRewrite(graph).run() for graph in model.meta_graphs)


class _GraphRewrite:
    """The rewrite of one graph: a new list of its nodes, in which reads are nodes of their own."""

    def __init__(self, graph: MetaGraphDef) -> None:
        self._graph = graph
        self._nodes = {node.name: node for node in graph.graph_def.node}
        self._variables = {n.name for n in graph.graph_def.node if n.op in _VARIABLES}
        self._written: list[NodeDef] = []

    def run(self) -> int:
        """Rewrites the graph; returns the number of its reference variables."""
        if not self._variables:
            return 0
        for original in self._graph.graph_def.node:
            node = NodeDef()
            node.CopyFrom(original)
            self._written.extend(self._rewritten(node))
        self._rewrite_signatures()
        del self._graph.graph_def.node[:]
        self._graph.graph_def.node.extend(self._written)
        self._rewrite_collections()
        return len(self._variables)

    def _rewritten(self, node: NodeDef) -> Iterator[NodeDef]:
        """The nodes that stand for a node."""
        if node.op in _VARIABLES:
            yield _handle(node)
            return
        references = [number for number, name in enumerate(node.input) if self._variable(name)]
        if references and node.op in _ON_REFERENCES:
            raise SavedModelError(
                f"{node.name!r} ({node.op}) passes on a reference to a variable, which resource "
                "variables do not have: export the model with this package, from its checkpoint"
            )
        if node.op == "Identity" and references:
            yield self._read(node.name, node.input[0], node.input[1:])
            return
        handles = _handles(node.op)
        for number in references:
            name = node.input[number]
            if number < handles:
                node.input[number] = self._variable(name)
                node.input.extend(self._after(name))
                continue
            made = self._read(f"{node.name}/read_{number}", name, _controls(node))
            node.input[number] = made.name
            yield made
        yield _on_resources(node)

    def _variable(self, name: str) -> str:
        """The variable that an input refers to, directly or by an assignment; or nothing."""
        name = name.removesuffix(":0")
        while name in self._nodes and name not in self._variables:
            node = self._nodes[name]
            if node.op not in _OPS or node.op in _OF_VALUES:
                return ""
            name = node.input[0].removesuffix(":0")
        return name if name in self._variables else ""

    def _after(self, name: str) -> list[str]:
        """The assignment that an input waits for, as a control input."""
        name = name.removesuffix(":0")
        return [] if name in self._variables else [f"^{name}"]

    def _read(self, name: str, reference: str, controls: Any) -> NodeDef:
        variable = self._variable(reference)
        read = NodeDef(name=name, op="ReadVariableOp", device=self._nodes[variable].device)
        read.input.extend([variable, *self._after(reference), *controls])
        read.attr["dtype"].CopyFrom(self._nodes[variable].attr["dtype"])
        return read

    def _rewrite_signatures(self) -> None:
        """A signature may return a variable itself."""
        for signature in self._graph.signature_def.values():
            for info in signature.outputs.values():
                if self._variable(info.name):
                    name = f"{info.name.partition(':')[0]}/exported"
                    if all(node.name != name for node in self._written):
                        self._written.append(self._read(name, info.name, ()))
                    info.name = f"{name}:0"

    def _rewrite_collections(self) -> None:
        for collection in self._graph.collection_def.values():
            for number, content in enumerate(collection.bytes_list.value):
                variable = _variable_of(content)
                if variable and variable.variable_name.removesuffix(":0") in self._variables:
                    variable.is_resource = True
                    collection.bytes_list.value[number] = variable.SerializeToString()


def _variable_of(content: bytes) -> VariableDef | None:
    try:
        return VariableDef.FromString(content)
    except DecodeError:
        return None


def _handle(node: NodeDef) -> NodeDef:
    handle = NodeDef(name=node.name, op="VarHandleOp", device=node.device)
    handle.input.extend(node.input)
    for name in ("dtype", "shape", "container"):
        if name in node.attr:
            handle.attr[name].CopyFrom(node.attr[name])
    handle.attr["shared_name"].s = node.attr["shared_name"].s or node.name.encode()
    return handle


def _handles(op: str) -> int:
    """The number of an op's inputs that become handles."""
    if op not in _OPS:
        return 0
    return _REFERENCES.get(op.removeprefix("Sparse").removeprefix("Apply"), 1)


def _controls(node: NodeDef) -> list[str]:
    return [name for name in node.input if name.startswith("^")]


def _on_resources(node: NodeDef) -> NodeDef:
    """Makes an op on references the one on resources; others stay."""
    old = node.op
    if old not in _OPS:
        return node
    node.op = _OPS[old]
    for name in (*_GONE.get(old, ()), "_output_shapes"):
        node.attr.pop(name, None)
    if old in _TYPE_IS_DTYPE:
        node.attr["dtype"].CopyFrom(node.attr["T"])
        del node.attr["T"]
    return node
