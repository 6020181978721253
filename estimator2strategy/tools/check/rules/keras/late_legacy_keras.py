"""TF_USE_LEGACY_KERAS set after TensorFlow has read it."""

import ast

from estimator2strategy.tools.check.rule import Hit

_FLAG = "TF_USE_LEGACY_KERAS"


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
