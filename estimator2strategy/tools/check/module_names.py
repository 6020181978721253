"""The names that a module of the program has, where its source says all of them.

`names` gives them, or None if code may add others while it runs; `brought_by_stars` gives those
that each `from x import *` of the module brings, or None if nobody can tell.
"""

from __future__ import annotations

import ast
import dataclasses
import os

from estimator2strategy.tools.check.project import Project
from estimator2strategy.tools.check.source import Import, Source

# Functions that may bind names of a module which no reading sees.
BINDERS = frozenset({"exec", "execfile", "globals", "vars", "setattr", "eval"})
# Words of a module that may have such names for others.
_OPEN = BINDERS | {"__getattr__", "modules"}
_GIVEN = {
    "__all__", "__annotations__", "__builtins__", "__cached__", "__dict__", "__doc__", "__file__",
    "__loader__", "__name__", "__package__", "__path__", "__spec__", "__version__",
    *dir(object),
}  # fmt: skip


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
    last = target.module.rpartition(".")[2]
    ends = (f"{os.sep}{last}.py", f"{os.sep}{last}{os.sep}__init__.py")
    return [nearest, *(s for s in project.sources if s.path.endswith(ends) and s is not nearest)]


def module_of(source: Source, target: Import, project: Project) -> Source | None:
    """The file of the program that `from x import ...` reads; None for a library's."""
    name = source.follow(source, dataclasses.replace(target, name=None))
    if name is None or not name.startswith("@") or os.path.isdir(name[1:]):
        return None
    return project.load(name[1:])


def words(source: Source) -> set[str]:
    """All names, attributes and functions that a file speaks of."""
    return {
        node.id if isinstance(node, ast.Name) else getattr(node, "attr", getattr(node, "name", ""))
        for node in ast.walk(source.tree)
        if isinstance(node, (ast.Name, ast.Attribute, ast.FunctionDef))
    }
