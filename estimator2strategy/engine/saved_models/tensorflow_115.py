"""Rewrites graphs so that TensorFlow 1.15 and its server load them.

    rewrite(model)        # as `model_files.read` gives it; an error names the op and the remedy

An op of today that TF 1.15 lacks becomes the op that it had in its place, if that means the same.
An attribute that it does not know is left out, if it has its default or is for debugging alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.core.framework.attr_value_pb2 import AttrValue
from tensorflow.core.framework.node_def_pb2 import NodeDef
from tensorflow.core.framework.op_def_pb2 import OpDef
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

from estimator2strategy.engine.user_code import user_line
from estimator2strategy.errors import SavedModelError

VERSION = "1.15"
_TABLE = Path(__file__).with_name("ops_of_tf115.txt")
_NEWEST_TYPE = 23  # uint64; types of references are these and 100
# Attribute that may go -> the condition on its node: one is for debugging, one makes gradients
# sparse, and one says how the cores of a replica share the work.
_WITHOUT_MEANING: Mapping[str, Callable[[NodeDef], bool]] = {
    "debug_name": lambda node: True,
    "sparse_gradient": lambda node: True,
    "use_spmd_for_xla_partitioning": lambda node: node.attr["num_cores_per_replica"].i <= 1,
}
# Ops without a result that only spare memory: they are left out.
_LEFT_OUT = frozenset(["DisableCopyOnRead"])
# Ops of `embedding_lookup_sparse` take its ids as they are; TF 1.15 had to cast them to int32.
_SEGMENT_IDS, _SEGMENT_IDS_INPUT = "Tsegmentids", 2

# Op that TF 1.15 lacks -> the way to do without it.
_REMEDIES = {
    "DecodeImage": "decode with tf.io.decode_jpeg, decode_png, decode_gif or decode_bmp",
    "DecodeWebP": "decode JPEG or PNG",
    "DecodeJxl": "decode JPEG or PNG",
    "ParseSequenceExampleV2": "parse with tf.io.parse_single_sequence_example",
    "DenseBincount": "count with tf.math.unsorted_segment_sum of ones",
    "SparseBincount": "count with tf.math.unsorted_segment_sum of ones",
    "RaggedBincount": "count with tf.math.unsorted_segment_sum of ones",
    "StatelessRandomGetKeyCounter": "draw with tf.compat.v1.random_uniform or random_normal",
    "StatelessRandomUniformV2": "draw with tf.compat.v1.random_uniform",
    "StatelessRandomNormalV2": "draw with tf.compat.v1.random_normal",
    "AnonymousHashTable": "make tables with tf.compat.v1 behaviour, in model_fn or receiver_fn",
    "Xlog1py": "write x * tf.math.log1p(y)",
    "Erfinv": "write it with ops that TF 1.15 has",
    "Ndtri": "write it with ops that TF 1.15 has",
    "ImageProjectiveTransformV3": "resize and crop with tf.image",
}
_OTHERWISE = f"build it of ops that TF {VERSION} has, or serve with TensorFlow 2"


@functools.cache
def _known() -> Mapping[str, Mapping[str, frozenset[int]]]:
    """Op of TF 1.15 -> its attributes -> the types that an attribute may be; none: any value."""
    by_name = {}
    for line in _TABLE.read_text().splitlines():
        if not line.startswith("#"):
            op, *attributes = line.split()
            parts = (attribute.partition("=") for attribute in attributes)
            by_name[op] = {
                name: frozenset(map(int, types.split(","))) if types else frozenset()
                for name, _, types in parts
            }
    return by_name


class _RefusedError(Exception):
    """Carries a refusal to the function that knows more about its node."""

    def __init__(self, node: NodeDef, what: str, remedy: str | None = None) -> None:
        super().__init__(what)
        self.node = node.name
        self.sentence = (
            f"TensorFlow {VERSION} has no {what}, which {node.name!r} is: "
            f"{remedy or _REMEDIES.get(node.op, _OTHERWISE)}."
        )


def check_graph(graph: tf.Graph) -> None:
    """Raises the error of `rewrite` for a graph that is not written yet, with the user's line.

    Raises:
        SavedModelError: It has something that cannot be told to TF 1.15.
    """
    model = SavedModel()
    exported = tf.compat.v1.train.export_meta_graph(graph=graph, strip_default_attrs=True)
    model.meta_graphs.append(exported)
    try:
        _rewrite(model)
    except _RefusedError as refused:
        raise SavedModelError(refused.sentence + _place(graph, refused.node)) from None


def _place(graph: tf.Graph, node: str) -> str:
    """The sentence that says where the user made a node; nothing for a node of a function."""
    try:
        traceback = graph.get_operation_by_name(node).traceback
    except KeyError:
        return ""
    return f" At {user_line(traceback)}"


def rewrite(model: SavedModel) -> None:
    """Rewrites all graphs of a SavedModel.

    Raises:
        SavedModelError: TF 1.15 lacks an op, an attribute or a type, and nothing stands for it.
    """
    try:
        _rewrite(model)
    except _RefusedError as refused:
        raise SavedModelError(refused.sentence) from None


def _rewrite(model: SavedModel) -> None:
    for graph in model.meta_graphs:
        definitions = {op.name: op for op in graph.meta_info_def.stripped_op_list.op}
        library = graph.graph_def.library.function
        calls = {function.signature.name for function in library}
        parts: list[tuple[Any, Callable[..., str]]] = [(graph.graph_def.node, _of_a_graph)]
        parts += [(function.node_def, _of_a_function) for function in library]
        for nodes, output in parts:
            _leave_out(nodes)
            _replace_nodes(nodes, output)
            _cast_segment_ids(nodes, output)
            for node in nodes:
                if node.op not in calls:
                    _fit(node, definitions.get(node.op))


def _of_a_graph(name: str, result: str = "output") -> str:
    return name


def _of_a_function(name: str, result: str = "output") -> str:
    return f"{name}:{result}:0"


def _leave_out(nodes: Any) -> None:
    """Removes the nodes that have no result, and what waits for them."""
    left_out = {f"^{node.name}" for node in nodes if node.op in _LEFT_OUT}
    if not left_out:
        return
    kept = [node for node in nodes if node.op not in _LEFT_OUT]
    for node in kept:
        inputs = [name for name in node.input if name not in left_out]
        del node.input[:]
        node.input.extend(inputs)
    del nodes[:]
    nodes.extend(kept)


def _replace_nodes(nodes: Any, output: Callable[[str], str]) -> None:
    """Replaces each node that has a row in `_REWRITES`, with the constants that it needs.

    Args:
        nodes: The nodes of a graph or of a function.
        output: Gives the reference to the output of a constant, by its name.
    """
    known = _known()
    asked = [node for node in nodes if node.op in _REWRITES and node.op not in known]
    if not asked:
        return
    constants = {node.name: node for node in nodes if node.op == "Const"}
    for node in asked:
        values = [_constant(constants.get(name.partition(":")[0])) for name in node.input]
        nodes.extend([*_REWRITES[node.op](node, values, output)])


def _cast_segment_ids(nodes: Any, output: Callable[..., str]) -> None:
    """Casts the segment ids of each node that has other ones than int32."""
    for node in [node for node in nodes if _SEGMENT_IDS in node.attr]:
        of = node.attr.pop(_SEGMENT_IDS)
        if of.type == tf.int32.as_datatype_enum:
            continue
        cast = nodes.add(name=f"{node.name}/{_SEGMENT_IDS}", op="Cast", device=node.device)
        cast.input.append(node.input[_SEGMENT_IDS_INPUT])
        cast.attr["SrcT"].CopyFrom(of)
        cast.attr["DstT"].type = tf.int32.as_datatype_enum
        node.input[_SEGMENT_IDS_INPUT] = output(cast.name, "y")


def _constant(node: NodeDef | None) -> Any:
    return None if node is None else tf.make_ndarray(node.attr["value"].tensor)


def _fit(node: NodeDef, definition: OpDef | None) -> None:
    """Leaves out the attributes that TF 1.15 does not know.

    Raises:
        _RefusedError: It cannot be done, or the op or a type is not known.
    """
    known = _known().get(node.op)
    if known is None:
        raise _RefusedError(node, node.op)
    defaults = {attr.name: attr.default_value for attr in definition.attr} if definition else {}
    for name in [*node.attr]:
        if name in known:
            _check_types(node, name, known[name])
        elif node.attr[name] == defaults.get(name) or _WITHOUT_MEANING.get(name, _never)(node):
            del node.attr[name]
        elif not name.startswith("_"):
            value = str(node.attr[name]).strip().replace("\n", " ")
            raise _RefusedError(node, f"{node.op} with {name} = {value}")


def _never(node: NodeDef) -> bool:
    return False


def _check_types(node: NodeDef, name: str, allowed: frozenset[int]) -> None:
    value = node.attr[name]
    for number in (value.type, *value.list.type):
        number %= 100
        if number > _NEWEST_TYPE or (number and allowed and number not in allowed):
            what = f"{node.op} of {tf.as_dtype(number).name}"
            raise _RefusedError(node, what, "cast to float32 or int32 before it")


# Values of a node's inputs where they are constants, and otherwise None.
_Values = list[Any]


def _parse_example(
    node: NodeDef, values: _Values, output: Callable[[str], str]
) -> Iterator[NodeDef]:
    """ParseExampleV2 has vectors of keys, where ParseExample has an input for each."""
    sparse, dense, ragged = values[2:5]
    if sparse is None or dense is None or ragged is None or len(ragged):
        what = "ParseExample with ragged features, or keys that are no constants"
        raise _RefusedError(node, what, "parse with tf.io.VarLenFeature")
    inputs = [*node.input[:2]]
    for kind, keys in (("sparse", sparse), ("dense", dense)):
        for i, key in enumerate(keys):
            constant = _string_constant(f"{node.name}/{kind}_key_{i}", key)
            yield constant
            inputs.append(output(constant.name))
    defaults = node.input[5:]
    del node.input[:]
    node.input.extend([*inputs, *defaults])
    node.op = "ParseExample"
    for name in ("num_sparse", "ragged_value_types", "ragged_split_types"):
        node.attr.pop(name, None)
    node.attr["Nsparse"].i = len(sparse)
    node.attr["Ndense"].i = len(dense)


def _string_constant(name: str, value: bytes) -> NodeDef:
    made = NodeDef(name=name, op="Const")
    made.attr["dtype"].type = tf.string.as_datatype_enum
    made.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, tf.string, []))
    return made


def _batch_matmul(node: NodeDef, values: _Values, output: Any) -> Iterable[NodeDef]:
    """BatchMatMulV3 may return another type than it takes."""
    types = {node.attr.pop(name).type for name in ("Ta", "Tb", "Tout")}
    if len(types) > 1:
        raise _RefusedError(node, node.op)
    node.op = "BatchMatMulV2"
    node.attr["T"].CopyFrom(AttrValue(type=types.pop()))
    return ()


def _one_diagonal(op: str, k: int) -> Callable[..., Iterable[NodeDef]]:
    """The V3 ops align several diagonals; for one they are as their V2.

    Args:
        op: The op of TF 1.15.
        k: The number of the input that says which diagonals.
    """

    def rewritten(node: NodeDef, values: _Values, output: Any) -> Iterable[NodeDef]:
        if values[k] is None or values[k].size > 1:
            raise _RefusedError(node, f"{node.op} of several diagonals")
        node.op = op
        node.attr.pop("align", None)
        return ()

    return rewritten


# Op that TF 1.15 lacks -> the function that makes it one that TF 1.15 has, and gives the nodes that
# this one needs.
_REWRITES: Mapping[str, Callable[..., Iterable[NodeDef]]] = {
    "ParseExampleV2": _parse_example,
    "BatchMatMulV3": _batch_matmul,
    "MatrixDiagV3": _one_diagonal("MatrixDiagV2", 1),
    "MatrixDiagPartV3": _one_diagonal("MatrixDiagPartV2", 1),
    "MatrixSetDiagV3": _one_diagonal("MatrixSetDiagV2", 2),
}
