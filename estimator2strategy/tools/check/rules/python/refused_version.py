"""Checks of TensorFlow's version by which a program ends itself."""

import ast

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader import unreached


def find(source, context):
    if "version" not in source.text.lower():
        return
    on_tf2 = context.runs_on_tensorflow2(source)
    for node in source.all_of(ast.Assert, ast.If):
        refused = not isinstance(node, ast.Assert)
        if refused and not isinstance(node.body[0], ast.Raise):
            continue
        if unreached.answer(source, node.test, on_tf2) is not refused:
            continue
        if not unreached.is_tried(node, unreached.ANY | {"AssertionError"}):
            version = unreached.version(on_tf2)
            yield Hit(node, f"TensorFlow {version} does not pass `{ast.unparse(node.test)}`")
