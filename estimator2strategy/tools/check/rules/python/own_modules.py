"""Modules, names and attributes that the program's own code does not have."""

import ast
import contextlib
import dataclasses
import os
import re
import sys
from collections.abc import Iterator

from estimator2strategy.tools.check.checking import Context
from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.check.rules.python.lost_names import unguarded
from estimator2strategy.tools.reader import unreached
from estimator2strategy.tools.reader.own_code import (
    heirs,
    is_plain,
    lineage,
    modules_of,
    names,
    stored,
    words,
)
from estimator2strategy.tools.reader.project import Definition, Project
from estimator2strategy.tools.reader.python_files import read_source
from estimator2strategy.tools.reader.source import Import, LexicalScope, Source, kept, walk

# The ends of names that a build may make.
_BUILT = ("_pb2", "_pb2_grpc", "version", "_ext", "_op", "_ops", "_cuda")
# How many folders above the program's are searched for a setup.py that cannot be parsed.
_CLIMB = 3


def missing_module(source: Source, context: Context) -> Iterator[Hit]:
    seen = set()
    for target, _ in source.imports:
        parts = target.module.split(".")
        if target.level or len(parts) < 2 or target.module in seen:
            continue
        if unreached.is_expendable(target.node) or not unguarded(target.node):
            continue
        found = source.follow(source, dataclasses.replace(target, name=None))
        if found is not None and found.startswith("@"):
            continue
        folder = _folder(parts[0], source, context.project)
        missing = None if folder is None else _missing(parts, folder)
        if missing is None or missing in seen or _is_elsewhere(parts, context.project):
            continue
        if folder is None or is_built(missing[1], folder, context.project):
            continue
        seen |= {target.module, missing}
        yield Hit(target.node, f"the folder {missing[0]} has no module {missing[1]}")


def may_be_built(module: str) -> bool:
    """True for names of the kind that a build gives to modules: `_C`, `example_pb2`."""
    return module.startswith("_") or module.endswith(_BUILT)


def is_built(module: str, folder: str, project: Project) -> bool:
    """True if a setup.py of the program names such a module: `Extension("utils.cython_bbox")`."""
    named = re.compile(rf"[\"'.]{re.escape(module)}[\"']")
    return any(named.search(text) for text in _setups(folder, project))


def _setups(folder: str, project: Project) -> Iterator[str]:
    """The text of each setup.py of the program, and of those above a folder, if of Python 2."""
    for other in project.sources:
        if os.path.basename(other.path) == "setup.py":
            yield other.text
    for _ in range(_CLIMB):
        folder = os.path.dirname(folder)
        path = os.path.join(folder, "setup.py")
        if os.path.isfile(path):
            with contextlib.suppress(OSError, ValueError, SyntaxError):
                yield read_source(path)
        if os.path.exists(os.path.join(folder, ".git")):
            return


def _missing(parts: list[str], folder: str) -> tuple[str, str] | None:
    """(folder, the module that it lacks), if the first folder is one that imports read."""
    shown = parts[0]
    for part in parts[1:]:
        entries = os.listdir(folder)
        if part in entries and os.path.isdir(os.path.join(folder, part)):
            folder, shown = os.path.join(folder, part), f"{shown}/{part}"
            continue
        if may_be_built(part) or any(e.partition(".")[0] == part and e != part for e in entries):
            return None
        return shown, part
    return None


def _folder(top: str, source: Source, project: Project) -> str | None:
    """The nearest folder of this name around a file out of which another import of it reads."""
    around = os.path.dirname(source.path)
    while True:
        folder = os.path.join(around, top)
        # In a package a plain `import luigi` is the library's, whatever folders are beside it.
        if os.path.isdir(folder) and not os.path.isfile(os.path.join(around, "__init__.py")):
            return folder if _is_read(project, top, folder) else None
        outer = os.path.dirname(around)
        if outer == around or not any(
            other.path.startswith(outer + os.sep) and not other.path.startswith(around + os.sep)
            for other in project.sources
        ):
            return None
        around = outer


@kept
def _is_read(project: Project, top: str, folder: str) -> bool:
    """True if an import of the program that begins with this folder's name finds a file in it."""
    for other in project.sources:
        for target, _ in other.imports:
            if not target.level and target.module.partition(".")[0] == top:
                # The file is there, also where the value of one of its names is unknown.
                module = dataclasses.replace(target, name=None) if "." in target.module else target
                found = (other.follow(other, target), other.follow(other, module))
                if any(each and each.startswith(f"@{folder}{os.sep}") for each in found):
                    return True
    return False


def _is_elsewhere(parts: list[str], project: Project) -> bool:
    """True if the program has such a file below another folder, and may be started from there."""
    return bool(project.named(*parts))


def missing_from_module(source: Source, context: Context) -> Iterator[Hit]:
    for target, _ in source.imports:
        if target.name is None or target.name == "*" or unreached.is_expendable(target.node):
            continue
        modules = modules_of(source, target, context.project)
        if not modules or modules[0] is source or _may_be_file(modules[0], target.name, context):
            continue
        if _is_in_a_folder(target, context.project):
            continue
        if not any(_may_have(module, target.name, context) for module in modules):
            message = f"{_named(modules[0])} has no name {target.name}"
            yield Hit(target.node, message)


def _is_in_a_folder(target: Import, project: Project) -> bool:
    """True if a folder, which need be no package, has the name of the module, and such a file."""
    return bool(project.named(*f"{target.module}.{target.name}".split(".")))


def _named(module: Source) -> str:
    """The name of a file, and of a package's `__init__.py` the folder too."""
    folder, file = os.path.split(module.path)
    return f"{os.path.basename(folder)}/{file}" if file == "__init__.py" else file


def _may_be_file(module: Source, name: str, context: Context) -> bool:
    """True if a name may be a module beside a package's file that is built or generated later."""
    folder, file = os.path.split(module.path)
    if file != "__init__.py" or name != name.lower():
        return file == "__init__.py" and name.startswith("_")
    if not any(entry.endswith(".py") and entry != file for entry in os.listdir(folder)):
        return True  # none of its modules is there yet
    return may_be_built(name) or is_built(name, folder, context.project)


def _may_have(module: Source, name: str, context: Context) -> bool:
    if name in module.scope.bindings:
        return True  # most are, and that is quickly known
    has = names(module, context.project)
    return has is None or name in has


# Words of a file that may give objects attributes which no reading sees.
_DECORATORS = {"property", "setter", "staticmethod", "classmethod", "abstractmethod"}
_BINDERS = {"setattr", "__dict__", "exec", "eval", "vars", "globals", "__setattr__", "update"}


# Class -> the names that its objects have; None if they may have others.
_Known = dict[ast.ClassDef, set[str] | None]


def missing_attribute(source: Source, context: Context) -> Iterator[Hit]:
    project = context.project
    known: _Known = {}
    seen = set()
    for node, scope in source.chains:
        if not isinstance(node, ast.Attribute):
            continue
        first, base = _first(node)
        if isinstance(base, ast.Name) and base.id == "self":
            message = _missing_of_object(first, scope, source, project, known)
        else:
            message = _missing_of_module(node, scope, source, project)
        if message is None or (message, scope) in seen:
            continue
        if unguarded(node) and not unreached.is_tried(node, unreached.ANY):
            seen.add((message, scope))
            yield Hit(node, message)


def _first(node: ast.Attribute) -> tuple[ast.Attribute, ast.expr]:
    """The innermost attribute of a dotted name, and the name that it is of."""
    while isinstance(node.value, ast.Attribute):
        node = node.value
    return node, node.value


def _missing_of_object(
    node: ast.Attribute, scope: LexicalScope, source: Source, project: Project, known: _Known
) -> str | None:
    where = scope.find("self")
    of = where.parent.node if where is not None and where.parent is not None else None
    if where is None or not isinstance(of, ast.ClassDef):
        return None
    function = where.node
    if not isinstance(function, ast.FunctionDef) or len(where.bindings["self"]) != 1:
        return None
    first = (*function.args.posonlyargs, *function.args.args)[:1]
    if [a.arg for a in first] != ["self"] or function.decorator_list:
        return None
    if of not in known:
        known[of] = _attributes(Definition(of, source), project)
    has = known[of]
    if has is None or node.attr in has or node.attr in stored(project) or _is_asked(node, function):
        return None
    return f"nothing gives {of.name} the attribute {node.attr}"


def _attributes(of: Definition, project: Project) -> set[str] | None:
    """The names that objects of a class have by it and its kin; None if others may be made."""
    every = lineage(project, of)
    if every is None or not is_plain(project, of):
        return None
    if any(not words(source).isdisjoint(_BINDERS) for source in {each.source for each in every}):
        return None
    # Its subclasses may inherit from other classes, too.
    if heirs(project, of.node.name):
        return None
    found = set(dir(object)) | {"__dict__"}
    for each in every:
        found |= each.scope.bindings.keys()
        for values in each.scope.bindings.values():
            if any(not _DECORATORS.issuperset(_decorators(value)) for value in values):
                return None
    return found


def _decorators(value: object) -> set[str | None]:
    """The last words of a method's decorators, which may give its object anything."""
    return {
        getattr(d, "attr", getattr(d, "id", None)) for d in getattr(value, "decorator_list", ())
    }


def _is_asked(node: ast.Attribute, function: ast.FunctionDef) -> bool:
    """True if the function asks whether there is such an attribute."""
    return any(
        isinstance(other, ast.Constant) and other.value == node.attr for other in walk(function)
    )


def _missing_of_module(
    node: ast.Attribute, scope: LexicalScope, source: Source, project: Project
) -> str | None:
    """The same for `module.name`, where the module is a file of the program."""
    chain = [node]
    while isinstance(chain[-1].value, ast.Attribute):
        chain.append(chain[-1].value)
    for attribute in reversed(chain):
        raw = source.resolve(attribute.value, scope)
        if raw is None or not raw.startswith("@") or "::" in raw:
            return None
        path = raw[1:]
        module = None if os.path.isdir(path) else project.load(path)
        if module is None or module is source:
            if module is source:
                return None
            continue
        if attribute.attr in module.scope.bindings:
            continue
        has = names(module, project)
        if has is None or attribute.attr in has or attribute.attr in stored(project):
            return None
        if not _is_meant(path, source, _imports(chain[-1].value, scope)):
            return None
        if words(module) & {*_BINDERS, "load_dynamic"}:
            return None
        if _is_written(project, attribute.attr):
            return None
        if attribute.attr.startswith("__") or _has_namesake(path, attribute.attr, project):
            return None
        return f"{os.path.basename(path)} has no name {attribute.attr}"
    return None


@kept
def _is_written(project: Project, name: str) -> bool:
    """True if a text of the program gives the name a value.

    It may write a module of settings, or set what a module has in a file that cannot be parsed.
    """
    given = re.compile(rf"\b{re.escape(name)}\s+=(?!=)")
    return any(given.search(t) for t in (*(s.text for s in project.sources), *project.unread))


def _is_meant(path: str, source: Source, imports: list[Import] | None) -> bool:
    """True if no other module than the file at `path` can be meant by what `source` imports.

    In a package `import io` is Python's own, and what is `from` a folder may be a library's.
    """
    folder, file = os.path.split(path)
    stem = os.path.splitext(file)[0]
    alone = {other for other in os.listdir(folder) if other.partition(".")[0] == stem} == {file}
    if not alone or imports is None or file == "__init__.py":
        return False
    package = _package(path)
    if package:
        top = os.path.basename(package)
        near = _package(source.path) == package
        return near and all(i.level or i.module.partition(".")[0] == top for i in imports)
    plain = all((i.module, i.name, i.level) == (stem, None, 0) for i in imports)
    beside = folder == os.path.dirname(source.path)
    return plain and beside and stem not in sys.stdlib_module_names


def _imports(name: ast.expr, scope: LexicalScope) -> list[Import] | None:
    """The imports that bind a name; None if anything else does."""
    if not isinstance(name, ast.Name) or (where := scope.find(name.id)) is None:
        return None
    bound = where.bindings[name.id]
    return bound if bound and all(isinstance(each, Import) for each in bound) else None


def _package(path: str) -> str:
    """The outermost folder around a file that is a package, as all below it are; "" without one."""
    package, folder = "", os.path.dirname(path)
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        package, folder = folder, os.path.dirname(folder)
    return package


def _has_namesake(path: str, name: str, project: Project) -> bool:
    """True if another file of the same name may be meant, which has the name or may have it."""
    folder, file = os.path.split(path)
    if file == "__init__.py":
        file = os.path.join(os.path.basename(folder), file)
    for other in project.sources:
        if other.path != path and other.path.endswith(f"{os.sep}{file}"):
            has = names(other, project)
            if has is None or name in has:
                return True
    return False
