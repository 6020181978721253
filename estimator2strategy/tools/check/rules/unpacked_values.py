"""Calls of the program's own functions that give another number of values than are taken."""

import ast
import os

from estimator2strategy.tools.check import unreached
from estimator2strategy.tools.check.check_report import Severity
from estimator2strategy.tools.check.rule import Hit, rule
from estimator2strategy.tools.check.rules.own_arguments import called_function
from estimator2strategy.tools.check.rules.python2_names import unguarded

_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


@rule(
    "E2S023",
    "unpacked-values",
    Severity.ERROR,
    title="More or fewer values are taken from a function of the program than it returns",
    why="Every `return` of the function gives so many values, and another number of names takes "
    "them: a ValueError when the line runs.",
    fix="Take as many values as the function returns, or return as many as are taken.",
    bad="def model(x):\n    return x, x + 1\n\n\nlogits, weights, loss = model(1)\n",
    good="def model(x):\n    return x, x + 1, x + 2\n\n\nlogits, weights, loss = model(1)\n",
)
def find(source, context):
    for call in source.calls:
        taken = _taken(call.node)
        found = called_function(call, source, context.project) if taken else None
        if found is None or not unguarded(call.node):
            continue
        function, _ = found
        returned = _returned(function.node)
        if not returned or taken in returned:
            continue
        if not unreached.is_tried(call.node, unreached.ANY | {"ValueError"}):
            where = f"{os.path.basename(function.source.path)}:{function.node.lineno}"
            counts = " or ".join(map(str, sorted(returned)))
            message = f"{function.node.name} ({where}) returns {counts} values, not {taken}"
            yield Hit(call.node, message)


def _taken(call):
    """The number of targets that the values of a call are assigned to; 0 if it is not known."""
    assign = call.parent
    if not isinstance(assign, ast.Assign) or assign.value is not call:
        return 0
    counts = {_length(target) for target in assign.targets if not isinstance(target, ast.Name)}
    return (counts.pop() or 0) if len(counts) == 1 else 0


def _length(node):
    """The number of elements that a list or tuple in the source has; None if it is not known."""
    if not isinstance(node, (ast.Tuple, ast.List)):
        return None
    return None if any(isinstance(e, ast.Starred) for e in node.elts) else len(node.elts)


def _returned(function):
    """The numbers of values that a function may return; none if one of them is not known."""
    if not isinstance(function, ast.FunctionDef):
        return set()
    todo, counts = list(function.body), set()
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return set()
        if isinstance(node, ast.Return):
            counts.add(_length(node.value))
        if not isinstance(node, _INNER):
            todo.extend(ast.iter_child_nodes(node))
    return set() if None in counts else counts
