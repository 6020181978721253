"""The classes of a program: what they inherit, and which of their methods others replace.

`is_plain`: all bases of a class are known, and nothing in it is magic. `methods_of`: the `def` that
its objects have. `overridden`: another class may have another one in its place.

A class that the files do not show may do anything.
"""

from __future__ import annotations

import ast
import functools

from estimator2strategy.tools.check.project import Definition, Project

_DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef)
_MAGIC = {"__new__", "__getattr__", "__getattribute__", "__slots__", "__metaclass__"}


def lineage(of: Definition, project: Project, depth: int = 8) -> list[Definition] | None:
    """A class and all that it inherits from, nearest first; None if some of them is not known."""
    node = of.node
    if not isinstance(node, ast.ClassDef) or depth == 0:
        return None
    if node.keywords or node.decorator_list:
        return None
    found = [of]
    for base in node.bases:
        outer = of.scope.parent
        assert outer is not None
        raw = of.source.resolve(base, outer)
        if raw == "builtins.object":
            continue
        definition = project.definition(raw)
        inherited = lineage(definition, project, depth - 1) if definition is not None else None
        if inherited is None:
            return None
        found += inherited
    return found


def is_plain(of: Definition, project: Project) -> bool:
    """True if a class and its bases are the program's own, and make their objects as usual."""
    every = lineage(of, project)
    return every is not None and not any(_MAGIC & c.scope.bindings.keys() for c in every)


def methods_of(of: Definition, name: str, project: Project) -> Definition | None:
    """The one `def` of this name that a class has or inherits; None if there is none, or more."""
    for each in lineage(of, project) or ():
        bound = each.scope.bindings.get(name, ())
        if bound:
            one = len(bound) == 1 and isinstance(bound[0], _DEFINED)
            return Definition(bound[0], each.source) if one else None
    return None


def overridden(method: Definition, project: Project) -> bool:
    """True if a class below has a method of this name, or it is assigned somewhere."""
    name = method.node.name
    outer = method.scope.parent
    assert outer is not None
    if outer.is_class:
        for heir in heirs(outer.node.name, project):  # type: ignore[attr-defined]
            if heir.node is not outer.node and name in heir.scope.bindings:
                return True
    return name in stored(project)


def heirs(name: str, project: Project) -> list[Definition]:
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


@functools.lru_cache(maxsize=2)
def _below(project: Project) -> dict[str, list[Definition]]:
    """Last part of a base's name -> the classes that have such a base."""
    found: dict[str, list[Definition]] = {}
    for source in project.sources:
        for of, _ in source.classes:
            for base in of.bases:
                last = getattr(base, "attr", getattr(base, "id", ""))
                found.setdefault(last, []).append(Definition(of, source))
    return found


@functools.lru_cache(maxsize=2)
def stored(project: Project) -> frozenset[str]:
    """The names of attributes that the program assigns, whatever the objects."""
    return frozenset().union(*(source.stored for source in project.sources))


def forget() -> None:
    """Frees the files of the projects that were asked for last."""
    _below.cache_clear()
    stored.cache_clear()
