"""Changes of a column that pandas 3 makes in a copy of it."""

import ast

from estimator2strategy.tools.check import library_objects
from estimator2strategy.tools.check.estimator_programs import all_of
from estimator2strategy.tools.check.rule import Hit

_INDEXERS = {"at", "iat", "iloc", "loc"}


def find(source, context):
    if "pandas" not in source.modules:
        return
    for node in all_of(source, ast.Subscript):
        if isinstance(node.ctx, ast.Store):
            column = _column(node.value, source, context.project)
            if column is not None:
                yield Hit(node, _message(column))
    for call in source.calls:
        if isinstance(call.node.func, ast.Attribute) and call.value("inplace") is True:
            column = _column(call.node.func.value, source, context.project)
            if column is not None:
                yield Hit(call.node, _message(column))


def _column(node, source, project):
    """The `table['a']` that a statement changes; None if it is no column of a table."""
    if isinstance(node, ast.Attribute) and node.attr in _INDEXERS:
        node = node.value
    if not isinstance(node, ast.Subscript):
        return None
    of = library_objects.class_of(node, source.scope_of(node), source, project)
    return node if of == "pandas.Series" else None


def _message(column):
    return f"pandas 3: this changes a copy, and {ast.unparse(column)} stays as it was"
