"""Text where a file gives or takes bytes, and the other way round."""

import ast
import re

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.check.rules.python.python2_names import unguarded
from estimator2strategy.tools.reader.source import parents

_TEMPORARY = {"tempfile.NamedTemporaryFile", "tempfile.TemporaryFile"}
_OPENERS = {"builtins.open", "io.open"}
_FILES = {
    *_OPENERS,
    "tf.gfile.FastGFile",
    "tf.gfile.GFile",
    "tf.gfile.Open",
    "tf.io.gfile.GFile",
    "tf.python.lib.io.file_io.FileIO",
}
# Function -> the position of its file, and what opens one whose text it refuses. A file of
# TensorFlow's takes bytes in any mode.
_PICKLES = {
    f"{module}.{name}": (position, openers)
    for module in ("pickle", "six.moves.cPickle")
    for name, position, openers in (("load", 0, _FILES), ("dump", 1, _OPENERS))
}
_CSV = {"csv.reader", "csv.DictReader", "csv.writer", "csv.DictWriter"}


def find(source, context):
    for call in source.calls:
        known = call.last == "write" or call.name in _CSV or call.name in _PICKLES
        if not known or not unguarded(call.node):
            continue
        if call.last == "write" and len(call.node.args) == 1 and _is_text(call.node.args[0]):
            opened = _opened(getattr(call.node.func, "value", None), call.scope, source)
            if opened is not None and opened.name in _TEMPORARY and _is_of_bytes(opened, 0, "w+b"):
                message = f"{opened.last}() is a file of bytes in Python 3"
                yield Hit(call.node, message, fix=f'Write {opened.last}(mode="w+").')
        if call.name in _CSV and call.node.args:
            opened = _opened(call.node.args[0], call.scope, source)
            if opened is not None and opened.name in _OPENERS and _is_of_bytes(opened, 1, "r"):
                message = f"{call.name} takes a file of text in Python 3"
                yield Hit(call.node, message, fix=f'Open it with "{_way(opened)}" and newline="".')
        if call.name in _PICKLES:
            position, openers = _PICKLES[call.name]
            file = call.argument("file", position)
            opened = _opened(file, call.scope, source) if file is not None else None
            if opened is not None and opened.name in openers and _is_of_text(opened, 1, "r"):
                message = f"{call.name} takes a file of bytes in Python 3"
                yield Hit(call.node, message, fix=f'Open it with "{_way(opened)}b".')


def _way(opened):
    """The mode of a file, without what says that it is one of text or of bytes."""
    return re.sub("[btU]", "", _mode(opened, 1, "r"))


def _opened(node, scope, source):
    """The call that opens the file which a name or an expression is, for certain; else None."""
    if isinstance(node, ast.Call):
        return source.call(node, scope)
    if not isinstance(node, ast.Name) or scope.find(node.id) is not scope:
        return None
    found = source.assigned(node, scope)
    if found is not None:
        return source.call(found[0], scope)
    for outer in parents(node):
        for item in outer.items if isinstance(outer, ast.With) else ():
            if getattr(item.optional_vars, "id", None) == node.id:
                other = _is_bound_in(outer.body, node.id)
                return None if other else source.call(item.context_expr, scope)
    return None


def _is_bound_in(body, name):
    """True if statements give a name another value."""
    return any(
        isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load)
        for statement in body
        for node in ast.walk(statement)
    )


def _is_of_bytes(opened, position, default):
    return "b" in _mode(opened, position, default)


def _is_of_text(opened, position, default):
    return "b" not in (_mode(opened, position, default) or "b")


def _mode(opened, position, default):
    """The mode that a file is opened with; empty if it is not known."""
    mode = opened.argument("mode", position)
    value = default if mode is None else getattr(mode, "value", None)
    return value if isinstance(value, str) and not opened.is_open else ""


def _is_text(node):
    """True for a string, for strings put together, and for what is joined or formatted."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.JoinedStr):
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mod)):
        return _is_text(node.left)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in ("join", "format") and _is_text(node.func.value)
    return False
