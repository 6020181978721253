"""Splits a served model where its strings end: parsing, numbers, and texts made of the results.

    split(model, ["serve"])["numbers"]        # a SavedModel, as `model_files.write` takes it

TFLite, ONNX and OpenVINO know no strings, tables of strings or parsers. They convert the part of
numbers, which holds all weights. The outputs of one part are the inputs of the next, by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.framework.node_def_pb2 import NodeDef
from tensorflow.core.framework.variable_pb2 import VariableDef
from tensorflow.core.protobuf.meta_graph_pb2 import MetaGraphDef, SignatureDef, TensorInfo
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from estimator2strategy.engine.saved_models.model_files import keep_graph
from estimator2strategy.engine.saved_models.split_plan import NUMBERS, ServedPart, planned
from estimator2strategy.errors import SavedModelError

tf1 = tf.compat.v1

_SIGNATURE = "serving_default"
_PREDICT = "tensorflow/serving/predict"
_INIT_OPS = ("saved_model_main_op", "legacy_init_op")
_INIT_SIGNATURE = "__saved_model_init_op"


def split(
    model: SavedModel, tags: Sequence[str], signature: str | None = None
) -> dict[str, SavedModel]:
    """The parts of a served model, each a SavedModel with the signature `serving_default`.

    Args:
        model: It stays as it is.
        tags: Those of the graph to split.
        signature: The signature to split; None: `predict`, or else `serving_default`.

    Returns:
        `parsing`, `numbers`, and `texts` if strings are made of what the weights compute.

    Raises:
        SavedModelError: There is no such graph or signature, there is nothing to split, or
            strings and numbers cannot be told apart.
    """
    chosen = SavedModel()
    chosen.CopyFrom(model)
    keep_graph(chosen, tags)
    (meta,) = chosen.meta_graphs
    asked = _signature(meta, signature)
    with tf.Graph().as_default() as graph:
        tf1.import_graph_def(meta.graph_def, name="")
        plan = planned(graph, _names(asked.inputs), _names(asked.outputs))
        return {name: _written(chosen, graph, part, name) for name, part in plan.items()}


def _signature(meta: MetaGraphDef, name: str | None) -> SignatureDef:
    there = sorted(key for key in meta.signature_def if not key.startswith("__"))
    name = name or ("predict" if "predict" in there else _SIGNATURE)
    if name not in there:
        raise SavedModelError(f"no signature {name!r}: there are {', '.join(there)}")
    return meta.signature_def[name]


def _names(infos: Mapping[str, Any]) -> dict[str, str]:
    parts = {}
    for key, info in infos.items():
        if not info.name:
            raise SavedModelError(f"{key!r} of the signature is sparse: serve dense tensors")
        parts[key] = info.name
    return parts


def _written(model: SavedModel, graph: tf.Graph, part: ServedPart, name: str) -> SavedModel:
    """The SavedModel of one part."""
    made = SavedModel()
    made.CopyFrom(model)
    (meta,) = made.meta_graphs
    walk = _Walk(graph, part)
    for tensor in part.returned.values():
        walk.add_tensor(tensor)
    if name == NUMBERS:
        _keep_variables(meta, walk)
        for key in (*_INIT_OPS, "asset_filepaths"):
            meta.collection_def.pop(key, None)
        del meta.asset_file_def[:]
    else:
        meta.ClearField("saver_def")
        _keep_tables(meta, walk)
    _write_signature(meta, graph, part, walk)
    nodes = [*walk.nodes(meta)]
    del meta.graph_def.node[:]
    meta.graph_def.node.extend(nodes)
    return made


class _Walk:
    """The ops of a part, as far as they are found, and the inputs that it uses."""

    def __init__(self, graph: tf.Graph, part: ServedPart) -> None:
        self._graph = graph
        self._part = part
        self.used: set[str] = set()
        self._ops: set[tf.Operation] = set()
        self._allowed: dict[tf.Operation, bool] = {}

    def add_tensor(self, name: str) -> None:
        """Adds a tensor, and all that it is computed from."""
        self._add(name)

    def add_op(self, name: str) -> None:
        """Likewise for an op, if the part may have it."""
        op = self._graph.get_operation_by_name(name)
        if self._may_have(op):
            self._add_ops([op])

    def has(self, name: str) -> bool:
        """True if the part has the op of this name, or of this tensor."""
        try:
            op = self._graph.as_graph_element(name)
        except (KeyError, ValueError):
            return False
        return (op if isinstance(op, tf.Operation) else op.op) in self._ops

    def _add(self, name: str) -> None:
        if name in self._part.fed:
            self.used.add(name)
        else:
            self._add_ops([self._graph.get_tensor_by_name(name).op])

    def _add_ops(self, waiting: list[tf.Operation]) -> None:
        while waiting:
            op = waiting.pop()
            if op in self._ops:
                continue
            if op in self._part.forbidden:
                raise SavedModelError(f"{op.name!r} ({op.type}) needs strings and weights at once")
            self._ops.add(op)
            for tensor in op.inputs:
                if tensor.name in self._part.fed:
                    self.used.add(tensor.name)
                else:
                    waiting.append(tensor.op)
            waiting.extend(control for control in op.control_inputs if self._may_have(control))

    def _may_have(self, op: tf.Operation) -> bool:
        """True if neither an op nor what it is computed from is forbidden."""
        seen, waiting = set(), [op]
        while waiting:
            other = waiting.pop()
            if other in seen or other in self._ops:
                continue
            seen.add(other)
            if other in self._part.forbidden:
                return False
            waiting += [t.op for t in other.inputs if t.name not in self._part.fed]
        return True

    def nodes(self, meta: MetaGraphDef) -> Iterator[NodeDef]:
        """The nodes of the part, with placeholders for what it is fed."""
        names = {op.name for op in self._ops}
        for tensor in sorted(self.used):
            yield _placeholder(self._part.fed[tensor], self._graph.get_tensor_by_name(tensor))
        for node in meta.graph_def.node:
            if node.name in names:
                kept = NodeDef()
                kept.CopyFrom(node)
                kept.ClearField("input")
                kept.input.extend(self._inputs(node, names))
                yield kept

    def _inputs(self, node: NodeDef, names: set[str]) -> Iterator[str]:
        for name in node.input:
            tensor = name if ":" in name else f"{name}:0"
            if name.startswith("^"):
                if name[1:] in names:
                    yield name
            elif tensor in self.used:
                yield _fed_name(self._part.fed[tensor])
            else:
                yield name


def _fed_name(name: str) -> str:
    """The node of an input: no other node's name begins so."""
    return f"part_input_{name}"


def _placeholder(name: str, tensor: tf.Tensor) -> NodeDef:
    node = NodeDef(name=_fed_name(name), op="Placeholder")
    node.attr["dtype"].type = tensor.dtype.base_dtype.as_datatype_enum
    node.attr["shape"].shape.CopyFrom(tensor.shape.as_proto())
    return node


def _keep_variables(meta: MetaGraphDef, walk: _Walk) -> None:
    """Adds what saves and restores all variables, and what their collections name."""
    saver = meta.saver_def
    for name in (saver.save_tensor_name, saver.restore_op_name, saver.filename_tensor_name):
        if name:
            walk.add_op(name.partition(":")[0])
    for collection in meta.collection_def.values():
        for content in collection.bytes_list.value:
            for name in _ops_of_variable(content):
                walk.add_op(name)


def _ops_of_variable(content: bytes) -> Iterator[str]:
    try:
        variable = VariableDef.FromString(content)
    except DecodeError:
        return
    tensors = (variable.variable_name, variable.initializer_name, variable.snapshot_name)
    for name in (*tensors, variable.initial_value_name):
        if name:
            yield name.partition(":")[0]


def _keep_tables(meta: MetaGraphDef, walk: _Walk) -> None:
    """Adds what initialises tables, and forgets the collections of variables."""
    for key in [*meta.collection_def]:
        if meta.collection_def[key].HasField("bytes_list"):
            del meta.collection_def[key]
    for key in _INIT_OPS:
        if key in meta.collection_def:
            for name in meta.collection_def[key].node_list.value:
                walk.add_op(name)


def _write_signature(meta: MetaGraphDef, graph: tf.Graph, part: ServedPart, walk: _Walk) -> None:
    init = meta.signature_def.get(_INIT_SIGNATURE)
    kept = SignatureDef()
    if init is not None:
        kept.CopyFrom(init)
        for info in init.outputs.values():
            walk.add_op(info.name)
    meta.ClearField("signature_def")
    if init is not None and all(walk.has(info.name) for info in kept.outputs.values()):
        meta.signature_def[_INIT_SIGNATURE].CopyFrom(kept)
    signature = SignatureDef(method_name=_PREDICT)
    for tensor in walk.used:
        name = part.fed[tensor]
        info = _info(graph.get_tensor_by_name(tensor), f"{_fed_name(name)}:0")
        signature.inputs[name].CopyFrom(info)
    for name, tensor in part.returned.items():
        now = f"{_fed_name(part.fed[tensor])}:0" if tensor in walk.used else tensor
        signature.outputs[name].CopyFrom(_info(graph.get_tensor_by_name(tensor), now))
    meta.signature_def[_SIGNATURE].CopyFrom(signature)
    _drop_collections(meta, walk)


def _info(tensor: tf.Tensor, name: str) -> TensorInfo:
    dtype = tensor.dtype.base_dtype.as_datatype_enum
    return TensorInfo(name=name, dtype=dtype, tensor_shape=tensor.shape.as_proto())


def _drop_collections(meta: MetaGraphDef, walk: _Walk) -> None:
    """Removes from collections what names nodes that the part has not."""
    for key in [*meta.collection_def]:
        values = meta.collection_def[key].node_list.value
        kept = [name for name in values if walk.has(name)]
        if len(kept) < len(values):
            del values[:]
            values.extend(kept)
