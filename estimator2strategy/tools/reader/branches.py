"""Branches that a TPU, or a call of a function, does not take.

A call that gives `kind="small"`, or leaves it to its default, does not come to what is below
`if kind == "large":` in the function that it calls.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from estimator2strategy.tools.reader.source import (
    UNKNOWN,
    Call,
    Function,
    LexicalScope,
    kept,
    names_in,
    parents,
    walk,
)

# Argument -> its constant. Frozen, so that calls which give the same are followed once.
Constants = frozenset[tuple[str, Any]]
NONE: Constants = frozenset()


def constants(call: Call, function: Function, scope: LexicalScope, outer: Constants) -> Constants:
    """The arguments that a call gives as constants, of those that the function may ask for.

    Args:
        call: The call.
        function: The function that it calls.
        scope: The function's own scope.
        outer: The constants that the caller was given itself.
    """
    asked = _asked(scope, function)
    if not asked or call.is_open:
        return NONE
    spec = function.args
    names = [argument.arg for argument in (*spec.posonlyargs, *spec.args)]
    if names[:1] in (["self"], ["cls"]) and not _gives_self(call):
        names = names[1:]
    defaults: dict[str, ast.expr | None] = dict(
        zip(reversed(names), reversed(spec.defaults), strict=False)
    )
    keywords = [argument.arg for argument in spec.kwonlyargs]
    defaults |= dict(zip(keywords, spec.kw_defaults, strict=True))
    found = {}
    for name in asked & {*names, *keywords}:
        given = call.argument(name, names.index(name) if name in names else None)
        value = (
            _value(given, call, dict(outer)) if given is not None else _literal(defaults.get(name))
        )
        if isinstance(value, (str, bool, int, type(None))):
            found[name] = value
    return frozenset(found.items())


def takes(node: ast.AST, function: Function, given: Constants) -> bool:
    """False if a node of a function is in a branch that these constants do not take."""
    values = dict(given)
    inner = node
    for outer in parents(node) if values else ():
        if outer is function:
            break
        if isinstance(outer, (ast.If, ast.IfExp)) and inner is not outer.test:
            then = outer.body if isinstance(outer.body, list) else [outer.body]
            if _holds(outer.test, values) is (inner not in then):
                return False
        inner = outer
    return True


@kept
def _asked(scope: LexicalScope, function: Function) -> set[str]:
    """The arguments that branches ask for or calls hand on, and that nothing binds again."""
    asked: set[str] = set()
    for node in walk(function):
        if isinstance(node, (ast.If, ast.IfExp)):
            asked |= names_in(node.test)
        elif isinstance(node, ast.Call):
            given = (*node.args, *(keyword.value for keyword in node.keywords))
            asked |= {value.id for value in given if isinstance(value, ast.Name)}
    return {name for name in asked if scope.bindings.get(name) == [None]}


def _gives_self(call: Call) -> bool:
    """True for `Base.__init__(self, ...)`."""
    return bool(call.node.args) and getattr(call.node.args[0], "id", "") in ("self", "cls")


def _value(node: ast.expr, call: Call, outer: dict[str, Any]) -> Any:
    if isinstance(node, ast.Name) and node.id in outer:
        where = call.scope.find(node.id)
        if where is not None and where.node is call.scope.function:
            return outer[node.id]
    return call.source.constant(node, call.scope)


def _literal(node: ast.expr | None) -> Any:
    return node.value if isinstance(node, ast.Constant) else UNKNOWN


_EQUAL = {ast.Eq: True, ast.Is: True, ast.NotEq: False, ast.IsNot: False}


def _holds(test: ast.expr, values: dict[str, Any]) -> bool | None:
    """True or False if the values of some names decide a condition; else None."""
    if isinstance(test, ast.Name) and test.id in values:
        return bool(values[test.id])
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        holds = _holds(test.operand, values)
        return None if holds is None else not holds
    if isinstance(test, ast.BoolOp):
        decisive = isinstance(test.op, ast.Or)
        parts = [_holds(part, values) for part in test.values]
        if decisive in parts:
            return decisive
        return None if None in parts else not decisive
    if isinstance(test, ast.Compare) and type(test.ops[0]) in _EQUAL and len(test.ops) == 1:
        left, right = test.left, test.comparators[0]
        if isinstance(left, ast.Name) and left.id in values and isinstance(right, ast.Constant):
            return (values[left.id] == right.value) is _EQUAL[type(test.ops[0])]
    return None


# Words in a condition that keeps the code below it from a TPU.
_NOT_FOR_TPU = re.compile("tpu|infer|predict|serving|export|summar", re.IGNORECASE)


def depends_on_tpu(node: ast.AST) -> bool:
    """True if a node is under an `if` about TPUs or serving, or in a `with` that leads outside."""
    return any(
        isinstance(outer, (ast.If, ast.IfExp, ast.With)) and _leads_elsewhere(outer)
        for outer in parents(node)
    )


@kept
def _leads_elsewhere(node: ast.If | ast.IfExp | ast.With) -> bool:
    if isinstance(node, ast.With):
        words = set().union(*(names_in(item.context_expr) for item in node.items))
        return any("outside" in word for word in words)
    return any(_NOT_FOR_TPU.search(word) for word in words_in(node.test))


def is_refused_on_tpu(node: ast.AST) -> bool:
    """True below `if FLAGS.use_tpu: raise ...`: a program on a TPU does not come to a node."""
    inner = node
    for outer in parents(node):
        blocks = (getattr(outer, "body", None), getattr(outer, "orelse", None))
        block = next((b for b in blocks if isinstance(b, list) and inner in b), [])
        if any(_ends_on_tpu(before) for before in block[: block.index(inner) if block else 0]):
            return True
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)):
            break
        inner = outer
    return False


def _ends_on_tpu(statement: ast.stmt) -> bool:
    """True for `if use_tpu:` whose body raises or returns."""
    if not isinstance(statement, ast.If) or not isinstance(
        statement.test, (ast.Name, ast.Attribute)
    ):
        return False
    last = getattr(statement.test, "attr", getattr(statement.test, "id", ""))
    return last == "use_tpu" and isinstance(statement.body[-1], (ast.Raise, ast.Return))


def words_in(node: ast.AST) -> set[str]:
    """All identifiers and strings in an expression."""
    strings = {
        child.value
        for child in walk(node)
        if isinstance(child, ast.Constant) and isinstance(child.value, str)
    }
    return names_in(node) | strings
