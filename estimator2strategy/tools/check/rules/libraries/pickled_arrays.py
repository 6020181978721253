"""Dicts that NumPy saved as an array, which it loads only if it is told so."""

import ast
from collections.abc import Iterator
from typing import TypeGuard

from estimator2strategy.tools.check.checking import Context
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader import unreached
from estimator2strategy.tools.reader.source import Call, LexicalScope, Source, parents

_OF_DICTS = {"get", "items", "iteritems", "iterkeys", "itervalues", "keys", "values"}


def find(source: Source, context: Context) -> Iterator[Hit]:
    del context
    for call in source.calls:
        if call.last != "item" or call.node.args or not isinstance(call.node.func, ast.Attribute):
            continue
        load = _load(call.node.func.value, call.scope, source)
        if load is None or load.name != "numpy.load" or load.is_open:
            continue
        if load.argument("allow_pickle", 2) is not None or unreached.is_tried(
            load.node, unreached.ANY
        ):
            continue
        if load.argument("encoding") is not None or _is_dict(call.node, call.scope, source):
            yield Hit(load.node, "numpy.load refuses the pickled dict of this file")


def _load(array: ast.expr, scope: LexicalScope, source: Source) -> Call | None:
    """The call that read an array, or the archive that it is an item of; None if not known."""
    archive = array.value if isinstance(array, ast.Subscript) else array
    if not _is_of_self(archive):
        return source.call(archive, scope)
    given = _given(archive.attr, source)
    return source.call(*given[0]) if len(given) == 1 else None


def _given(attribute: str, source: Source) -> list[tuple[ast.expr | None, LexicalScope]]:
    """All that a file assigns to attributes of this name; each with its scope."""
    stores = [(s, where) for s, where in source.stores if s.attr == attribute]
    return [(getattr(next(parents(store)), "value", None), where) for store, where in stores]


def _is_of_self(node: ast.AST | None) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and getattr(node.value, "id", None) == "self"


def _is_dict(item: ast.Call, scope: LexicalScope, source: Source) -> bool:
    """True if the program takes what `.item()` returned for a dict."""
    if _used_as_dict(item):
        return True
    outer = next(parents(item))
    target = outer.targets[0] if isinstance(outer, ast.Assign) else None
    if _is_of_self(target):
        held = (n for n in source.all_of(ast.Attribute) if n.attr == target.attr)
        return len(_given(target.attr, source)) == 1 and any(map(_used_as_dict, held))
    return any(
        _used_as_dict(name)
        for name in source.all_of(ast.Name)
        if (source.assigned(name, source.scope_of(name)) or (None,))[0] is item
    )


def _used_as_dict(node: ast.AST) -> bool:
    parent = next(parents(node), None)
    if isinstance(parent, ast.Subscript) and parent.value is node:
        # No number has items, and a text has none by a constant of a class: `data[Fields.HITS]`.
        is_text = isinstance(getattr(parent.slice, "value", None), str)
        return is_text or str(getattr(parent.slice, "attr", "")).isupper()
    if isinstance(parent, ast.keyword):
        return parent.arg is None
    return isinstance(parent, ast.Attribute) and parent.attr in _OF_DICTS
