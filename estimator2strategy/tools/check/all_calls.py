"""The calls of a program's own functions, where all of them can be seen."""

from __future__ import annotations

import ast
import functools

from estimator2strategy.tools.check.project import Project
from estimator2strategy.tools.check.source import Call, LexicalScope, arguments_of


def given(where: LexicalScope, name: str, project: Project) -> list[Call] | None:
    """All calls that give a function's argument a value; None if there may be others.

    Args:
        where: The scope of the function.
        name: The argument.
        project: The files in which calls are looked for.
    """
    function = where.node
    if not isinstance(function, ast.FunctionDef) or name not in arguments_of(function):
        return None
    is_changed = where.bindings[name] != [None]
    is_method = where.parent is None or not isinstance(where.parent.node, ast.Module)
    if is_changed or is_method or function.decorator_list:
        return None
    return _calls(project).get(function)


@functools.lru_cache(maxsize=1)
def _calls(project: Project) -> dict[ast.AST, list[Call]]:
    """The calls of each function that is called alone: one that is handed on has others too."""
    found: dict[ast.AST, list[Call]] = {}
    for source in project.sources:
        for call in source.calls:
            called = project.definition(source.resolve(call.node.func, call.scope))
            if called is not None:
                found.setdefault(called.node, []).append(call)
    for source in project.sources:
        for node, scope in source.chains:
            outer = getattr(node, "parent", None)
            if isinstance(outer, ast.Call) and outer.func is node:
                continue
            handed_on = project.definition(source.resolve(node, scope))
            if handed_on is not None:
                found.pop(handed_on.node, None)
    return found


def forget() -> None:
    """Frees the files of the project that was asked for last."""
    _calls.cache_clear()
