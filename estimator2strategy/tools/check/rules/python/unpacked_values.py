"""Calls of the program's own functions that give another number of values than are taken."""

import ast

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.check.rules.python.own_arguments import called_function, place_of
from estimator2strategy.tools.check.rules.python.python2_names import unguarded
from estimator2strategy.tools.reader import unreached
from estimator2strategy.tools.reader.estimator_programs import length_of, own_nodes


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
            counts = " or ".join(map(str, sorted(returned)))
            called = f"{function.node.name} ({place_of(function)})"
            message = f"{called} returns {counts} values, not {taken}"
            yield Hit(call.node, message)


def _taken(call):
    """The number of targets that the values of a call are assigned to; 0 if it is not known."""
    assign = call.parent
    if not isinstance(assign, ast.Assign) or assign.value is not call:
        return 0
    counts = {length_of(target) for target in assign.targets if not isinstance(target, ast.Name)}
    return (counts.pop() or 0) if len(counts) == 1 else 0


def _returned(function):
    """The numbers of values that a function may return; none if one of them is not known."""
    nodes = list(own_nodes(function)) if isinstance(function, ast.FunctionDef) else []
    if any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in nodes):
        return set()
    counts = {length_of(node.value) for node in nodes if isinstance(node, ast.Return)}
    return set() if None in counts else counts
