"""The static shapes in the graphs of `families.py`, `models.py` and `programs_here.py`, as JSON.

python3.7 tests/shapes/built.py out.json          # TensorFlow 1.15
python tests/shapes/built.py out.json             # the facade of this package
"""

import importlib
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)


def shape_of(tensor):
    shape = tensor.get_shape()
    return None if shape.ndims is None else shape.as_list()


def named(tf, name, value):
    """Yields (name, static shape) of each tensor in `value`."""
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, tf.SparseTensor):
        parts = {"indices": value.indices, "values": value.values, "shape": value.dense_shape}
        yield name, shape_of(value)
        items = parts.items()
    elif type(value).__name__ == "RaggedTensor":
        parts = {"values": value.flat_values, "splits": list(value.nested_row_splits)}
        yield name, value.shape.as_list() if value.shape.ndims is not None else None
        items = parts.items()
    elif isinstance(value, (list, tuple)):
        items = enumerate(value)
    else:
        if isinstance(value, tf.Tensor):
            yield name, shape_of(value)
        return
    for key, part in items:
        yield from named(tf, f"{name}/{key}", part)


def shapes(tf, function):
    """Name -> static shape of what a function gives, and of all tensors of its graph."""
    with tf.Graph().as_default() as graph:
        try:
            found = {"results": dict(named(tf, "", function(tf)))}
        except Exception as error:  # whatever the version refuses
            found = {"error": f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"}
        found["ops"] = {
            t.name: (op.type, t.dtype.name, shape_of(t))
            for op in graph.get_operations()
            for t in op.outputs
        }
    return found


def functions():
    for name, value in sorted(vars(importlib.import_module("families")).items()):
        if callable(value) and name[0] != "_":
            yield f"families.{name}", value
    for module in ("models", "programs_here"):
        for name, value in importlib.import_module(module).GRAPHS.items():
            yield f"{module}.{name}", value


def main(path):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    if not tf.__version__.startswith("1."):
        import estimator2strategy.tf1 as tf

    tf.logging.set_verbosity(tf.logging.ERROR)
    with open(path, "w") as file:
        json.dump({name: shapes(tf, function) for name, function in functions()}, file)


if __name__ == "__main__":
    main(sys.argv[1])
