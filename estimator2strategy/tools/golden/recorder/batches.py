"""Batches, random numbers and the answers of exports, as a recording keeps them.

A batch is a tree of JSON and a flat list of tensors. Random numbers (dropout, noise) are fed, so
that they are the same in every TensorFlow.
"""

import collections
import contextlib
import importlib
import sys
from typing import Any

import numpy as np
import tensorflow as tf

from estimator2strategy.tools.golden.recorder.options import NoBatchError


def flattened(value: Any, leaves: Any) -> Any:
    """Appends the tensors of `value` to `leaves`; returns the tree that `rebuilt` takes."""
    if value is None:
        return {"kind": "none"}
    if isinstance(value, dict):
        parts = [flattened(part, leaves) for part in value.values()]
        return {"kind": "dict", "keys": list(value), "parts": parts}
    if isinstance(value, tf.SparseTensor):
        shape = value.get_shape()
        dense = static(shape)
        parts = [flattened(p, leaves) for p in (value.indices, value.values, value.dense_shape)]
        return {"kind": "sparse", "parts": parts, "shape": dense}
    if hasattr(value, "nested_row_splits"):
        ragged = [value.flat_values, *value.nested_row_splits]
        parts = [flattened(part, leaves) for part in ragged]
        return {"kind": "ragged", "parts": parts}
    if isinstance(value, (list, tuple)):
        parts = [flattened(part, leaves) for part in value]
        if hasattr(value, "_fields"):
            kind = type(value)
            where = f"{kind.__module__}:{kind.__name__}"
            return {"kind": "namedtuple", "type": where, "keys": kind._fields, "parts": parts}
        return {"kind": type(value).__name__, "parts": parts}
    leaves.append(tf.convert_to_tensor(value))
    return {"kind": "leaf", "index": len(leaves) - 1}


def rebuilt(tree: Any, leaves: Any) -> Any:
    """The structure that `flattened` made `tree` of, with other leaves."""
    kind = tree["kind"]
    if kind == "none":
        return None
    if kind == "leaf":
        return leaves[tree["index"]]
    parts = [rebuilt(part, leaves) for part in tree["parts"]]
    if kind == "dict":
        return collections.OrderedDict(zip(tree["keys"], parts))
    if kind == "sparse":
        return tf.SparseTensor(*parts)
    if kind == "ragged":
        return tf.RaggedTensor.from_nested_row_splits(parts[0], parts[1:])
    if kind == "namedtuple":
        module, _, name = tree["type"].partition(":")
        made: Any = getattr(sys.modules.get(module), name, None)
        # A file says this: it may name any function, and only a class of tuples is called.
        if not (isinstance(made, type) and issubclass(made, tuple) and hasattr(made, "_fields")):
            make: Any = collections.namedtuple
            made = make("Parts", tree["keys"], rename=True)
        return made(*parts)
    return parts if kind == "list" else tuple(parts)


def is_dense(tree: Any) -> Any:
    return tree["kind"] not in ("sparse", "ragged") and all(map(is_dense, tree.get("parts", ())))


def static(shape: Any) -> Any:
    """The sizes of a TensorShape, None where they are not known; None for an unknown rank."""
    return None if shape.ndims is None else [d if d is None else int(d) for d in shape.as_list()]


tf1 = tf.compat.v1

_FUSION = "shuffle_and_repeat_fusion"


def is_dataset(value: Any) -> bool:
    kinds = {tf1.data.Dataset, tf.data.Dataset}
    if hasattr(tf.compat, "v2"):
        kinds.add(tf.compat.v2.data.Dataset)
    return isinstance(value, tuple(kinds))


class _IteratorHook(tf1.train.SessionRunHook):
    def __init__(self, iterator: Any):
        self._initializer = iterator.initializer

    def after_create_session(self, session: "tf.compat.v1.Session", coord: Any) -> None:
        session.run(self._initializer)


def taken_batches(estimator: Any, input_fn: Any, mode: Any, most: Any) -> Any:
    """Calls input_fn as the Estimator does, and takes up to `most` batches.

    Returns:
        ({"count", "structure", "leaves"}, list of batches): a batch is a list of arrays.
    """
    with graph_of(estimator):
        tf1.train.get_or_create_global_step()
        value = estimator._call_input_fn(input_fn, mode)
        hooks = []
        if is_dataset(value):
            value, fused = in_order_of_tf2(value)
            iterator = tf1.data.make_initializable_iterator(value)
            hooks, value = [_IteratorHook(iterator)], iterator.get_next()
        else:
            fused = tf.__version__.startswith("1.") and shuffles_and_repeats()
        leaves: Any = []
        tree = flattened(value, leaves)
        batches: Any = []
        creator = tf1.train.ChiefSessionCreator()
        with tf1.train.MonitoredSession(creator, hooks=hooks) as session:
            while len(batches) < most and not session.should_stop():
                batches.append(session.run(leaves))
        # (The end of the input ends the `with`, without an error.)
        about = [{"dtype": leaf.dtype.name, "shape": static(leaf.get_shape())} for leaf in leaves]
    if not batches:
        raise NoBatchError(f"input_fn gave no batch for mode {mode!r}.")
    summary = {"count": len(batches), "structure": tree, "leaves": about}
    summary["shuffle_and_repeat_fusion"] = fused
    return summary, batches


def in_order_of_tf2(dataset: Any) -> Any:
    """Makes TensorFlow 1.15 shuffle a dataset in the order of TensorFlow 2.

    It made one op of `shuffle` and `repeat`, which has another order after a seed, also in the
    first epoch. A program that says itself if it wants that is left alone.

    Returns:
        (the dataset, True if the two ops may be one)
    """
    options = tf.data.Options()
    if not hasattr(getattr(options, "experimental_optimization", None), _FUSION):
        return dataset, False  # TensorFlow 1.13 did not do it by itself
    said = getattr(dataset.options().experimental_optimization, _FUSION)
    if said is not None:
        return dataset, said
    setattr(options.experimental_optimization, _FUSION, False)
    return dataset.with_options(options), False


def shuffles_and_repeats() -> Any:
    """True if datasets of the default graph, whose iterators input_fn made, do both."""
    graph_def = tf1.get_default_graph().as_graph_def()
    functions = [function.node_def for function in graph_def.library.function]
    ops = {node.op for nodes in [graph_def.node, *functions] for node in nodes}
    return any(op.startswith("ShuffleDataset") for op in ops) and "RepeatDataset" in ops


@contextlib.contextmanager
def graph_of(estimator: Any) -> Any:
    """A fresh graph to call the functions of a program in."""
    if hasattr(estimator, "_placement"):  # estimator2strategy's: with the shapes of TF 1.x
        ours = importlib.import_module("estimator2strategy.estimator.estimator_recording")
        with ours.recording_graph(estimator):
            yield
    else:
        with tf.Graph().as_default():
            tf1.set_random_seed(estimator.config.tf_random_seed)
            yield


# Random op -> how numpy draws the same distribution. uint -> [0, 1), never rounded up to 1.
def _uniform(random: Any, shape: Any, dtype: Any) -> Any:
    bits = {"float16": 10, "bfloat16": 7}.get(dtype, 23)
    return random.randint(0, 1 << bits, shape) / float(1 << bits)


def _normal(random: Any, shape: Any, dtype: Any) -> Any:
    return random.standard_normal(shape)


def _truncated(random: Any, shape: Any, dtype: Any) -> Any:
    values = random.standard_normal(shape)
    while np.any(np.abs(values) > 2):
        values = np.where(np.abs(values) > 2, random.standard_normal(shape), values)
    return values


_DRAWS = {
    "Uniform": _uniform,
    "StandardNormal": _normal,
    "Normal": _normal,
    "TruncatedNormal": _truncated,
}
_KINDS = {"Random" + kind: kind for kind in _DRAWS}
_KINDS.update(
    {"StatelessRandom" + kind + version: kind for kind in _DRAWS for version in ("", "V2")}
)
_KINDS.update({"TruncatedNormal": "TruncatedNormal"})
_KINDS.update({"StatelessTruncatedNormal" + version: "TruncatedNormal" for version in ("", "V2")})
_OTHER_RANDOM = ("Random", "Stateless", "Multinomial", "ParameterizedTruncatedNormal")


class Draws:
    """The numbers that random ops are fed in place of their own: the same everywhere.

    Args:
        ends: Operations; the random ops that these need are fed.
    """

    def __init__(self, ends: Any):
        needed = _needed(ends)
        self.ops, self.uncontrolled = [], []
        for op in tf1.get_default_graph().get_operations():  # in the order of their creation
            if op not in needed:
                continue
            context = op._get_control_flow_context()
            inside_loop = context is not None and not context.IsXLAContext()
            if op.type in _KINDS and not inside_loop:
                self.ops.append(op)
            elif op.type in _KINDS or _is_random(op):
                self.uncontrolled.append(op.name)
        self.shapes: Any = []

    def feed(self, session: "tf.compat.v1.Session", step: Any, feed: Any) -> Any:
        """The values for one step, whose batch is `feed`."""
        if not self.ops:
            return {}
        shapes = session.run([op.inputs[0] for op in self.ops], feed_dict=feed)
        self.shapes = self.shapes or [[int(dim) for dim in shape] for shape in shapes]
        fed = {}
        for i, (op, shape) in enumerate(zip(self.ops, shapes)):
            random = np.random.RandomState([step, i])
            output = op.outputs[0]
            value = _DRAWS[_KINDS[op.type]](random, tuple(shape), output.dtype.base_dtype.name)
            fed[output] = value.astype(output.dtype.as_numpy_dtype)
        return fed

    def about(self) -> Any:
        shapes = self.shapes or [None] * len(self.ops)
        return [
            {"kind": _KINDS[o.type], "op": o.name, "shape": s} for o, s in zip(self.ops, shapes)
        ]


def _is_random(op: Any) -> Any:
    is_random = op.type.startswith(_OTHER_RANDOM) and "Seed" not in op.type
    return is_random and bool(op.outputs) and "Dataset" not in op.type


def _needed(ends: Any) -> Any:
    needed, left = set(), list(ends)
    while left:
        op = left.pop()
        if op not in needed:
            needed.add(op)
            left += [tensor.op for tensor in op.inputs]
            left += op.control_inputs
    return needed


def described(infos: Any) -> Any:
    return {
        name: {
            "dtype": tf.as_dtype(info.dtype).name,
            "shape": None
            if info.tensor_shape.unknown_rank
            else [d.size for d in info.tensor_shape.dim],
        }
        for name, info in infos.items()
    }


def received(inputs: Any, features: Any) -> Any:
    """The feeds of a signature: features of the same names, or tf.Examples made of them.

    Raises:
        ValueError: The recorded features do not fit.
    """
    named = features if isinstance(features, dict) else dict.fromkeys(inputs, features)
    if len(inputs) > 1 or not all(i.dtype == tf.string.as_datatype_enum for i in inputs.values()):
        if features is None or not set(inputs) <= set(named):
            raise ValueError(f"no recorded features {sorted(set(inputs) - set(named))}")
        return {name: named[name] for name in inputs}
    ((name, _),) = inputs.items()
    if not isinstance(features, dict):
        raise ValueError("features have no names to make tf.Examples of")
    rows = len(next(iter(features.values())))
    examples = np.empty([rows], object)
    examples[:] = [
        _example({key: value[i] for key, value in features.items()}) for i in range(rows)
    ]
    return {name: examples}


def _example(features: Any) -> Any:
    example = tf.train.Example()
    for key, value in features.items():
        value, feature = np.asarray(value).ravel(), example.features.feature[key]
        if value.dtype.kind in "OSU":
            feature.bytes_list.value.extend(value.tolist())
        elif value.dtype.kind == "f":
            feature.float_list.value.extend(value.astype(float).tolist())
        else:
            feature.int64_list.value.extend(value.astype(int).tolist())
    return example.SerializeToString()
