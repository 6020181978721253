"""`shape[0].value`."""

import ast

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit, rule


@rule(
    "E2S108",
    "dimension-value",
    Severity.ERROR,
    title="`.value` of a dimension",
    why="The dimensions of a TF2 shape are int or None, which have no `.value`. In a program that "
    "is run by this package a shape gives Dimension objects, and the finding is a note.",
    fix="Write `shape[0]`, or `tf.compat.dimension_value(shape[0])`, which is right on both.",
    target="tf2",
    bad="import tensorflow as tf\n\nwidth = tf.ones([2, 3]).shape[1].value\n",
    good="import tensorflow as tf\n\nwidth = tf.compat.dimension_value(tf.ones([2, 3]).shape[1])\n",
)
def find(source, context):
    for node in reads(source):
        on_tf2 = context.runs_on_tensorflow2(source)
        yield Hit(
            node,
            f"`{ast.unparse(node)}` is an AttributeError on TF2",
            severity=Severity.ERROR if on_tf2 else Severity.INFO,
        )


def reads(source):
    """Each `shape[i].value` of a file that knows TensorFlow."""
    if ".value" not in source.text or not ("tensorflow" in source.text or "tf1" in source.text):
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and node.attr == "value":
            item = node.value
            if isinstance(item, ast.Subscript) and _is_shape(item.value) and _is_index(item.slice):
                yield node


def _is_shape(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == "shape"
    return isinstance(node, ast.Call) and (
        isinstance(node.func, ast.Attribute) and node.func.attr == "get_shape"
    )


def _is_index(node: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, (ast.Constant, ast.Name))
