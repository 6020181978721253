"""Dicts that NumPy saved as an array, which it loads only if it is told so."""

import ast

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader import unreached

_OF_DICTS = {"get", "items", "iteritems", "iterkeys", "itervalues", "keys", "values"}


def find(source, context):
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


def _load(array, scope, source):
    """The call that read an array, or the archive that it is an item of; None if not known."""
    archive = array.value if isinstance(array, ast.Subscript) else array
    if not _is_of_self(archive):
        return source.call(archive, scope)
    (value, where), *more = _given(archive.attr, source) or [(None, None)]
    return None if more else source.call(value, where)


def _given(attribute, source):
    """All that a file assigns to attributes of this name; each with its scope."""
    stores = [(s, where) for s, where in source.stores if s.attr == attribute]
    return [(getattr(store.parent, "value", None), where) for store, where in stores]


def _is_of_self(node):
    return isinstance(node, ast.Attribute) and getattr(node.value, "id", None) == "self"


def _is_dict(item, scope, source):
    """True if the program takes what `.item()` returned for a dict."""
    if _used_as_dict(item):
        return True
    target = item.parent.targets[0] if isinstance(item.parent, ast.Assign) else None
    if _is_of_self(target):
        held = (n for n in source.all_of(ast.Attribute) if n.attr == target.attr)
        return len(_given(target.attr, source)) == 1 and any(map(_used_as_dict, held))
    return any(
        _used_as_dict(name)
        for name in source.all_of(ast.Name)
        if (source.assigned(name, source.scope_of(name)) or (None,))[0] is item
    )


def _used_as_dict(node):
    parent = node.parent
    if isinstance(parent, ast.Subscript) and parent.value is node:
        # No number has items, and a text has none by a constant of a class: `data[Fields.HITS]`.
        is_text = isinstance(getattr(parent.slice, "value", None), str)
        return is_text or getattr(parent.slice, "attr", "").isupper()
    if isinstance(parent, ast.keyword):
        return parent.arg is None
    return isinstance(parent, ast.Attribute) and parent.attr in _OF_DICTS
