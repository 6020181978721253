"""Runs the cases of `cases_*.py` and keeps what came out; under TF 1.15 it makes the goldens.

    python3.7 tests/tf1/contrib/parity.py [module ...]   # writes tests/goldens/contrib/MODULE.json

A case is a function of `tf` that builds a graph and returns what to run, one dict of tensors after
the other. Trainable variables start with values that depend on their names alone.
"""

import functools
import hashlib
import importlib
import json
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
GOLDENS = HERE.parents[1] / "goldens" / "contrib"


def cases(module):
    """The cases of `cases_<module>.py` by name: its public functions."""
    found = vars(importlib.import_module("cases_" + module))
    return {
        name: value
        for name, value in found.items()
        if callable(value) and value.__module__ == "cases_" + module and not name.startswith("_")
    }


def modules():
    """The contrib modules that there are cases for."""
    return sorted(path.stem[len("cases_") :] for path in HERE.glob("cases_*.py"))


def values(shape, name):
    """Reproducible numbers between -0.5 and 0.5: a sine that starts where the name says."""
    start = int(hashlib.md5(name.encode()).hexdigest()[:4], 16) % 100
    size = int(np.prod(shape))
    return (0.5 * np.sin(0.7 * np.arange(size) + start)).reshape(shape)


def deep(tf, path):
    """The file of `tf.contrib` that programs import by its path."""
    return importlib.import_module(tf.__name__ + ".contrib." + path)


def run(tf, case, graph=None):
    """What `case` makes, by default in a graph of `tf`: its variables, the numbers of each run."""
    with (graph or tf.Graph()).as_default():
        tf.set_random_seed(1)
        runs = case(tf)
        runs = runs if isinstance(runs, list) else [runs]
        found = {v.name: v for v in tf.global_variables() + tf.local_variables()}
        found = [found[name] for name in sorted(found)]
        trainable = tf.trainable_variables()
        fills = [
            v.assign(values(v.shape.as_list(), v.op.name).astype(v.dtype.base_dtype.name))
            for v in trainable
            if v.dtype.base_dtype.is_floating
        ]
        described = [
            [v.name, _shape(v), v.dtype.base_dtype.name, any(v is t for t in trainable)]
            for v in found
        ]
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            session.run(tf.tables_initializer())
            session.run(fills)
            fetched = [_plain(session.run(fetches)) for fetches in runs]
    return json.loads(json.dumps({"variables": described, "runs": fetched}))


def _shape(variable):
    return variable.shape.as_list() if variable.shape.ndims is not None else None


def _plain(value):
    """`value` in the types of JSON."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)) or hasattr(value, "_fields"):
        return [_plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (float, np.floating)):
        return float("%.8g" % value)  # noqa: UP031
    if isinstance(value, np.generic):
        return value.item()
    return value


@functools.lru_cache(maxsize=64)
def golden(module):
    """What TF 1.15 made of the cases of `module`, by name."""
    return json.loads((GOLDENS / (module + ".json")).read_text())


def _main():
    import tensorflow as tf

    if not tf.__version__.startswith("1.15"):
        raise SystemExit("Goldens are made by TensorFlow 1.15, and this is " + tf.__version__)
    # As in an Estimator here: what reads a variable does not race with what writes it.
    tf.enable_resource_variables()
    sys.path.insert(0, str(HERE))
    GOLDENS.mkdir(parents=True, exist_ok=True)
    for module in sys.argv[1:] or modules():
        made = {name: run(tf, case) for name, case in cases(module).items()}
        lines = ",\n".join(json.dumps(n) + ": " + json.dumps(m) for n, m in made.items())
        (GOLDENS / (module + ".json")).write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    _main()
