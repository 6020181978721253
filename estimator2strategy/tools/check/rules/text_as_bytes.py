"""Text where a file that was opened for bytes takes or gives bytes."""

import ast

from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit, rule
from estimator2strategy.tools.check.rules.python2_names import unguarded

_TEMPORARY = {"tempfile.NamedTemporaryFile", "tempfile.TemporaryFile"}
_OPENERS = {"builtins.open", "io.open"}
_CSV = {"csv.reader", "csv.DictReader", "csv.writer", "csv.DictWriter"}


@rule(
    "E2S011",
    "text-as-bytes",
    Severity.ERROR,
    title="Text for a file of bytes",
    why="A temporary file is one of bytes unless a mode says otherwise, and csv reads and writes "
    "text. Python 2 made no difference; Python 3 raises a TypeError or a csv.Error.",
    fix='Open the file for text: mode="w+", or "r" and "w" with newline="" for csv.',
    bad="import tempfile\n\nwith tempfile.NamedTemporaryFile() as file:\n    file.write('a\\n')\n",
    good="import tempfile\n\n"
    "with tempfile.NamedTemporaryFile('w+') as file:\n    file.write('a\\n')\n",
)
def find(source, context):
    for call in source.calls:
        if (call.last != "write" and call.name not in _CSV) or not unguarded(call.node):
            continue
        if call.last == "write" and len(call.node.args) == 1 and _is_text(call.node.args[0]):
            opened = _opened(getattr(call.node.func, "value", None), call.scope, source)
            if opened is not None and opened.name in _TEMPORARY and _is_of_bytes(opened, 0, "w+b"):
                yield Hit(call.node, f"{opened.last}() is a file of bytes in Python 3")
        if call.name in _CSV and call.node.args:
            opened = _opened(call.node.args[0], call.scope, source)
            if opened is not None and opened.name in _OPENERS and _is_of_bytes(opened, 1, "r"):
                yield Hit(call.node, f"{call.name} takes a file of text in Python 3")


def _opened(node, scope, source):
    """The call that opens the file which a name or an expression is, for certain; else None."""
    if isinstance(node, ast.Call):
        return source.call(node, scope)
    if not isinstance(node, ast.Name) or scope.find(node.id) is not scope:
        return None
    found = source.assigned(node, scope)
    if found is not None:
        return source.call(found[0], scope)
    items = [
        item
        for with_ in ast.walk(scope.node)
        if isinstance(with_, ast.With)
        for item in with_.items
        if isinstance(item.optional_vars, ast.Name) and item.optional_vars.id == node.id
    ]
    if len(items) != 1 or len(scope.bindings[node.id]) != 1:
        return None
    return source.call(items[0].context_expr, scope)


def _is_of_bytes(opened, position, default):
    mode = opened.argument("mode", position)
    value = default if mode is None else getattr(mode, "value", None)
    return isinstance(value, str) and "b" in value and not opened.is_open


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
