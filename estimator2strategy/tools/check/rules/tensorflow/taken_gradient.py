"""Gradients of ops that TensorFlow, or the same file, has registered already."""

import ast
import functools
from pathlib import Path

from estimator2strategy.tf1 import facade
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader.source import parents

_REGISTER = ("tf.RegisterGradient", "tf.python.framework.ops.RegisterGradient")
_TABLE = Path(facade.__file__).with_name("gradients.txt")


def find(source, context):
    seen = set()
    for call in source.calls:
        name = call.argument("op_type", 0)
        if call.name not in _REGISTER or not isinstance(name, ast.Constant):
            continue
        if any(isinstance(outer, (ast.Try, ast.If)) for outer in parents(call.node)):
            continue  # it may ask first
        if name.value in _of_tf115():
            yield Hit(call.node, f"TensorFlow registers the gradient of {name.value!r} itself")
        elif name.value in seen and _runs_once(call.node):
            yield Hit(call.node, f"a gradient {name.value!r} is registered in this file already")
        if _runs_once(call.node):
            seen.add(name.value)


def _runs_once(node):
    """True for the decorator of a function of the module."""
    outer = list(parents(node))
    return len(outer) == 2 and isinstance(outer[0], ast.FunctionDef)


@functools.cache
def _of_tf115():
    return frozenset(_TABLE.read_text().split())
