"""Graphs of programs that this repository has: the conformance table, and examples.

`GRAPHS` has functions by name, as `models.py` has. Their code is read as it is, but for flags; its
`tf` is the one that the function is given.
"""

import ast
import functools
import os
import re
import types

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_LEFT_OUT = re.compile(
    r"^(import tensorflow as tf|(tf\.)?flags\..*|(FLAGS|flags) = .*)$", re.MULTILINE
)
MODES = ("train", "eval", "infer")


def _read(*path):
    with open(os.path.join(ROOT, *path)) as file:
        return file.read()


def _loaded(tf, source, name):
    """What the module of a program has, by name; its flags are gone."""
    source = _LEFT_OUT.sub("", source)
    found = {"tf": tf, "__name__": name, "FLAGS": types.SimpleNamespace(use_tpu=False)}
    exec(compile(source, name, "exec"), found)
    return found


def _spec(tf, program, features, labels, mode, params):
    """The loss, predictions and gradients of a model_fn."""
    tf.train.get_or_create_global_step()
    labels = None if mode == "infer" else labels
    spec = program["model_fn"](features, labels, mode, params)
    if getattr(spec, "eval_metrics", None):
        function, given = spec.eval_metrics
        function(*given)
    return {"loss": spec.loss, "predictions": spec.predictions}


def _conformance():
    """Name -> source of each row of `tests/conformance/programs.py`."""
    found = {}
    for node in ast.parse(_read("tests", "conformance", "programs.py")).body:
        if isinstance(node, ast.Assign) and node.targets[0].id in ("_HEAD", "ROWS"):
            found[node.targets[0].id] = ast.literal_eval(node.value)
    return {name: found["_HEAD"] + source for name, source in found["ROWS"].items()}


def _row(tf, source, mode):
    program, params = _loaded(tf, source, "program"), {"batch_size": 8}
    batches = tf.data.make_one_shot_iterator(program["input_fn"](params))
    return _spec(tf, program, *batches.get_next(), mode, params)


def _digits(tf, mode):
    program = _loaded(tf, _read("examples", "mnist_tpu", "mnist_tpu.py"), "mnist_tpu")
    images = tf.placeholder(tf.float32, [None, 8, 8, 1])
    labels = tf.placeholder(tf.int32, [None])
    return _spec(tf, program, images, labels, mode, {"dropout": 0.2, "learning_rate": 0.1})


def _flowers(tf, mode):
    program = _loaded(tf, _read("examples", "flowers", "flowers.py"), "flowers")
    params = {"data_dir": ROOT, "batch_size": 8, "transpose_input": True, "use_tpu": False}
    if mode == "infer":
        features, labels = program["serving_input_receiver_fn"]().features, None
    else:
        records = tf.placeholder(tf.string, [None])
        parsed = tf.data.Dataset.from_tensor_slices(records).map(program["parse"]).batch(8)
        parsed = parsed.map(lambda x, y: (tf.transpose(x, [1, 2, 3, 0]), y))
        features, labels = tf.data.make_initializable_iterator(parsed).get_next()
    return _spec(tf, program, features, labels, mode, params)


def _graphs():
    for mode in MODES:
        for name, source in sorted(_conformance().items()):
            yield name + ", " + mode, functools.partial(_row, source=source, mode=mode)
        yield "digits, " + mode, functools.partial(_digits, mode=mode)
        yield "flowers, " + mode, functools.partial(_flowers, mode=mode)


GRAPHS = dict(_graphs())
