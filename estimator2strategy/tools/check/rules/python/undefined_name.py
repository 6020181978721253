"""Names that nothing binds."""

import ast
import builtins
import os
import re
import symtable
from collections.abc import Iterator

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.check.rules.python.python2_names import BUILTINS, unguarded
from estimator2strategy.tools.reader.own_code import BINDERS, brought_by_stars
from estimator2strategy.tools.reader.project import Project
from estimator2strategy.tools.reader.source import LexicalScope, Source, parents

# Names that a module has without binding them, or that notebooks and profilers give it.
_GIVEN = {
    *dir(builtins), *BUILTINS, "__file__", "__path__", "__builtins__", "__module__", "__qualname__",
    "__class__", "__annotations__", "WindowsError", "_", "display", "get_ipython", "profile",
}  # fmt: skip
# Names that Jupyter and IPython give to their files of settings, and the signs of such a file.
_GIVEN_TO_SETTINGS = {"c", "get_config", "load_subconfig"}
_SETTINGS_FILE = re.compile(r"(jupyter|ipython|nbgrader)\w*_conf(ig)?\.py")
_SETTINGS_TEXT = re.compile(r"^c = get_config\(\)", re.MULTILINE)
# Functions that may bind names which no reading sees, in a module or in a class.
_BINDERS = BINDERS | {"locals"}


def find(source, context):
    brought = brought_by_stars(source, context.project)
    if brought is None:
        return
    read = [(_base(node), scope) for node, scope in source.chains]
    if any(name.id in _BINDERS for name, _ in read):
        return
    free = None
    submodules = _submodules(source, context.project)
    given = _GIVEN | context.project.set_by_others.get(source.path, set())
    if _is_settings(source):
        given |= _GIVEN_TO_SETTINGS
    seen = set()
    for name, scope in read:
        if name.id in given or name.id in seen or scope.find(name.id) is not None:
            continue
        if name.id in brought or name.id in submodules:
            continue
        if free is None:
            free = _free(source)
        if name.id in free and _unguarded(name) and not _is_annotation(name):
            seen.add(name.id)
            yield Hit(name, f"nothing binds the name {name.id}", fix=_hint(name, scope))


def _hint(node: ast.Name, scope: LexicalScope) -> str | None:
    """The advice for `self`, and for a name that a class around its use has."""
    if node.id == "self":
        return _without_self(node)
    owns = any(outer.is_class and node.id in outer.bindings for outer in scope.ancestors())
    return f"Did you mean self.{node.id}?" if owns else None


def _without_self(node: ast.Name) -> str | None:
    """The advice for `self` in a function that is not given it."""
    around = [n for n in parents(node) if isinstance(n, (ast.FunctionDef, ast.ClassDef))]
    if not around or not isinstance(around[0], ast.FunctionDef):
        return None
    if len(around) > 1 and isinstance(around[1], ast.ClassDef):
        return f"Make it the first argument of the method: `def {around[0].name}(self, ...)`."
    return f"{around[0].name} is no method: give it the object as an argument."


def _is_settings(source: Source) -> bool:
    """True for a file of settings that Jupyter or IPython runs: it is given names by them."""
    file = os.path.basename(source.path)
    return bool(_SETTINGS_FILE.fullmatch(file) or _SETTINGS_TEXT.search(source.text))


def _submodules(source: Source, project: Project) -> set[str]:
    """The modules beside a package's file, if it imports any: an import binds them in it.

    `import models.nets` in models/__init__.py gives that file the name `nets`; so does whatever
    else it imports from its own folder.
    """
    folder, file = os.path.split(source.path)
    if file != "__init__.py":
        return set()
    paths = (project.imported_file(source, target) for target, _ in source.imports)
    if not any(path and path.startswith(f"{folder}{os.sep}") for path in paths):
        return set()
    return {entry.partition(".")[0] for entry in os.listdir(folder)}


def _base(node: ast.expr) -> ast.Name:
    while isinstance(node, ast.Attribute):
        node = node.value
    assert isinstance(node, ast.Name)
    return node


def _free(source: Source) -> set[str]:
    """The names of a file that Python looks up in its module, and that the module never binds."""
    module = symtable.symtable(source.text, source.shown, "exec")
    looked_up: set[str] = set()
    bound = {symbol.get_name() for symbol in module.get_symbols() if _binds(symbol)}
    for table in _tables(module):
        for symbol in table.get_symbols():
            if table is module or symbol.is_global():
                if symbol.is_referenced():
                    looked_up.add(symbol.get_name())
                if _binds(symbol):
                    bound.add(symbol.get_name())
    return looked_up - bound


def _binds(symbol: symtable.Symbol) -> bool:
    return symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _tables(child)


def _is_annotation(node: ast.AST) -> bool:
    """True in an annotation, which may not be evaluated."""
    inner = node
    for outer in parents(node):
        if isinstance(outer, (ast.arg, ast.AnnAssign)) and outer.annotation is inner:
            return True
        inner = outer
    return False


def _unguarded(name):
    """True if it is `unguarded`, or only by a `try` that lets a NameError pass."""
    outer, inner = name.parent, name
    while isinstance(outer, ast.AST):
        caught = isinstance(outer, ast.Try) and any(map(_may_catch, outer.handlers))
        if caught or (isinstance(outer, ast.Try) and inner not in outer.body):
            return False
        inner, outer = outer, getattr(outer, "parent", None)
    return unguarded(name, tries=False)


def _may_catch(handler):
    """True unless it catches errors of Python that a NameError is none of."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    caught = [getattr(builtins, getattr(kind, "id", ""), Exception) for kind in kinds]
    return any(not isinstance(kind, type) or issubclass(NameError, kind) for kind in caught)
