"""`shape[0].value`."""

import ast

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader.estimator_programs import all_of
from estimator2strategy.tools.reader.source import parents


def find(source, context):
    for node in (*reads(source), *_reads_by_name(source)):
        on_tf2 = context.runs_on_tensorflow2(source)
        yield Hit(
            node,
            f"`{ast.unparse(node)}` is an AttributeError on TF2",
            severity=Severity.ERROR if on_tf2 else Severity.INFO,
        )


def reads(source):
    """Each `shape[i].value` of a file that knows TensorFlow."""
    for node in _values(source):
        item = node.value
        if isinstance(item, ast.Subscript) and _is_shape(item.value) and _is_index(item.slice):
            yield node


def _reads_by_name(source):
    """Each `.value` of a name that stands for a dimension: `n = x.shape[0]`, `for n in x.shape`."""
    for node in _values(source):
        item = node.value
        scope = source.scope_of(node)
        if isinstance(item, ast.Name):
            shape = _looped_over(item) or _dimension_of(item, scope, source)
        elif isinstance(item, ast.Subscript) and isinstance(item.value, ast.Name):
            found = source.assigned(item.value, scope)
            shape = found[0] if found and _is_index(item.slice) else None
        else:
            continue
        if shape is not None and _is_shape(shape):
            yield node


def _values(source):
    if ".value" not in source.text or not ("tensorflow" in source.text or "tf1" in source.text):
        return
    for node in all_of(source, ast.Attribute):
        if node.attr == "value" and hasattr(node, "parent"):
            yield node


def _dimension_of(name, scope, source):
    """The shape of `name = shape[0]`."""
    found = source.assigned(name, scope)
    if found is None or not isinstance(found[0], ast.Subscript) or not _is_index(found[0].slice):
        return None
    shape = found[0].value
    behind = source.assigned(shape, found[1])
    return behind[0] if behind else shape


def _looped_over(name):
    """The iterable from which a comprehension around a name takes it."""
    for outer in parents(name):
        for loop in getattr(outer, "generators", ()):
            if isinstance(loop.target, ast.Name) and loop.target.id == name.id:
                return loop.iter
    return None


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
