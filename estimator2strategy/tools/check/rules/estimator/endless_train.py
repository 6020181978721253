"""Runs that never end."""

import ast

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader.estimator_programs import given_input, runs


def find(source, context):
    for call, _ in runs(source):
        if call.is_open or _has_end(call) or call.argument("hooks") is not None:
            continue
        function = context.project.function(given_input(call), call.scope, source)
        if function is None or not _repeats(function, context.project):
            continue
        yield Hit(call.node, f".{call.last}() has no number of steps, and its input repeats")


def _has_end(call):
    if call.last == "predict":
        return False
    names = {"train": (("steps", 2), ("max_steps", 3)), "evaluate": (("steps", 1),)}[call.last]
    for name, position in names:
        argument = call.argument(name, position)
        if argument is not None and call.source.constant(argument, call.scope) is not None:
            return True
    return False


def _repeats(function, project):
    """True if it surely makes a dataset that repeats without end."""
    for call in project.calls_of(function):
        if call.last == "repeat" and not call.node.args and not call.node.keywords:
            node = call.node
            while node is not function.node:
                if type(node).__name__ in ("If", "IfExp"):
                    return False
                node = node.parent
            if _may_return_before(call.node, function.node):
                return False
            return not any(other.last == "take" for other in project.calls_of(function))
    return False


def _may_return_before(node, function):
    """True if a function may have returned before it comes to a call."""
    returns = (n for n in ast.walk(function) if isinstance(n, ast.Return))
    return any(end.lineno < node.lineno for end in returns if end.parent is not function)
