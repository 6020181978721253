"""TF_USE_LEGACY_KERAS set after TensorFlow has read it."""

import ast

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit, rule

_FLAG = "TF_USE_LEGACY_KERAS"


@rule(
    "E2S501",
    "late-legacy-keras",
    Severity.ERROR,
    title="TF_USE_LEGACY_KERAS set after TensorFlow or Keras is imported",
    why="tf.keras decides at its first use which Keras it is. A flag that is set later leaves a "
    "mixed stack, without an error: tf.keras stays Keras 3 while tf.compat.v1.layers becomes "
    "tf-keras.",
    fix="Set it before the first import of tensorflow, best in the shell. Programs that this "
    "package runs do not need it.",
    bad="""\
import os
import tensorflow as tf

os.environ["TF_USE_LEGACY_KERAS"] = "1"
""",
    good="""\
import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import tensorflow as tf
""",
)
def find(source, context):
    if _FLAG not in source.text:
        return
    libraries = ("tensorflow", "keras", "tf_keras")
    imports = [
        t.node.lineno
        for t, _ in source.imports
        if not t.level and t.module.partition(".")[0] in libraries and t.node.col_offset == 0
    ]
    first = min(imports, default=None)
    for node in ast.walk(source.tree):
        if first is not None and _sets_flag(node) and node.lineno > first:
            yield Hit(node, f"{_FLAG} is set after the import in line {first}")


def _sets_flag(node):
    if isinstance(node, ast.Assign):
        return any(_is_flag(t) for t in node.targets)
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
        return False
    first = node.args[0]
    is_setter = node.func.attr in ("setdefault", "putenv")
    return is_setter and isinstance(first, ast.Constant) and first.value == _FLAG


def _is_flag(node):
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Constant)
        and node.slice.value == _FLAG
    )
