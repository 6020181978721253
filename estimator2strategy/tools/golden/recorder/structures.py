"""Structures of tensors, as input_fn returns them: a tree of JSON, and a flat list of tensors."""

import collections
import sys

import tensorflow as tf


def flattened(value, leaves):
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


def rebuilt(tree, leaves):
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
        made = getattr(sys.modules.get(module), name, None)
        # A file says this: it may name any function, and only a class of tuples is called.
        if not (isinstance(made, type) and issubclass(made, tuple) and hasattr(made, "_fields")):
            made = collections.namedtuple("Parts", tree["keys"], rename=True)
        return made(*parts)
    return parts if kind == "list" else tuple(parts)


def is_dense(tree):
    return tree["kind"] not in ("sparse", "ragged") and all(map(is_dense, tree.get("parts", ())))


def static(shape):
    """The sizes of a TensorShape, None where they are not known; None for an unknown rank."""
    return None if shape.ndims is None else [d if d is None else int(d) for d in shape.as_list()]
