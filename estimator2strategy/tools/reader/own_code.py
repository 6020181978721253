"""The classes, calls and modules of a program itself, where its source says all of them.

`is_plain`: all bases of a class are known, and nothing in it is magic. `methods_of`: the `def` that
its objects have. `overridden`: another class may have another one in its place.

`given`: the calls that give a function's argument a value.

`names`: the names that a module has, or None if code may add others while it runs;
`brought_by_stars`: those that each `from x import *` of the module brings, or None if nobody can
tell.

A class that the files do not show may do anything.
"""

from __future__ import annotations

import ast
import dataclasses
import os

from estimator2strategy.tools.reader.project import Definition, Project
from estimator2strategy.tools.reader.source import (
    Call,
    Import,
    LexicalScope,
    Source,
    arguments_of,
    kept,
)

_DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef)
_MAGIC = {"__new__", "__getattr__", "__getattribute__", "__slots__", "__metaclass__"}


def scope_around(scope: LexicalScope) -> LexicalScope:
    """The scope that the `def` or `class` of another one stands in."""
    assert scope.parent is not None
    return scope.parent


def last_name(scope: LexicalScope) -> str:
    """The name that the `def` or `class` of a scope gives it."""
    return scope.name.rpartition(".")[2]


@kept
def lineage(project: Project, of: Definition, depth: int = 8) -> list[Definition] | None:
    """A class and all that it inherits from, nearest first; None if some of them is not known."""
    node = of.node
    if not isinstance(node, ast.ClassDef) or depth == 0:
        return None
    if node.keywords or node.decorator_list:
        return None
    found = [of]
    for base in node.bases:
        raw = of.source.resolve(base, scope_around(of.scope))
        if raw == "builtins.object":
            continue
        definition = project.definition(raw)
        inherited = lineage(project, definition, depth - 1) if definition is not None else None
        if inherited is None:
            return None
        found += inherited
    return found


@kept
def is_plain(project: Project, of: Definition) -> bool:
    """True if a class and its bases are the program's own, and make their objects as usual."""
    every = lineage(project, of)
    return every is not None and not any(_MAGIC & c.scope.bindings.keys() for c in every)


def methods_of(project: Project, of: Definition, name: str) -> Definition | None:
    """The one `def` of this name that a class has or inherits; None if there is none, or more."""
    for each in lineage(project, of) or ():
        bound = each.scope.bindings.get(name, ())
        if bound:
            one = len(bound) == 1 and isinstance(bound[0], _DEFINED)
            return Definition(bound[0], each.source) if one else None
    return None


def overridden(project: Project, method: Definition) -> bool:
    """True if a class below has a method of this name, or it is assigned somewhere."""
    name = method.node.name
    outer = scope_around(method.scope)
    if outer.is_class:
        for heir in heirs(project, last_name(outer)):
            if heir.node is not outer.node and name in heir.scope.bindings:
                return True
    return name in stored(project)


@kept
def heirs(project: Project, name: str) -> list[Definition]:
    """The classes that may inherit from one of this name, directly or not."""
    found: list[Definition] = []
    todo, seen = [name], {name}
    while todo:
        for heir in _below(project).get(todo.pop(), ()):
            found.append(heir)
            if heir.node.name not in seen:
                seen.add(heir.node.name)
                todo.append(heir.node.name)
    return found


@kept
def _below(project: Project) -> dict[str, list[Definition]]:
    """Last part of a base's name -> the classes that have such a base."""
    found: dict[str, list[Definition]] = {}
    for source in project.sources:
        for of, _ in source.classes:
            for base in of.bases:
                last = getattr(base, "attr", getattr(base, "id", ""))
                found.setdefault(last, []).append(Definition(of, source))
    return found


@kept
def stored(project: Project) -> frozenset[str]:
    """The names of attributes that the program assigns, whatever the objects."""
    return frozenset().union(*(source.stored for source in project.sources))


# The calls of functions.


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


@kept
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


# The names of modules.

# Functions that may bind names of a module which no reading sees.
BINDERS = frozenset({"exec", "execfile", "globals", "vars", "setattr", "eval"})
# Words of a module that may have such names for others.
_OPEN = BINDERS | {"__getattr__", "modules"}
_GIVEN = {
    "__all__", "__annotations__", "__builtins__", "__cached__", "__dict__", "__doc__", "__file__",
    "__loader__", "__name__", "__package__", "__path__", "__spec__", "__version__",
    *dir(object),
}  # fmt: skip


@kept
def names(source: Source, project: Project, seen: tuple[str, ...] = ()) -> set[str] | None:
    """The names at the top of a module, those of the modules beside a package's file included."""
    if source.path in seen or words(source) & _OPEN:
        return None
    brought = brought_by_stars(source, project, (*seen, source.path))
    if brought is None:
        return None
    found = brought | set(source.scope.bindings) | _GIVEN
    folder, file = os.path.split(source.path)
    if file == "__init__.py":
        found |= {entry.partition(".")[0] for entry in os.listdir(folder)}
    return found


@kept
def brought_by_stars(
    source: Source, project: Project, seen: tuple[str, ...] = ()
) -> set[str] | None:
    """The names that all `from x import *` of a file bring."""
    found: set[str] = set()
    for star in source.stars:
        modules = modules_of(source, star, project)
        for module in modules:
            has = names(module, project, seen)
            if has is None:
                return None
            listed = module.scope.bindings.get("__all__")
            # A list of names may be put together somewhere: then all may be meant.
            found |= has if listed else {name for name in has if not name.startswith("_")}
        if not modules:
            return None
    return found


def modules_of(source: Source, target: Import, project: Project) -> list[Source]:
    """The files that `from x import ...` may read; none if it reads a library's.

    There are several if others have the same name: where an import starts depends on how a program
    is run.
    """
    nearest = module_of(source, target, project)
    if nearest is None or target.level:
        return [nearest] if nearest else []
    others = project.named(target.module.rpartition(".")[2])
    return [nearest, *(other for other in others if other is not nearest)]


def module_of(source: Source, target: Import, project: Project) -> Source | None:
    """The file of the program that `from x import ...` reads; None for a library's."""
    name = source.follow(source, dataclasses.replace(target, name=None))
    if name is None or not name.startswith("@") or os.path.isdir(name[1:]):
        return None
    return project.load(name[1:])


@kept
def words(source: Source) -> set[str]:
    """All names, attributes and functions that a file speaks of."""
    found = {name.id for name in source.all_of(ast.Name)}
    found |= {attribute.attr for attribute in source.all_of(ast.Attribute)}
    return found | {function.name for function in source.all_of(ast.FunctionDef)}
